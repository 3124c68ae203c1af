//! `usm plan model.onnx` on models with `If`, `Loop` and `Scan`: the bodies' operators are planned,
//! and a tensor that a loop needs lives through all of its iterations.

use serde_json::{Value, json};

use crate::onnx_files::{FLOAT, INT64, int64s, node, plan, value};
use crate::proto::{AttributeProto, AttributeType, GraphProto, NodeProto, TensorProto, ValueInfoProto};
use crate::support::{Ran, folder, text};

const BOOL: i32 = 9;

fn body(name: &str, nodes: Vec<NodeProto>, input: Vec<ValueInfoProto>, outputs: &[&str]) -> AttributeProto {
    let output =
        outputs.iter().map(|&name| ValueInfoProto { name: name.to_owned(), ..ValueInfoProto::default() });
    AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Graph.into(),
        g: Some(GraphProto { node: nodes, input, output: output.collect(), ..GraphProto::default() }),
        ..AttributeProto::default()
    }
}

fn named(name: &str, attribute: Vec<AttributeProto>, node: NodeProto) -> NodeProto {
    NodeProto { name: name.to_owned(), attribute, ..node }
}

fn vector(name: &str) -> ValueInfoProto {
    value(name, FLOAT, &["64"])
}

fn untyped(name: &str) -> ValueInfoProto {
    ValueInfoProto { name: name.to_owned(), ..ValueInfoProto::default() }
}

fn branches(then: Vec<NodeProto>, other: Vec<NodeProto>, outputs: [&str; 2]) -> Vec<AttributeProto> {
    vec![body("then_branch", then, vec![], &outputs[..1]), body("else_branch", other, vec![], &outputs[1..])]
}

/// a = Relu(x); y = c ? Neg(a) : Sqrt(Abs(a)).
fn choice() -> GraphProto {
    let attribute = branches(
        vec![node("Neg", &["a"], &["t"])],
        vec![node("Abs", &["a"], &["e"]), node("Sqrt", &["e"], &["t"])],
        ["t", "t"],
    );
    GraphProto {
        node: vec![node("Relu", &["x"], &["a"]), named("choose", attribute, node("If", &["c"], &["y"]))],
        input: vec![value("c", BOOL, &[]), vector("x")],
        output: vec![untyped("y")],
        ..GraphProto::default()
    }
}

/// h = Relu(x); k = Abs(x); five times { h = Tanh(h + k); a row of the result is Neg(h) }; y is the
/// last h.
fn repetition() -> GraphProto {
    let nodes = vec![
        node("Add", &["h", "k"], &["sum"]),
        node("Tanh", &["sum"], &["next"]),
        node("Neg", &["next"], &["row"]),
        node("Identity", &["go"], &["on"]),
    ];
    let inputs = vec![value("i", INT64, &[]), value("go", BOOL, &[]), untyped("h")];
    let attribute = vec![body("body", nodes, inputs, &["on", "next", "row"])];
    GraphProto {
        node: vec![
            node("Relu", &["x"], &["start"]),
            node("Abs", &["x"], &["k"]),
            named("again", attribute, node("Loop", &["times", "", "start"], &["y", "rows"])),
            node("Neg", &["y"], &["z"]),
        ],
        input: vec![vector("x")],
        output: vec![untyped("z"), value("rows", FLOAT, &["5", "64"])],
        initializer: vec![int64s("times", &[5])],
        ..GraphProto::default()
    }
}

/// One step of a running sum of six rows of four; every partial sum is a row of the result.
fn running_sum() -> GraphProto {
    let nodes = vec![node("Add", &["s", "row"], &["sum"]), node("Identity", &["sum"], &["partial"])];
    let mut attribute = vec![body("body", nodes, vec![untyped("s"), untyped("row")], &["sum", "partial"])];
    attribute.push(AttributeProto {
        name: "num_scan_inputs".to_owned(),
        r#type: AttributeType::Int.into(),
        i: 1,
        ..AttributeProto::default()
    });
    GraphProto {
        node: vec![
            node("Relu", &["x"], &["s0"]),
            named("sums", attribute, node("Scan", &["s0", "rows"], &["total", "partials"])),
        ],
        input: vec![value("x", FLOAT, &["4"]), value("rows", FLOAT, &["6", "4"])],
        output: vec![untyped("total"), value("partials", FLOAT, &["6", "4"])],
        ..GraphProto::default()
    }
}

/// The planned graph from the file that the command wrote, and the report.
fn planned(name: &str, graph: GraphProto) -> (Value, Value, String) {
    let out = folder(&format!("{name}_out"));
    let (graph_file, plan_file) = (out.join("graph.json"), out.join("plan.csv"));
    let ran = plan(name, graph, &["--graph", &text(&graph_file), "--output", &text(&plan_file)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let read = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
    (serde_json::from_str(&read(&graph_file)).unwrap(), ran.json(), read(&plan_file))
}

fn names(graph: &Value) -> Vec<&str> {
    graph["ops"].as_array().unwrap().iter().map(|op| op["name"].as_str().unwrap()).collect()
}

/// The half-open lifetime of a tensor in the written plan.
fn life(csv: &str, id: u64) -> (u64, u64) {
    let line = csv.lines().find(|line| line.starts_with(&format!("{id},"))).expect("a row");
    let cells: Vec<&str> = line.split(',').collect();
    (cells[1].parse().unwrap(), cells[2].parse().unwrap())
}

fn op<'a>(graph: &'a Value, name: &str) -> (u64, &'a Value) {
    let at =
        names(graph).iter().position(|found| *found == name).unwrap_or_else(|| panic!("{name}: {graph}"));
    (at as u64, &graph["ops"][at])
}

#[test]
fn both_branches_of_a_choice_are_planned() {
    let (graph, report, _) = planned("onnx_if", choice());
    assert_eq!(names(&graph), ["Relu", "Neg", "Abs", "Sqrt", "choose/Join"]);
    // a, the two results, the tensor between, and y: 64 floats each.
    assert_eq!((&report["buffers"], &report["naive"]), (&json!(5), &json!(5 * 256)));
    let join = &op(&graph, "choose/Join").1["inputs"];
    assert_eq!(join.as_array().unwrap().len(), 3, "both results and the condition");
}

/// Exporters query the number of dimensions; the result does not depend on the data.
#[test]
fn a_branch_that_cannot_run_is_left_out() {
    for (dimensions, ran, left_out) in [(1, "Neg", "Concat"), (2, "Concat", "Neg")] {
        let mut concat = node("Concat", &["a", "a"], &["t"]);
        concat.attribute.push(AttributeProto {
            name: "axis".to_owned(),
            r#type: AttributeType::Int.into(),
            ..AttributeProto::default()
        });
        // The branches differ in size, so they could not be planned together.
        let attribute = branches(vec![node("Neg", &["a"], &["t"])], vec![concat], ["t", "t"]);
        let graph = GraphProto {
            node: vec![
                node("Relu", &["x"], &["a"]),
                node("Shape", &["a"], &["shape"]),
                node("Size", &["shape"], &["count"]),
                node("Equal", &["count", "wanted"], &["c"]),
                named("choose", attribute, node("If", &["c"], &["y"])),
            ],
            input: vec![vector("x")],
            output: vec![untyped("y")],
            initializer: vec![int64s("wanted", &[dimensions])],
            ..GraphProto::default()
        };
        let (graph, report, _) = planned(&format!("onnx_dead_{dimensions}"), graph);
        assert!(names(&graph).contains(&ran) && !names(&graph).contains(&left_out), "{graph}");
        assert_eq!(
            op(&graph, "choose/Join").1["inputs"].as_array().unwrap().len(),
            2,
            "the result and the condition"
        );
        assert_eq!(report["feasible"], true);
    }
}

/// a = Relu(x); y = rate = 16000 ? Neg(a) : a added to a tensor of another shape.
fn by_rate() -> GraphProto {
    let attribute = branches(
        vec![node("Neg", &["a"], &["t"])],
        vec![node("MatMul", &["a", "weights"], &["t"])],
        ["t", "t"],
    );
    let weights = int64s("weights", &[7; 5]);
    GraphProto {
        node: vec![
            node("Relu", &["x"], &["a"]),
            node("Equal", &["rate", "wanted"], &["c"]),
            named("choose", attribute, node("If", &["c"], &["y"])),
        ],
        input: vec![value("rate", INT64, &["1"]), vector("x")],
        output: vec![untyped("y")],
        initializer: vec![int64s("wanted", &[16000]), weights],
        ..GraphProto::default()
    }
}

#[test]
fn the_value_of_an_input_chooses_a_branch() {
    let ran = plan("onnx_value", by_rate(), &["--value", "rate=16000"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(!ran.stderr.contains("left out"), "{}", ran.stderr);
    for (value, part) in
        [("rate=x", "\"x\""), ("speed=3", "speed"), ("x=3", "one number"), ("rate", "INPUT=VALUE")]
    {
        plan("onnx_value_bad", by_rate(), &["--value", value]).refused(&["--value", part]);
    }
}

#[test]
fn a_branch_that_no_shape_fits_is_left_out_with_a_remark() {
    let ran = plan("onnx_unfit", by_rate(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("the branch for false of the If on \"c\" is left out"), "{}", ran.stderr);
}

/// Extents of 1 are taken away, whichever these are; one after the other.
#[test]
fn a_squeeze_without_axes_is_read() {
    let graph = GraphProto {
        node: vec![
            node("Relu", &["x"], &["a"]),
            node("Squeeze", &["a"], &["s"]),
            node("Unsqueeze", &["s", "axes"], &["u"]),
            node("Squeeze", &["u"], &["v"]),
            node("Concat", &["v", "v"], &["y"]),
        ],
        input: vec![value("x", FLOAT, &["1", "64", "1"])],
        output: vec![untyped("y")],
        initializer: vec![int64s("axes", &[0])],
        ..GraphProto::default()
    };
    let mut graph = graph;
    graph.node[4].attribute.push(AttributeProto {
        name: "axis".to_owned(),
        r#type: AttributeType::Int.into(),
        ..AttributeProto::default()
    });
    let (_, report, _) = planned("onnx_squeeze", graph);
    assert_eq!(report["naive"], json!(4 * 256 + 512));
}

#[test]
fn what_a_loop_needs_lives_through_all_iterations() {
    let (graph, report, csv) = planned("onnx_loop", repetition());
    let loops = graph["loops"].as_array().unwrap();
    assert_eq!(loops.len(), 1);
    let (first, last) = (loops[0][0].as_u64().unwrap(), loops[0][1].as_u64().unwrap());
    assert_eq!((first, names(&graph)[first as usize]), (op(&graph, "Add").0 - 1, "again/Number"));
    assert!(names(&graph)[last as usize].starts_with("again/Next"), "{graph}");
    // Each Next states what it writes: the condition, h, and a row.
    let written = |op: &Value| {
        let tensors = graph["tensors"].as_array().unwrap();
        let of = tensors.iter().find(|tensor| tensor["id"] == op["outputs"][0]).unwrap()["alias_of"].clone();
        tensors.iter().find(|tensor| tensor["id"] == of).unwrap()["name"].as_str().unwrap().to_owned()
    };
    let next =
        graph["ops"].as_array().unwrap().iter().filter(|op| op["name"].as_str().unwrap().contains("/Next"));
    let next: Vec<String> = next.map(written).collect();
    assert_eq!(next, ["rows", "again/body#1/h"], "an Identity hands the condition on");
    assert_eq!(last + 1, op(&graph, "again/Leave").0);
    // Only the body's first operator reads k, again in every iteration.
    let k = op(&graph, "Abs").1["outputs"][0].as_u64().unwrap();
    assert_eq!(life(&csv, k), (op(&graph, "Abs").0, last + 1));
    // The body's own h is written before the loop and at the end of each iteration.
    let h = op(&graph, "Add").1["inputs"][0].as_u64().unwrap();
    let (lower, upper) = life(&csv, h);
    assert!(lower < first && upper == last + 2, "[{lower}, {upper}), loop [{first}, {last}]");
    // The rows live from before the loop to the end of the run.
    assert!(report["peak"].as_u64().unwrap() >= 5 * 256 + 3 * 256);
}

/// q becomes the p of the iteration before, which p2 overwrites.
#[test]
fn a_state_that_another_one_takes_is_read_before_it_is_overwritten() {
    let nodes = vec![
        node("Exp", &["p"], &["t"]),
        node("Neg", &["t"], &["p2"]),
        node("Identity", &["p"], &["q2"]),
        node("Identity", &["go"], &["on"]),
    ];
    let inputs = vec![value("i", INT64, &[]), value("go", BOOL, &[]), vector("p"), vector("q")];
    let order = |outputs: &[&str], name: &str| {
        let attribute = vec![body("body", nodes.clone(), inputs.clone(), outputs)];
        let graph = GraphProto {
            node: vec![
                node("Relu", &["x"], &["p0"]),
                node("Neg", &["x"], &["q0"]),
                named("again", attribute, node("Loop", &["times", "", "p0", "q0"], &["y", "z"])),
            ],
            input: vec![vector("x")],
            output: vec![vector("y"), vector("z")],
            initializer: vec![int64s("times", &[3])],
            ..GraphProto::default()
        };
        let (graph, ..) = planned(name, graph);
        let ends = |op: &&str| ["/Next", "/Hold"].iter().any(|part| op.contains(part));
        let ops = names(&graph).into_iter().filter(ends).map(|op| op.split('#').next().unwrap().to_owned());
        let tensors = graph["tensors"].as_array().unwrap();
        let views = tensors.iter().filter(|tensor| !tensor["alias_of"].is_null());
        let views: Vec<String> = views
            .map(|tensor| tensor["name"].as_str().unwrap().rsplit('/').next().unwrap().to_owned())
            .collect();
        (ops.collect::<Vec<_>>(), views)
    };
    // The one that nobody else reads goes first.
    assert_eq!(
        order(&["on", "p2", "q2"], "onnx_taken"),
        (vec!["again/Next".to_owned(); 2], vec!["q".to_owned(), "p".to_owned()])
    );
    // Both change places: one of them is held.
    let swapped = ["again/Hold", "again/Next", "again/Next"].map(str::to_owned).to_vec();
    assert_eq!(order(&["on", "q", "p"], "onnx_swapped").0, swapped);
}

#[test]
fn a_scan_takes_its_sequence_apart() {
    let (graph, _, csv) = planned("onnx_scan", running_sum());
    let (first, element) = op(&graph, "sums/Element");
    assert_eq!(graph["loops"][0][0], first);
    let row = element["outputs"][0].as_u64().unwrap();
    let size = |id: u64| {
        let tensors = graph["tensors"].as_array().unwrap();
        tensors.iter().find(|tensor| tensor["id"] == id).unwrap()["size"].as_u64().unwrap()
    };
    assert_eq!(size(row), 16, "one row of four floats");
    assert!(life(&csv, row).0 == first);
    assert!(graph["tensors"].as_array().unwrap().iter().any(|tensor| tensor["size"] == 96));
}

#[test]
fn bodies_may_have_bodies() {
    let mut graph = repetition();
    let inner = branches(vec![node("Neg", &["sum"], &["n"])], vec![node("Abs", &["k"], &["n"])], ["n", "n"]);
    let loop_body = graph.node[2].attribute[0].g.as_mut().unwrap();
    loop_body.node[1] = named("inner", inner, node("If", &["go"], &["next"]));
    let (graph, _, csv) = planned("onnx_nested", graph);
    let (join, _) = op(&graph, "inner/Join");
    let (first, last) = (graph["loops"][0][0].as_u64().unwrap(), graph["loops"][0][1].as_u64().unwrap());
    assert!(first < join && join < last);
    let k = op(&graph, "Abs").1["outputs"][0].as_u64().unwrap();
    assert_eq!(life(&csv, k).1, last + 1);
}

/// x of 64 floats: Neg of it, or Abs and Sqrt of it.
fn either(condition: &str, result: &str) -> NodeProto {
    let attribute = branches(
        vec![node("Neg", &["x"], &["t"])],
        vec![node("Abs", &["x"], &["e"]), node("Sqrt", &["e"], &["t"])],
        ["t", "t"],
    );
    named(result, attribute, node("If", &[condition], &[result]))
}

/// The first branch gives a constant, and so does the other.
#[test]
fn a_constant_of_one_branch_decides_nothing() {
    let constants = || {
        branches(
            vec![node("Identity", &["one"], &["t"])],
            vec![node("Identity", &["five"], &["t"])],
            ["t", "t"],
        )
    };
    let graph = || GraphProto {
        node: vec![
            named("number", constants(), node("If", &["c"], &["k"])),
            node("Equal", &["k", "one"], &["is_one"]),
            either("is_one", "y"),
        ],
        input: vec![value("c", BOOL, &[]), vector("x")],
        output: vec![untyped("y")],
        initializer: vec![int64s("one", &[1]), int64s("five", &[5])],
        ..GraphProto::default()
    };
    let (planned, ..) = planned("onnx_constant_branches", graph());
    assert!(["Neg", "Sqrt"].iter().all(|op| names(&planned).contains(op)), "{planned}");

    // As a shape, 1 would be an extent too small.
    let mut graph = graph();
    graph.node.truncate(1);
    graph.node.extend([node("Expand", &["scalar", "k"], &["wide"]), node("Relu", &["wide"], &["y"])]);
    graph.initializer.push(crate::onnx_files::floats("scalar", &[1]));
    plan("onnx_shape_of_a_branch", graph, &[]).refused(&["Expand", "\"wide\"", "depends on the data"]);
}

/// The first iteration has the number 0, and the initial values of the body.
#[test]
fn a_value_of_one_iteration_decides_nothing() {
    let scalar = |name: &str, value: i64| TensorProto { dims: Vec::new(), ..int64s(name, &[value]) };
    // `kept` comes back unchanged, `count` does not.
    let loop_of = |nodes: Vec<NodeProto>, output: &str| {
        let body_nodes = vec![
            node("Identity", &["go"], &["on"]),
            node("Identity", &["kept"], &["kept_on"]),
            node("Add", &["count", "one"], &["count_on"]),
        ];
        let inputs = vec![value("i", INT64, &[]), value("go", BOOL, &[]), untyped("kept"), untyped("count")];
        let outputs = ["on", "kept_on", "count_on", output];
        let attribute = vec![body("body", [body_nodes, nodes].concat(), inputs, &outputs)];
        let inputs = ["times", "", "five", "one"];
        GraphProto {
            node: vec![named("again", attribute, node("Loop", &inputs, &["k", "n", "y"]))],
            input: vec![vector("x")],
            output: vec![value("k", INT64, &[]), value("n", INT64, &[]), value("y", FLOAT, &["5", "64"])],
            initializer: vec![scalar("times", 5), scalar("one", 1), scalar("five", 5)],
            ..GraphProto::default()
        }
    };
    let branches_left = |name: &str, compared: [&str; 2]| {
        let nodes = vec![node("Equal", &compared, &["same"]), either("same", "row")];
        let (planned, ..) = planned(name, loop_of(nodes, "row"));
        ["Neg", "Sqrt"].map(|op| names(&planned).contains(&op))
    };
    assert_eq!(branches_left("onnx_first_iteration", ["i", "five"]), [true, true]);
    assert_eq!(branches_left("onnx_first_count", ["count", "one"]), [true, true]);
    assert_eq!(branches_left("onnx_kept", ["kept", "five"]), [true, false]);

    let nodes = vec![
        node("Unsqueeze", &["count", "axis"], &["shape"]),
        node("Expand", &["x", "shape"], &["wide"]),
        node("Relu", &["x"], &["row"]),
    ];
    let mut graph = loop_of(nodes, "row");
    graph.initializer.push(int64s("axis", &[0]));
    plan("onnx_shape_of_an_iteration", graph, &[]).refused(&["Expand", "wide", "depends on the data"]);
}

/// Inference computes with a substitute until the shape before the Squeeze is known.
#[test]
fn a_squeeze_without_axes_decides_which_branch_runs() {
    for (dimensions, left) in [(1, "Neg"), (3, "Sqrt")] {
        let graph = GraphProto {
            node: vec![
                node("Squeeze", &["z"], &["s"]),
                node("Shape", &["s"], &["shape"]),
                node("Size", &["shape"], &["count"]),
                node("Equal", &["count", "wanted"], &["c"]),
                either("c", "y"),
            ],
            input: vec![vector("x"), value("z", FLOAT, &["1", "64", "1"])],
            output: vec![untyped("y")],
            initializer: vec![int64s("wanted", &[dimensions])],
            ..GraphProto::default()
        };
        let (planned, ..) = planned(&format!("onnx_squeezed_{dimensions}"), graph);
        assert_eq!(
            ["Neg", "Sqrt"].map(|op| names(&planned).contains(&op)),
            ["Neg", "Sqrt"].map(|op| op == left)
        );
    }
}

#[test]
fn control_flow_that_cannot_be_planned_is_refused_by_name() {
    let refused = |name: &str, graph: GraphProto, parts: &[&str]| plan(name, graph, &[]).refused(parts);
    let body_of = |graph: &mut GraphProto, node: usize, which: usize| -> GraphProto {
        core::mem::take(graph.node[node].attribute[which].g.as_mut().unwrap())
    };

    let mut graph = choice();
    graph.node[1].op_type = "SequenceMap".to_owned();
    refused("onnx_stranger", graph, &["node 1", "choose", "SequenceMap", "no If, Loop or Scan"]);

    let mut graph = choice();
    graph.node[1].attribute.pop();
    refused("onnx_one_branch", graph, &["choose", "else_branch"]);

    let mut graph = choice();
    let mut branch = body_of(&mut graph, 1, 1);
    branch.output.push(untyped("e"));
    graph.node[1].attribute[1].g = Some(branch);
    refused("onnx_branch_outputs", graph, &["choose", "2 outputs of a branch, not 1"]);

    // One branch returns 64 floats, the other 8.
    let mut graph = choice();
    let mut branch = body_of(&mut graph, 1, 0);
    branch.node = vec![node("Neg", &["w"], &["t"])];
    graph.node[1].attribute[0].g = Some(branch);
    graph.initializer = vec![crate::onnx_files::floats("w", &[8])];
    refused("onnx_branch_sizes", graph, &["choose", "32", "256"]);

    // Each iteration returns twice as much as it received.
    let mut graph = repetition();
    let mut growing = body_of(&mut graph, 2, 0);
    growing.node[1] = node("Concat", &["sum", "h"], &["next"]);
    growing.node[1].attribute.push(AttributeProto {
        name: "axis".to_owned(),
        r#type: AttributeType::Int.into(),
        ..AttributeProto::default()
    });
    graph.node[2].attribute[0].g = Some(growing);
    refused("onnx_growing", graph, &["again", "256", "512"]);

    let mut graph = repetition();
    graph.node[2].input.pop();
    refused("onnx_loop_inputs", graph, &["again", "2 inputs, not 3"]);

    let mut graph = running_sum();
    graph.node[1].attribute.pop();
    refused("onnx_scan_count", graph, &["sums", "num_scan_inputs"]);

    let mut graph = repetition();
    let mut nameless = body_of(&mut graph, 2, 0);
    nameless.input[0].name.clear();
    graph.node[2].attribute[0].g = Some(nameless);
    refused("onnx_nameless", graph, &["again", "an input of its body has no name"]);

    let mut graph = choice();
    graph.node[1].input[0].clear();
    refused("onnx_no_condition", graph, &["choose", "it has no condition"]);

    // A body that reads an undefined value.
    let mut graph = choice();
    let mut branch = body_of(&mut graph, 1, 0);
    branch.node[0].input[0] = "ghost".to_owned();
    graph.node[1].attribute[0].g = Some(branch);
    refused("onnx_body_ghost", graph, &["Neg", "ghost"]);
}

#[test]
fn bodies_nested_beyond_reason_are_refused_without_harm() {
    let mut inner = vec![node("Neg", &["a"], &["t"])];
    for _ in 0..20 {
        let attribute = branches(inner, vec![node("Abs", &["a"], &["t"])], ["t", "t"]);
        inner = vec![named("deep", attribute, node("If", &["c"], &["t"]))];
    }
    let mut graph = choice();
    graph.node[1] = inner.pop().unwrap();
    graph.node[1].output[0] = "y".to_owned();
    let ran: Ran = plan("onnx_deep", graph, &[]);
    ran.refused(&["deep", "16"]);
}
