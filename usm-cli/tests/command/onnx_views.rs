//! The freedom that a model's operators give: views, results over inputs, concatenations in place,
//! an order chosen for the peak. All shapes are stated, so every build plans these models.

use serde_json::{Value, json};

use crate::onnx_files::{FLOAT, bytes, int64s, node, plan_bytes, value};
use crate::proto::{AttributeProto, AttributeType, GraphProto, NodeProto, TensorProto, ValueInfoProto};
use crate::support::{Ran, folder, text};

fn plan(name: &str, graph: GraphProto, arguments: &[&str]) -> Ran {
    plan_bytes(name, &bytes(graph), arguments)
}

fn with(node: NodeProto, name: &str, number: i64) -> NodeProto {
    let attribute = AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Int.into(),
        i: number,
        ..AttributeProto::default()
    };
    NodeProto { attribute: vec![attribute], ..node }
}

/// Values of these shapes: `("a", "4x64")`.
fn shapes(stated: &[(&str, &str)]) -> Vec<ValueInfoProto> {
    stated.iter().map(|(name, dims)| value(name, FLOAT, &dims.split('x').collect::<Vec<_>>())).collect()
}

/// x -> MatMul -> a -> the operator -> its results, which MatMul reads one by one.
fn around(op: NodeProto, stated: &[(&str, &str)], initializer: Vec<TensorProto>) -> GraphProto {
    let read = op.output.clone();
    let mut nodes = vec![node("MatMul", &["x", "x"], &["a"]), op];
    let mut value_info = shapes(stated);
    let mut output = Vec::new();
    for name in &read {
        let end = format!("{name}_end");
        nodes.push(node("MatMul", &[name, name], &[&end]));
        output.push(value(&end, FLOAT, &["16"]));
    }
    value_info.push(value("unused", FLOAT, &["1"]));
    GraphProto {
        node: nodes,
        input: shapes(&[("x", "16")]),
        output,
        value_info,
        initializer,
        ..GraphProto::default()
    }
}

/// The planned graph, and its tensors by name.
fn planned(name: &str, graph: GraphProto, arguments: &[&str]) -> (Value, impl Fn(&str) -> Value + use<>) {
    let path = text(&folder(&format!("{name}_graph")).join("planned.graph.json"));
    let ran = plan(name, graph, &[&["--graph", &path], arguments].concat());
    assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
    let graph: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let tensors = graph["tensors"].as_array().unwrap().clone();
    let find = move |name: &str| tensors.iter().find(|tensor| tensor["name"] == name).expect(name).clone();
    (graph, find)
}

/// `Some(offset)` if `view` is a view of `of`.
fn offset(tensor: &impl Fn(&str) -> Value, view: &str, of: &str) -> Option<u64> {
    let view = tensor(view);
    (view["alias_of"] == tensor(of)["id"]).then(|| view["alias_offset"].as_u64().unwrap_or(0))
}

#[test]
fn results_with_the_bytes_of_their_input_are_views() {
    for op in ["Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity", "Dropout"] {
        let graph = around(node(op, &["a"], &["b"]), &[("a", "4x64"), ("b", "256")], vec![]);
        let (_, tensor) = planned(&format!("onnx_view_{op}"), graph.clone(), &[]);
        assert_eq!(offset(&tensor, "b", "a"), Some(0), "{op}");
        let (_, tensor) = planned(&format!("onnx_no_view_{op}"), graph, &["--no-views"]);
        assert_eq!(offset(&tensor, "b", "a"), None, "{op}");
    }
    // Another domain's operator of the same name.
    let other = NodeProto { domain: "example".to_owned(), ..node("Reshape", &["a"], &["b"]) };
    let (_, tensor) = planned("onnx_view_other", around(other, &[("a", "4x64"), ("b", "256")], vec![]), &[]);
    assert_eq!(offset(&tensor, "b", "a"), None);
}

#[test]
fn a_dropout_that_trains_is_no_view() {
    let truth = |byte: u8| TensorProto {
        name: "mode".to_owned(),
        data_type: 9,
        raw_data: vec![byte],
        ..TensorProto::default()
    };
    for (mode, initializer, expected) in [
        ("mode", vec![truth(1)], None),
        ("mode", vec![truth(0)], Some(0)),
        ("", vec![], Some(0)),
        ("x", vec![], None),
    ] {
        let graph =
            around(node("Dropout", &["a", "", mode], &["b"]), &[("a", "4x64"), ("b", "4x64")], initializer);
        let (_, tensor) = planned("onnx_dropout", graph, &[]);
        assert_eq!(offset(&tensor, "b", "a"), expected, "{mode:?}");
    }
    for (is_test, expected) in [(0, None), (1, Some(0))] {
        let op = with(node("Dropout", &["a"], &["b"]), "is_test", is_test);
        let (_, tensor) =
            planned("onnx_dropout_set_6", around(op, &[("a", "4x64"), ("b", "4x64")], vec![]), &[]);
        assert_eq!(offset(&tensor, "b", "a"), expected, "{is_test}");
    }
}

#[test]
fn parts_along_the_outermost_extent_are_views() {
    let stated = [("a", "1x4x64"), ("b", "1x1x64"), ("c", "1x3x64")];
    let split = |axis| around(with(node("Split", &["a"], &["b", "c"]), "axis", axis), &stated, vec![]);
    for axis in [1, -2] {
        let (_, tensor) = planned("onnx_split", split(axis), &[]);
        assert_eq!((offset(&tensor, "b", "a"), offset(&tensor, "c", "a")), (Some(0), Some(256)));
    }
    // Columns are no contiguous range of bytes.
    let columns = [("a", "1x4x64"), ("b", "1x4x32"), ("c", "1x4x32")];
    let graph = around(with(node("Split", &["a"], &["b", "c"]), "axis", 2), &columns, vec![]);
    let (_, tensor) = planned("onnx_split_columns", graph, &[]);
    assert_eq!((offset(&tensor, "b", "a"), offset(&tensor, "c", "a")), (None, None));
    // An unaligned part has bytes of its own.
    let odd = [("a", "4x3"), ("b", "1x3"), ("c", "3x3")];
    let graph = around(node("Split", &["a"], &["b", "c"]), &odd, vec![]);
    let (_, tensor) = planned("onnx_split_odd", graph.clone(), &[]);
    assert_eq!((offset(&tensor, "b", "a"), offset(&tensor, "c", "a")), (Some(0), None));
    let (_, tensor) = planned("onnx_split_unaligned", graph, &["--alignment", "4"]);
    assert_eq!(offset(&tensor, "c", "a"), Some(12));
}

#[test]
fn a_slice_of_one_range_is_a_view() {
    let sliced = |starts: &[i64], ends: &[i64], axes: &[i64], steps: &[i64], to: &str| {
        let lists = vec![int64s("s", starts), int64s("e", ends), int64s("x2", axes), int64s("t", steps)];
        let op = node("Slice", &["a", "s", "e", "x2", "t"], &["b"]);
        let (_, tensor) = planned("onnx_slice", around(op, &[("a", "8x64"), ("b", to)], lists), &[]);
        offset(&tensor, "b", "a")
    };
    assert_eq!(sliced(&[2], &[5], &[0], &[1], "3x64"), Some(512));
    assert_eq!(sliced(&[-3], &[i64::MAX], &[-2], &[1], "3x64"), Some(1280));
    assert_eq!(sliced(&[0, 2], &[64, 5], &[1, 0], &[1, 1], "3x64"), Some(512));
    assert_eq!(sliced(&[0], &[i64::MAX], &[0], &[1], "8x64"), Some(0));
    assert_eq!(sliced(&[7], &[-9], &[0], &[-5], "2x64"), None);
    assert_eq!(sliced(&[7], &[6], &[0], &[-5], "1x64"), Some(1792));
    // Every second row, columns, and an axis outside of the shape.
    assert_eq!(sliced(&[0], &[8], &[0], &[2], "4x64"), None);
    assert_eq!(sliced(&[0], &[32], &[1], &[1], "8x32"), None);
    assert_eq!(sliced(&[i64::MIN], &[i64::MAX], &[i64::MIN], &[1], "3x64"), None);
}

#[test]
fn an_input_of_the_same_shape_may_be_overwritten() {
    let permits = |op: &str, stated: &[(&str, &str)]| {
        let graph = GraphProto {
            node: vec![
                node("MatMul", &["x", "x"], &["a"]),
                node("MatMul", &["x", "x"], &["b"]),
                node(op, &["a", "b"], &["y"]),
            ],
            input: shapes(&[("x", "16")]),
            output: shapes(&[("y", "4x64")]),
            value_info: shapes(stated),
            ..GraphProto::default()
        };
        let (graph, tensor) = planned("onnx_permits", graph, &["--keep-order"]);
        let (a, b, y) = (&tensor("a")["id"], &tensor("b")["id"], &tensor("y")["id"]);
        let given = graph["ops"][2]["in_place"].as_array().cloned().unwrap_or_default();
        [a, b].map(|input| given.contains(&json!([input, y])))
    };
    let equal = [("a", "4x64"), ("b", "4x64")];
    assert_eq!(permits("Add", &equal), [true, true]);
    assert_eq!(permits("Softmax", &equal), [true, false]);
    assert_eq!(permits("BatchNormalization", &equal), [true, false]);
    assert_eq!(permits("Max", &equal), [true, false]);
    assert_eq!(permits("MatMul", &equal), [false, false]);
    assert_eq!(permits("Conv", &equal), [false, false]);
    // A broadcast has another shape, whatever its size.
    assert_eq!(permits("Add", &[("a", "4x64"), ("b", "1x64")]), [true, false]);
    assert_eq!(permits("Add", &[("a", "1x4x64"), ("b", "64")]), [false, false]);
}

/// A sum adds one input after the other: over its first input it would read a later occurrence of
/// that input too late.
#[test]
fn an_input_that_is_read_again_is_not_overwritten() {
    let is_over = |op: &str, inputs: &[&str]| {
        let nodes = [("a", "x"), ("b", "a")].map(|(to, from)| node("MatMul", &[from, from], &[to]));
        let graph = GraphProto {
            node: nodes.into_iter().chain([node(op, inputs, &["y"])]).collect(),
            input: shapes(&[("x", "16")]),
            output: shapes(&[("y", "4x64")]),
            value_info: shapes(&[("a", "4x64"), ("b", "4x64")]),
            ..GraphProto::default()
        };
        let (graph, _) = planned("onnx_read_again", graph, &["--keep-order"]);
        graph["ops"][2]["in_place"].is_array()
    };
    for op in ["Sum", "Mean", "Max", "Min"] {
        assert!(is_over(op, &["a", "b", "b"]), "{op}");
        assert!(!is_over(op, &["a", "b", "a"]), "{op}");
        assert!(!is_over(op, &["a", "a"]), "{op}");
    }
    assert!(is_over("Add", &["a", "a"]), "each element is read before it is written");
}

#[test]
fn inputs_of_a_concatenation_may_be_made_in_its_place() {
    // Both halves live together in any case; in place the copy is saved.
    let graph = |axis: i64, [a, b, c]: [&str; 3]| GraphProto {
        node: vec![
            node("MatMul", &["x", "x"], &["a"]),
            node("MatMul", &["x", "x"], &["b"]),
            with(node("Concat", &["a", "b"], &["c"]), "axis", axis),
            node("MatMul", &["c", "c"], &["y"]),
        ],
        input: shapes(&[("x", "16")]),
        output: shapes(&[("y", "1")]),
        value_info: shapes(&[("a", a), ("b", b), ("c", c)]),
        ..GraphProto::default()
    };
    let rows = || graph(0, ["4x64", "4x64", "8x64"]);
    let (_, tensor) = planned("onnx_concat", rows(), &[]);
    assert_eq!((offset(&tensor, "a", "c"), offset(&tensor, "b", "c")), (Some(0), Some(1024)));
    let peak = |options: &[&str]| plan("onnx_concat_peak", rows(), options).json()["peak"].clone();
    assert_eq!((peak(&[]), peak(&["--no-views"])), (json!(2048 + 4), json!(4096)));
    let (_, tensor) = planned("onnx_concat_columns", graph(1, ["8x64", "8x64", "8x128"]), &[]);
    assert_eq!(offset(&tensor, "a", "c"), None);
    // The same part twice, a part of the caller's, an unaligned part.
    let mut twice = rows();
    twice.node[2].input[1] = "a".to_owned();
    let (_, tensor) = planned("onnx_concat_twice", twice, &[]);
    assert_eq!(offset(&tensor, "a", "c"), None);
    let mut given = rows();
    given.node[2].input[0] = "x".to_owned();
    given.input = shapes(&[("x", "4x64")]);
    let (_, tensor) = planned("onnx_concat_given", given, &[]);
    assert_eq!(offset(&tensor, "b", "c"), None);
    let (_, tensor) = planned("onnx_concat_odd", graph(0, ["1x3", "4x3", "5x3"]), &[]);
    assert_eq!(offset(&tensor, "b", "c"), None);
}

#[test]
fn a_concatenation_in_place_that_raises_the_peak_is_a_copy() {
    // The large half is made last. In place its bytes would be occupied from the start, beside
    // another large tensor.
    let graph = GraphProto {
        node: vec![
            node("MatMul", &["x", "x"], &["a"]),
            node("MatMul", &["a", "x"], &["large"]),
            node("MatMul", &["large", "a"], &["small"]),
            node("MatMul", &["small", "small"], &["b"]),
            with(node("Concat", &["a", "b"], &["c"]), "axis", 0),
            node("MatMul", &["c", "c"], &["y"]),
        ],
        input: shapes(&[("x", "16")]),
        output: shapes(&[("y", "1")]),
        value_info: shapes(&[
            ("a", "64"),
            ("large", "64x64"),
            ("small", "64"),
            ("b", "16x64"),
            ("c", "1088"),
        ]),
        ..GraphProto::default()
    };
    let (_, tensor) = planned("onnx_concat_late", graph.clone(), &[]);
    assert_eq!(offset(&tensor, "a", "c"), None);
    assert_eq!(plan("onnx_concat_late", graph, &[]).json()["peak"], 64 * 64 * 4 + 2 * 256);
}

#[test]
fn what_the_caller_hands_in_is_no_result() {
    let graph = GraphProto {
        node: vec![node("Identity", &["x"], &["v"]), node("Flatten", &["v"], &["y"])],
        input: shapes(&[("x", "4x64")]),
        output: shapes(&[("y", "256")]),
        value_info: shapes(&[("v", "4x64")]),
        ..GraphProto::default()
    };
    let (_, tensor) = planned("onnx_outside", graph.clone(), &[]);
    assert_eq!((offset(&tensor, "v", "x"), offset(&tensor, "y", "v")), (Some(0), None));
    // A view of memory outside the arena lies outside too.
    assert_eq!(plan("onnx_outside_peak", graph, &[]).json()["peak"], 1024);
}

#[test]
fn the_order_of_a_model_is_chosen_unless_it_is_to_be_kept() {
    // Copies of a shared weight at the start of the file, each read much later.
    let mut nodes = Vec::new();
    let mut value_info = Vec::new();
    for k in 0..6 {
        nodes.push(node("MatMul", &["x", "x"], &[&format!("w{k}")]));
        value_info.extend(shapes(&[(&format!("w{k}"), "64x64")]));
    }
    for k in 0..6 {
        let (from, to) = (if k == 0 { "x".to_owned() } else { format!("h{k}") }, format!("h{}", k + 1));
        nodes.push(node("MatMul", &[&from, &format!("w{k}")], &[&to]));
        value_info.extend(shapes(&[(&to, "64")]));
    }
    let output = vec![value_info.pop().unwrap()];
    let graph = GraphProto {
        node: nodes,
        input: shapes(&[("x", "64")]),
        output,
        value_info,
        ..GraphProto::default()
    };
    let chosen = plan("onnx_order", graph.clone(), &[]).json();
    let kept = plan("onnx_order_kept", graph.clone(), &["--keep-order"]).json();
    assert!(kept.get("order").is_none());
    assert_eq!(chosen["order"].as_array().map(Vec::len), Some(12));
    assert_eq!((&chosen["order_optimal"], &chosen["order_optimality"]), (&json!(true), &json!("proven")));
    assert_eq!((&kept["order_optimal"], &kept["order_optimality"]), (&json!(false), &json!(null)));
    assert_eq!(kept["peak"], 6 * 16384 + 256);
    assert!(chosen["peak"].as_u64() <= Some(16384 + 2 * 256), "{chosen}");
    let unordered = plan("onnx_order_none", graph.clone(), &["--queue", "out-of-order"]).json();
    assert!(unordered.get("order").is_none());
    plan("onnx_order_both", graph, &["--keep-order", "--reorder"]).refused(&["--keep-order", "--reorder"]);
}

#[test]
fn shapes_that_contradict_their_operator_are_refused() {
    let cases = [
        (node("Reshape", &["a"], &["b"]), vec![("a", "4x64"), ("b", "255")], ["1024", "1020"]),
        (node("Identity", &["a"], &["b"]), vec![("a", "4x64"), ("b", "4x65")], ["1024", "1040"]),
        (
            node("Split", &["a"], &["b", "c"]),
            vec![("a", "4x64"), ("b", "1x64"), ("c", "1x64")],
            ["1024", "512"],
        ),
        (node("Concat", &["a", "a"], &["b"]), vec![("a", "4x64"), ("b", "4x64")], ["1024", "2048"]),
        (node("Relu", &["a"], &["b"]), vec![("a", "4x64"), ("b", "4x63")], ["[4, 63]", "[4, 64]"]),
        (node("Softmax", &["a"], &["b"]), vec![("a", "4x64"), ("b", "4")], ["[4]", "[4, 64]"]),
        (node("Mul", &["a", "x"], &["b"]), vec![("a", "4x1"), ("b", "4x1")], ["[4, 1]", "[4, 16]"]),
        (
            node("Slice", &["a", "one", "three"], &["b"]),
            vec![("a", "4x64"), ("b", "3x64")],
            ["[3, 64]", "[2, 64]"],
        ),
    ];
    let bounds = || vec![int64s("one", &[1]), int64s("three", &[3])];
    for (op, stated, numbers) in cases {
        let name = op.op_type.clone();
        for options in [&[][..], &["--no-views"]] {
            plan("onnx_lie", around(op.clone(), &stated, bounds()), options).refused(&[
                "model.onnx",
                &name,
                "node 1",
                numbers[0],
                numbers[1],
            ]);
        }
    }
}

#[test]
fn names_of_a_model_are_in_every_file() {
    let folder = folder("onnx_names");
    let (csv, svg) = (text(&folder.join("plan.csv")), text(&folder.join("plan.svg")));
    let mut graph = around(node("Reshape", &["a"], &["b"]), &[("a", "4x64"), ("b", "256")], vec![]);
    graph.node[0].name = "a,\"quoted\" <one>".to_owned();
    let ran = plan("onnx_names", graph, &["--output", &csv, "--svg", &svg]);
    assert_eq!(ran.json()["certificate"]["names"][0], "a", "{}", ran.stdout);
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.lines().any(|line| line.ends_with(",a,\"a,\"\"quoted\"\" <one>\"")), "{csv}");
    let svg = std::fs::read_to_string(svg).unwrap();
    assert!(svg.contains("name a, made by a,&quot;quoted&quot; &lt;one&gt;</title>"), "{svg}");
}
