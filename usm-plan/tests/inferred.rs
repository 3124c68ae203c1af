//! Models whose file states no shape: constants, functions, loops of a known length, and refusals
//! that name what is unknown.
#![allow(clippy::std_instead_of_alloc, reason = "models: std is always there")]

#[path = "../src/onnx/proto.rs"]
#[allow(dead_code, unreachable_pub)]
mod proto;

use prost::Message as _;
use proto::{
    AttributeProto, AttributeType, Dim, Dimension, FunctionProto, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, SparseTensorProto, TensorProto, TensorShapeProto, TensorType, Type, TypeProto,
    Unread, ValueInfoProto,
};
use usm_plan::onnx::{self, Value};
use usm_plan::usm_pool::range::Dimension as Range;
use usm_plan::usm_pool::{Graph, TensorKind};
use usm_plan::{Hints, Result};

const FLOAT: i32 = 1;
const INT64: i32 = 7;
const BOOL: i32 = 9;

fn value(name: &str, data_type: i32, dims: &[&str]) -> ValueInfoProto {
    let dim = |text: &&str| Dimension {
        value: Some(text.parse().map_or_else(|_| Dim::Param((*text).to_owned()), Dim::Value)),
    };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = Type::Tensor(TensorType { elem_type: data_type, shape });
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value: Some(tensor) }) }
}

/// A result of which the file states nothing.
fn result(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), r#type: None }
}

fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    NodeProto {
        op_type: op_type.to_owned(),
        input: names(inputs),
        output: names(outputs),
        ..NodeProto::default()
    }
}

fn with(node: NodeProto, name: &str, attribute: AttributeProto) -> NodeProto {
    let mut node = node;
    node.attribute.push(AttributeProto { name: name.to_owned(), ..attribute });
    node
}

fn int(i: i64) -> AttributeProto {
    AttributeProto { r#type: AttributeType::Int.into(), i, ..AttributeProto::default() }
}

fn body(g: GraphProto) -> AttributeProto {
    AttributeProto { r#type: AttributeType::Graph.into(), g: Some(g), ..AttributeProto::default() }
}

fn tensor(name: &str, data_type: i32, dims: &[i64], bytes: usize) -> TensorProto {
    TensorProto {
        name: name.to_owned(),
        data_type,
        dims: dims.to_vec(),
        raw_data: vec![0; bytes],
        ..TensorProto::default()
    }
}

fn int64s(name: &str, dims: &[i64], numbers: &[i64]) -> TensorProto {
    TensorProto { int64_data: numbers.to_vec(), ..tensor(name, INT64, dims, 0) }
}

fn model(graph: GraphProto, functions: Vec<FunctionProto>) -> Vec<u8> {
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 17 }];
    ModelProto { ir_version: 8, opset_import, graph: Some(graph), functions }.encode_to_vec()
}

fn read(graph: &GraphProto, hints: &Hints<'_>) -> Result<Graph> {
    onnx::parse(&model(graph.clone(), Vec::new()), hints).map(|model| model.graph)
}

/// Names of the tensors of a kind, in the plan's order.
fn named(graph: &Graph, kind: TensorKind) -> Vec<&str> {
    let tensors = graph.tensors().iter().filter(|tensor| tensor.kind == kind);
    tensors.filter_map(|tensor| tensor.name.as_deref()).collect()
}

fn sizes(graph: &Graph) -> Vec<(&str, u64)> {
    let made = graph.tensors().iter().filter(|tensor| tensor.kind == TensorKind::Activation);
    made.filter_map(|tensor| Some((tensor.name.as_deref()?, tensor.size))).collect()
}

fn refused(graph: &GraphProto, functions: Vec<FunctionProto>, parts: &[&str]) {
    let error = onnx::parse(&model(graph.clone(), functions), &Hints::default()).err();
    let message = error.map(|error| error.to_string()).unwrap_or_default();
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

/// x[N, 8] is multiplied by a weight that is transposed, and reshaped to extents that are computed.
fn with_constants() -> GraphProto {
    GraphProto {
        node: vec![
            node("Transpose", &["w"], &["wt"]),
            node("MatMul", &["x", "wt"], &["a"]),
            node("Shape", &["a"], &["s"]),
            node("Gather", &["s", "zero"], &["n"]),
            with(node("Concat", &["n", "rest"], &["to"]), "axis", int(0)),
            node("Reshape", &["a", "to"], &["b"]),
            node("Exp", &["b"], &["y"]),
        ],
        input: vec![value("x", FLOAT, &["N", "8"])],
        output: vec![result("y")],
        initializer: vec![
            tensor("w", FLOAT, &[16, 8], 512),
            int64s("zero", &[1], &[0]),
            int64s("rest", &[2], &[4, -1]),
        ],
        ..GraphProto::default()
    }
}

#[test]
fn what_does_not_depend_on_the_data_is_a_constant() {
    let graph = with_constants();
    let dims = vec![("N".to_owned(), 10)];
    let hints = Hints { dims: dims.clone(), keep_order: true, ..Hints::default() };
    let read_one = read(&graph, &hints).unwrap();
    assert_eq!(sizes(&read_one), [("a", 640), ("b", 640), ("y", 640)]);
    assert!(["wt", "s", "n", "to"].iter().all(|name| named(&read_one, TensorKind::Constant).contains(name)));
    // Every result by itself.
    let all = read(&graph, &Hints { no_views: true, ..hints.clone() }).unwrap();
    assert_eq!(sizes(&all).len(), 7);
    // The elements: 10 rows of 4 by 4.
    let known = onnx::known_values(&model(graph.clone(), Vec::new()), &hints).unwrap();
    assert_eq!(known["to"].value, Some(Value::Integers(vec![10, 4, -1])));
    assert_eq!((known["b"].dims.as_slice(), &known["b"].value), (&[Some(10), Some(4), Some(4)][..], &None));
    // A plan for every value has no constants that depend on the value.
    let range = vec![("N".to_owned(), Range { low: 1, high: 64, step: 1 })];
    let hints = Hints { keep_order: true, ..Hints::default() };
    let text = onnx::to_ranged_graph_json(&model(graph, Vec::new()), &hints, &range).unwrap();
    let file: serde_json::Value = serde_json::from_str(&text).unwrap();
    let ops: Vec<&str> =
        file["ops"].as_array().unwrap().iter().filter_map(|op| op["name"].as_str()).collect();
    assert_eq!(ops, ["MatMul", "Shape", "Gather", "Concat", "Reshape", "Exp"]);
}

#[test]
fn results_of_the_model_and_of_chance_are_no_constants() {
    let mut graph = with_constants();
    graph.output.push(result("wt"));
    let random = NodeProto {
        attribute: vec![AttributeProto {
            name: "shape".to_owned(),
            ints: vec![10],
            ..AttributeProto::default()
        }],
        ..node("RandomNormal", &[], &["r"])
    };
    graph.node.extend([random, node("Neg", &["r"], &["z"]), node("Exp", &["z"], &["v"])]);
    graph.output.push(result("v"));
    let hints = Hints { dims: vec![("N".to_owned(), 10)], keep_order: true, ..Hints::default() };
    let read = read(&graph, &hints).unwrap();
    let made: Vec<&str> = sizes(&read).into_iter().map(|(name, _)| name).collect();
    assert_eq!(made, ["wt", "a", "b", "y", "r", "z", "v"]);
}

/// A function of two inputs, one optional, with an attribute, an `If` in its body and a call of
/// another function.
fn functions() -> Vec<FunctionProto> {
    let branch = |op: &str| GraphProto {
        node: vec![node(op, &["t"], &["u"])],
        output: vec![result("u")],
        ..GraphProto::default()
    };
    let axis = AttributeProto { name: "axis".to_owned(), ref_attr_name: "along".to_owned(), ..int(0) };
    let concat = NodeProto { attribute: vec![axis], ..node("Concat", &["t", "t"], &["c"]) };
    let choice = with(node("If", &["truth"], &["d"]), "then_branch", body(branch("Relu")));
    let choice = with(choice, "else_branch", body(branch("Neg")));
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let outer = FunctionProto {
        name: "Outer".to_owned(),
        domain: "own".to_owned(),
        input: names(&["t", "truth"]),
        output: names(&["c", "e"]),
        node: vec![concat, choice, NodeProto { domain: "own".to_owned(), ..node("Inner", &["d"], &["e"]) }],
        attribute_proto: vec![AttributeProto { name: "along".to_owned(), ..int(1) }],
    };
    let inner = FunctionProto {
        name: "Inner".to_owned(),
        domain: "own".to_owned(),
        input: names(&["t"]),
        output: names(&["e"]),
        node: vec![node("Exp", &["t"], &["c"]), node("Neg", &["c"], &["e"])],
        ..FunctionProto::default()
    };
    vec![outer, inner]
}

fn call(outputs: &[&str]) -> NodeProto {
    NodeProto { domain: "own".to_owned(), name: "one".to_owned(), ..node("Outer", &["x", "truth"], outputs) }
}

#[test]
fn functions_of_the_file_are_their_nodes() {
    let graph = |call: NodeProto| GraphProto {
        node: vec![call, node("Exp", &["p"], &["y"]), node("Exp", &["q"], &["z"])],
        input: vec![value("x", FLOAT, &["2", "3"]), value("truth", BOOL, &["1"])],
        output: vec![result("y"), result("z")],
        ..GraphProto::default()
    };
    let read = |node| {
        let model =
            onnx::parse(&model(graph(node), functions()), &Hints { keep_order: true, ..Hints::default() });
        let graph = model.unwrap().graph;
        let bytes: Vec<u64> = ["p", "q", "y"]
            .iter()
            .map(|name| sizes(&graph).iter().find(|(n, _)| n == name).unwrap().1)
            .collect();
        (bytes, graph.ops().len())
    };
    // Concat, two branches and their Join, Exp, Neg, and the two nodes outside.
    assert_eq!(read(call(&["p", "q"])), (vec![48, 24, 48], 8));
    // The caller's attribute is used: 4 by 3 instead of 2 by 6 has the same bytes.
    let known = |node| onnx::known_values(&model(graph(node), functions()), &Hints::default()).unwrap();
    assert_eq!(known(call(&["p", "q"]))["p"].dims, [Some(2), Some(6)]);
    assert_eq!(known(with(call(&["p", "q"]), "along", int(0)))["p"].dims, [Some(4), Some(3)]);
}

#[test]
fn functions_that_call_each_other_without_end_are_refused() {
    let again = |name: &str, count: usize| FunctionProto {
        name: name.to_owned(),
        domain: "own".to_owned(),
        input: vec!["t".to_owned()],
        output: vec!["u".to_owned()],
        node: (0..count)
            .map(|at| NodeProto {
                domain: "own".to_owned(),
                ..node(name, &["t"], &[if at == 0 { "u" } else { "v" }])
            })
            .collect(),
        ..FunctionProto::default()
    };
    let graph = GraphProto {
        node: vec![NodeProto { domain: "own".to_owned(), ..node("F", &["x"], &["y"]) }],
        input: vec![value("x", FLOAT, &["2"])],
        output: vec![result("y")],
        ..GraphProto::default()
    };
    refused(&graph, vec![again("F", 1)], &["node 0 (F)", "16"]);
    refused(&graph, vec![again("F", 40)], &["(F)", "deep"]);
    let mut wide = graph;
    wide.node[0].input.push("x".to_owned());
    refused(&wide, vec![again("F", 1)], &["2 inputs", "1"]);
}

#[test]
fn rows_of_a_loop_of_known_length_are_counted() {
    let step = |count: i64, condition: &str| {
        let body_of = GraphProto {
            node: vec![
                node("Add", &["s", "x"], &["t"]),
                node("Identity", &["go"], &["on"]),
                node("Neg", &["t"], &["row"]),
            ],
            input: vec![value("i", INT64, &[]), value("go", BOOL, &[]), result("s")],
            output: vec![result("on"), result("t"), result("row")],
            ..GraphProto::default()
        };
        let node_of = node("Loop", &["count", condition, "x"], &["last", "rows"]);
        GraphProto {
            node: vec![with(node_of, "body", body(body_of)), node("Exp", &["rows"], &["y"])],
            input: vec![value("x", FLOAT, &["5"]), value("c", BOOL, &[])],
            output: vec![result("y"), result("last")],
            initializer: vec![int64s("count", &[], &[count])],
            ..GraphProto::default()
        }
    };
    let known = onnx::known_values(&model(step(7, ""), Vec::new()), &Hints::default()).unwrap();
    assert_eq!((&known["rows"].dims, &known["y"].dims), (&vec![Some(7), Some(5)], &vec![Some(7), Some(5)]));
    // A condition that the data decides may end it earlier.
    refused(&step(7, "c"), Vec::new(), &["\"rows\"", "depends on the data", "iterations"]);
}

#[test]
fn only_what_depends_on_the_data_is_said_to() {
    let graph = |op: NodeProto| GraphProto {
        node: vec![op, node("Exp", &["a"], &["y"])],
        input: vec![value("x", FLOAT, &["2", "3"]), value("to", INT64, &["2"])],
        output: vec![result("y")],
        ..GraphProto::default()
    };
    for (op, why) in [
        (node("Reshape", &["x", "to"], &["a"]), ["depends on the data", "\"to\""]),
        (node("NonZero", &["x"], &["a"]), ["depends on the data", "NonZero"]),
        (node("Mystery", &["x"], &["a"]), ["not known here", "Mystery"]),
        (
            NodeProto { domain: "com.microsoft".to_owned(), ..node("QAttention", &["x"], &["a"]) },
            ["not known here", "com.microsoft"],
        ),
        (node("SequenceConstruct", &["x"], &["a"]), ["sequence", "SequenceConstruct"]),
        (node("MatMul", &["x", "x"], &["a"]), ["[2, 3]", "3 is not 2"]),
        (node("StringNormalizer", &["x"], &["a"]), ["strings have no fixed size", "\"a\""]),
        (NodeProto { domain: "ai.onnx.ml".to_owned(), ..node("ZipMap", &["x"], &["a"]) }, ["maps", "ZipMap"]),
    ] {
        refused(&graph(op.clone()), Vec::new(), &why);
        let error = onnx::parse(&model(graph(op), Vec::new()), &Hints::default()).unwrap_err().to_string();
        assert_eq!(error.contains("depends on the data"), why[0] == "depends on the data", "{error}");
    }
    // What no rule can find, the file may state.
    let mut stated = graph(node("Mystery", &["x"], &["a"]));
    stated.value_info.push(value("a", FLOAT, &["9"]));
    assert_eq!(sizes(&read(&stated, &Hints::default()).unwrap()), [("a", 36), ("y", 36)]);
}

#[test]
fn types_of_few_bits_and_sparse_constants_have_their_sizes() {
    // bfloat16, the float8 types, uint4, int4, float4, float8e8m0, uint2, int2.
    for (data_type, bytes) in [
        (16, 30),
        (17, 15),
        (18, 15),
        (19, 15),
        (20, 15),
        (21, 8),
        (22, 8),
        (23, 8),
        (24, 15),
        (25, 4),
        (26, 4),
    ] {
        let graph = GraphProto {
            node: vec![node("Identity", &["x"], &["a"]), node("Identity", &["a"], &["y"])],
            input: vec![value("x", data_type, &["3", "5"])],
            output: vec![result("y")],
            ..GraphProto::default()
        };
        let sizes_of = read(&graph, &Hints { no_views: true, ..Hints::default() }).unwrap();
        assert_eq!(sizes(&sizes_of), [("a", bytes), ("y", bytes)], "{data_type}");
    }
    let sparse = SparseTensorProto { values: Some(tensor("w", FLOAT, &[2], 8)), dims: vec![3, 4] };
    let graph = GraphProto {
        node: vec![node("MatMul", &["x", "w"], &["y"])],
        input: vec![value("x", FLOAT, &["5", "3"])],
        output: vec![result("y")],
        sparse_initializer: vec![sparse],
        ..GraphProto::default()
    };
    assert_eq!(sizes(&read(&graph, &Hints::default()).unwrap()), [("y", 80)]);
}

#[test]
fn inputs_without_a_size_are_refused_by_their_kind() {
    for (kind, what) in [
        (Type::Sequence(Unread {}), "is a sequence"),
        (Type::Map(Unread {}), "is a map"),
        (Type::SparseTensor(Unread {}), "is a sparse tensor"),
        (Type::Optional(Unread {}), "is an optional value"),
    ] {
        let input = ValueInfoProto { name: "x".to_owned(), r#type: Some(TypeProto { value: Some(kind) }) };
        let graph = GraphProto {
            node: vec![node("SequenceAt", &["x", "at"], &["y"])],
            input: vec![input],
            initializer: vec![int64s("at", &[], &[0])],
            output: vec![result("y")],
            ..GraphProto::default()
        };
        refused(&graph, Vec::new(), &["input \"x\"", what]);
    }
}

/// Ctrl-C reaches the search for an order, which takes the most time of a reader.
#[test]
fn the_search_for_an_order_can_be_stopped() {
    // Each result joins two earlier ones, so that no simple order is surely the best.
    let mut graph = GraphProto {
        input: vec![value("v0", FLOAT, &["3"]), value("v1", FLOAT, &["5"])],
        ..GraphProto::default()
    };
    for k in 2..24_usize {
        let inputs = [format!("v{}", k * 7 % (k - 1)), format!("v{}", k * 5 % k)];
        let join = node("Concat", &[&inputs[0], &inputs[1]], &[&format!("v{k}")]);
        graph.node.push(with(join, "axis", int(0)));
        graph.node.push(node("Exp", &[&format!("v{k}")], &[&format!("y{k}")]));
    }
    graph.output.push(result("y23"));
    let calls = core::cell::Cell::new(0_u64);
    let count = |limit: u64| {
        calls.set(0);
        let stop = || {
            calls.set(calls.get() + 1);
            calls.get() > limit
        };
        let read =
            onnx::parse(&model(graph.clone(), Vec::new()), &Hints { stop: Some(&stop), ..Hints::default() });
        let order = read.unwrap().reordered.expect("an order");
        assert!(order.peak <= order.peak_before);
        calls.get()
    };
    let all = count(u64::MAX);
    assert!(all > 2, "{all}");
    let few = count(0);
    assert!(few < all, "{few} of {all}");
}
