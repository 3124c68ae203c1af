//! `usm plan model.onnx` with shape inference: small models made here, real ones from a folder, and
//! broken ones.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::onnx_files::{FLOAT, INT64, bytes, chain, floats, int64s, node, plan, plan_bytes, value};
use crate::proto::{AttributeProto, AttributeType, GraphProto, NodeProto, TensorProto};
use crate::support::{file, folder, shared, text, usm};
use skip::missing;

const STRING: i32 = 8;

#[test]
fn missing_shapes_are_inferred_from_the_inputs() {
    let ran = plan("onnx_chain", chain(), &["--dim", "N=10"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let report = ran.json();
    // Three results of 10 x 16 floats, two of them live at a time.
    assert_eq!((&report["buffers"], &report["naive"]), (&json!(3), &json!(3 * 640)));
    assert_eq!((&report["peak"], &report["lower_bound"]), (&json!(2 * 640), &json!(2 * 640)));
}

#[test]
fn symbolic_dimensions_without_a_value_are_named() {
    plan("onnx_symbols", chain(), &[]).refused(&["model.onnx", "`N`", "--dim N=VALUE"]);
    plan("onnx_symbols_other", chain(), &["--dim", "N=1", "--dim", "K=2"]).refused(&["--dim", "`K`"]);
    plan("onnx_symbols_twice", chain(), &["--dim", "N=1", "--dim", "N=2"]).refused(&["N", "1", "2"]);
    let mut graph = chain();
    graph.input = vec![value("x", FLOAT, &["-1", "8"])];
    plan("onnx_negative", graph.clone(), &[]).refused(&["`x.0`"]);
    assert_eq!(plan("onnx_negative_given", graph.clone(), &["--dim", "x.0=10"]).json()["naive"], 3 * 640);
    for nothing in ["-", "?"] {
        graph.input = vec![value("x", FLOAT, &[nothing, "8"])];
        plan("onnx_nothing", graph.clone(), &[]).refused(&["`x.0`"]);
        assert_eq!(plan("onnx_nothing_given", graph.clone(), &["--dim", "x.0=10"]).code, 0);
    }
    // Exporters write expressions; the name is everything before the last `=`.
    graph.input = vec![value("x", FLOAT, &["past=1 + 1", "8"])];
    assert_eq!(plan("onnx_expression", graph, &["--dim", "past=1 + 1=10"]).json()["naive"], 3 * 640);
}

#[test]
fn weights_are_constants_and_outside_of_the_arena() {
    let mut graph = chain();
    // Old files list initializers among the inputs; constants may also be nodes.
    graph.input.push(value("w", FLOAT, &["8", "16"]));
    let to = graph.initializer.pop().unwrap();
    let attribute = AttributeProto {
        name: "value".to_owned(),
        r#type: AttributeType::Tensor.into(),
        t: Some(to),
        ..AttributeProto::default()
    };
    graph.node.insert(0, NodeProto { attribute: vec![attribute], ..node("Constant", &[], &["to"]) });
    let report = plan("onnx_constants", graph, &["--dim", "N=10"]).json();
    assert_eq!((&report["buffers"], &report["naive"]), (&json!(3), &json!(3 * 640)));
}

#[test]
fn refusals_name_the_place() {
    let mut graph = chain();
    graph.node[1].name = "activate".to_owned();
    let good = graph.clone();

    graph.node[1].input[0] = "ghost".to_owned();
    plan("onnx_ghost", graph, &["--dim", "N=1"]).refused(&["node 1", "activate", "Relu", "ghost"]);

    let mut graph = good.clone();
    graph.node.swap(0, 1);
    plan("onnx_order", graph, &["--dim", "N=1"]).refused(&["node 0", "activate", "\"a\""]);

    let mut graph = good.clone();
    graph.node[1].output[0] = "a".to_owned();
    plan("onnx_twice", graph, &["--dim", "N=1"]).refused(&["activate", "\"a\"", "exists"]);

    let mut graph = good.clone();
    graph.output[0].name = "z".to_owned();
    plan("onnx_output", graph, &["--dim", "N=1"]).refused(&["output", "\"z\""]);

    let mut graph = good.clone();
    graph.initializer[0].raw_data.truncate(100);
    plan("onnx_data", graph, &["--dim", "N=1"]).refused(&["\"w\"", "100", "512"]);

    let mut graph = good.clone();
    graph.node[1] =
        NodeProto { name: "odd".to_owned(), domain: "example".to_owned(), ..node("Mystery", &["a"], &["b"]) };
    plan("onnx_unknown", graph, &["--dim", "N=1"]).refused(&["odd", "Mystery", "\"b\""]);

    let mut graph = good.clone();
    graph.input[0] = value("x", STRING, &["N", "8"]);
    plan("onnx_string", graph, &["--dim", "N=1"]).refused(&["\"x\"", "strings"]);

    let mut graph = good.clone();
    graph.value_info = vec![value("a", FLOAT, &["4611686018427387904", "4611686018427387904"])];
    plan("onnx_huge", graph, &["--dim", "N=1"]).refused(&["\"a\"", "4611686018427387904", "64 bits"]);

    // Shapes that contradict each other.
    let mut graph = good;
    graph.initializer[1] = int64s("to", &[0, 5, 5]);
    graph.output[0] = value("y", FLOAT, &["M", "5", "5"]);
    plan("onnx_clash", graph, &["--dim", "N=10"]).refused(&["node 2", "Reshape", "\"y\""]);
}

/// The models of `USM_ONNX_MODELS` (a folder, or several as in PATH), by file name.
fn models() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let Some(folders) = std::env::var_os("USM_ONNX_MODELS") else {
        missing("models", "USM_ONNX_MODELS names no folder with ONNX models");
        return found;
    };
    let mut folders: Vec<PathBuf> = std::env::split_paths(&folders).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "onnx") {
                found.insert(entry.file_name().to_string_lossy().into_owned(), path);
            }
        }
    }
    if found.is_empty() {
        missing("models", "there is no .onnx file under USM_ONNX_MODELS");
    }
    found
}

/// Dimensions of the models with known names, and the instance that others extracted at the same
/// dimensions.
fn known(name: &str) -> Option<(&'static [&'static str], &'static str)> {
    // The set-up prefixes the name with the package.
    Some(match name {
        _ if name.ends_with("ch_PP-OCRv4_det_infer.onnx") => {
            (&["p2o.DynamicDimension.0=1", "p2o.DynamicDimension.1=320", "p2o.DynamicDimension.2=320"], "")
        }
        _ if name.ends_with("ch_PP-OCRv4_rec_infer.onnx") => {
            (&["p2o.DynamicDimension.0=6", "x.2=48", "p2o.DynamicDimension.1=320"], "ppocr4_rec_b6")
        }
        _ if name.ends_with("ch_ppocr_mobile_v2.0_cls_infer.onnx") => {
            (&["x.0=6", "x.2=48", "x.3=192"], "ppocr2_cls_b6")
        }
        _ if name.ends_with("magika.onnx") || name.ends_with("model.onnx") => {
            (&["unk__214=32"], "magika33_b32")
        }
        _ => return None,
    })
}

/// Real models, in order and out of order: planned, verified, and of the size that an independent
/// extraction found.
#[test]
fn real_models_are_planned_on_both_queues() {
    let mut planned = 0;
    for (name, path) in models() {
        let Some((dims, instance)) = known(&name) else {
            println!("{name}: left out, its dimensions are not known here");
            continue;
        };
        let path = text(&path);
        let plan = |queue: &str, options: &[&'static str]| {
            let mut arguments = vec!["plan", &path, "--json", "--queue", queue];
            arguments.extend(options);
            arguments.extend(dims.iter().flat_map(|dim| ["--dim", dim]));
            let ran = usm(&arguments);
            assert_eq!(ran.code, 0, "{name}: {}", ran.stderr);
            ran.json()
        };
        let as_written = ["--keep-order", "--no-views"];
        let (in_order, out_of_order) = (plan("in-order", &as_written), plan("out-of-order", &as_written));
        let number = |report: &Value, key: &str| report[key].as_u64().unwrap();
        assert!(number(&in_order, "lower_bound") <= number(&in_order, "peak"));
        assert!(number(&in_order, "peak") < number(&in_order, "naive") / 4, "{name}: {in_order}");
        assert!(number(&in_order, "lower_bound") <= number(&out_of_order, "lower_bound"), "{name}");
        assert_eq!(in_order["naive"], out_of_order["naive"]);
        for (queue, as_written) in [("in-order", &in_order), ("out-of-order", &out_of_order)] {
            let peak = number(&plan(queue, &[]), "peak");
            assert!(peak < number(as_written, "peak"), "{name}, {queue}: {peak}, as written {as_written}");
        }
        planned += 1;
        let Some(data) = shared("planner").filter(|_| !instance.is_empty()) else { continue };
        let other = usm(&["plan", &text(&data.join(format!("{instance}.graph.csv"))), "--json"]).json();
        assert_eq!(in_order["buffers"], other["buffers"], "{name}");
        // The instance rounds every size up to 64 bytes.
        let slack = 64 * number(&other, "buffers");
        for key in ["lower_bound", "naive"] {
            let (mine, theirs) = (number(&in_order, key), number(&other, key));
            assert!(mine <= theirs && theirs < mine + slack, "{key} of {name}: {mine}, there {theirs}");
        }
    }
    // A folder of unknown models would test nothing.
    assert!(planned > 0 || models().is_empty(), "none of the models was planned");
}

#[test]
fn real_models_name_the_dimensions_that_they_need() {
    for (name, path) in models() {
        let Some((dims, _)) = known(&name) else { continue };
        let first = dims[0].split_once('=').unwrap().0;
        usm(&["plan", &text(&path)]).refused(&[
            &name,
            &format!("`{first}`"),
            &format!("--dim {first}=VALUE"),
        ]);
    }
}

/// A small generator, so that a failure can be repeated.
struct Dice(u64);

impl Dice {
    /// A number below `limit`.
    fn roll(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A broken model ends the command with a plan or a message and in no other way.
fn survives(folder: &Path, content: &[u8], dims: &[&str]) -> i32 {
    let path = file(folder, "broken.onnx", content);
    let mut arguments = vec!["plan", &path, "--json", "--strategy", "greedy-by-size"];
    arguments.extend(dims.iter().flat_map(|dim| ["--dim", dim]));
    let ran = usm(&arguments);
    match ran.code {
        0 => assert!(ran.json()["peak"].is_u64()),
        _ => ran.refused(&["broken.onnx"]),
    }
    ran.code
}

#[test]
fn every_truncation_and_a_flip_of_every_byte_is_survived() {
    let folder = folder("onnx_flips");
    let mut graph = chain();
    graph.initializer[0] = floats("w", &[8, 1]);
    graph.node.truncate(2);
    graph.output = vec![value("b", FLOAT, &["N", "1"])];
    let content = bytes(graph);
    assert_eq!(survives(&folder, &content, &["N=1"]), 0);
    for end in 0..content.len() {
        survives(&folder, &content[..end], &["N=1"]);
    }
    let mut dice = Dice(7);
    for at in 0..content.len() {
        let mut broken = content.clone();
        broken[at] ^= 1 << dice.roll(8);
        survives(&folder, &broken, &["N=1"]);
    }
}

#[test]
fn byte_flips_in_real_models_are_survived() {
    let folder = folder("onnx_real_flips");
    for (name, path) in models() {
        let Some((dims, _)) = known(&name) else { continue };
        let content = std::fs::read(&path).unwrap();
        let mut dice = Dice(content.len() as u64);
        for _ in 0..10 {
            let mut broken = content.clone();
            for _ in 0..=dice.roll(8) {
                // Most of a model is weights, which break nothing. The graph lies at the ends and
                // between.
                let at = if dice.roll(2) == 0 { dice.roll(4096) } else { dice.roll(content.len()) };
                broken[at] = dice.roll(256) as u8;
            }
            survives(&folder, &broken, dims);
        }
    }
}

/// A real model cut off at places of every kind is refused without a crash.
#[test]
fn truncated_real_models_are_refused() {
    for (name, path) in models() {
        let content = std::fs::read(&path).unwrap();
        for part in [1, 2, 3, 5, 8, 13] {
            let cut = &content[..content.len() * part / 16];
            let ran = plan_bytes("onnx_truncated", cut, &[]);
            ran.refused(&["model.onnx"]);
            assert!(ran.stderr.contains("not an ONNX file"), "{name}: {}", ran.stderr);
        }
    }
}

/// Inference computes values too. A value that exceeds the memory must not end the command.
#[test]
fn values_that_would_fill_the_memory_are_refused() {
    let huge = 1_i64 << 42;
    let scalar = |name: &str, value: i64| TensorProto { dims: Vec::new(), ..int64s(name, &[value]) };
    let large = 1_i64 << 30;
    let cases = [
        ("ConstantOfShape", vec!["n"], vec![int64s("n", &[huge])]),
        ("ConstantOfShape", vec!["n"], vec![int64s("n", &[large, large])]),
        ("Expand", vec!["one", "n"], vec![int64s("one", &[1]), int64s("n", &[huge])]),
        (
            "Range",
            vec!["zero", "end", "step"],
            vec![scalar("zero", 0), scalar("end", huge), scalar("step", 1)],
        ),
        ("Tile", vec!["one", "n"], vec![int64s("one", &[1]), int64s("n", &[huge])]),
    ];
    for (op, inputs, initializer) in cases {
        let graph = GraphProto {
            node: vec![node(op, &inputs, &["big"]), node("Identity", &["big"], &["y"])],
            output: vec![value("y", FLOAT, &["M"])],
            initializer,
            ..GraphProto::default()
        };
        let ran = plan(&format!("onnx_memory_{op}"), graph, &[]);
        assert!(matches!(ran.code, 0 | 2), "{op}: {} {}", ran.code, ran.stderr);
        if ran.code == 0 {
            assert!(ran.json()["naive"].as_u64() > Some(1 << 42), "{op}: {}", ran.stdout);
        }
    }
    // As many dimensions as the product of the expressions.
    let graph = GraphProto {
        node: vec![node("ConstantOfShape", &["n"], &["big"]), node("Identity", &["big"], &["y"])],
        input: vec![value("n", INT64, &["1099511627776"])],
        output: vec![value("y", FLOAT, &["M"])],
        ..GraphProto::default()
    };
    plan("onnx_memory_rank", graph, &[]).refused(&["model.onnx", "\"big\""]);
}

/// Exporters write an output's dimensions by hand.
#[test]
fn the_operator_of_an_output_gives_its_shape() {
    let graph = || GraphProto {
        node: vec![node("Relu", &["x"], &["a"]), node("Add", &["a", "one"], &["y"])],
        input: vec![value("x", FLOAT, &["N", "3"])],
        output: vec![value("y", FLOAT, &["N"])],
        initializer: vec![floats("one", &[1])],
        ..GraphProto::default()
    };
    let ran = plan("onnx_output", graph(), &["--dim", "N=2"]);
    assert_eq!((ran.code, &ran.json()["naive"]), (0, &json!(2 * 24)), "{}", ran.stderr);
    let remark = "the shape [2] that the file states for output \"y\" is not that of its operator, [2, 3]";
    assert_eq!(ran.stderr.matches(remark).count(), 1, "{}", ran.stderr);
    let range = text(&folder("onnx_output_range").join("range.json"));
    let ran = plan("onnx_output_values", graph(), &["--dim", "N=1..8", "--range-plan", &range]);
    assert_eq!((ran.code, ran.stderr.matches("the shape [8]").count()), (0, 1), "{}", ran.stderr);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

/// The values that are read first may all be multiples of 64; one more halves the expressions.
#[test]
fn an_expression_holds_for_values_between_those_read() {
    for (step, range) in [(2, "64..4096"), (160, "0..64512"), (3, "64..16192:4")] {
        let graph = GraphProto {
            node: vec![
                node("Slice", &["x", "start", "end", "axis", "step"], &["s"]),
                node("Exp", &["s"], &["y"]),
            ],
            input: vec![value("x", FLOAT, &["W"])],
            output: vec![value("y", FLOAT, &["M"])],
            initializer: vec![
                int64s("start", &[0]),
                int64s("end", &[i64::MAX]),
                int64s("axis", &[0]),
                int64s("step", &[step]),
            ],
            ..GraphProto::default()
        };
        let range_plan = text(&folder("onnx_between_range").join("range.json"));
        let dim = format!("W={range}");
        let ran = plan("onnx_between", graph, &["--dim", &dim, "--range-plan", &range_plan]);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        for width in [64, 68, 160, 164, 1280, 3200, 3204, 4000, 4096] {
            let ran = usm(&["plan", &range_plan, "--json", "--dim", &format!("W={width}")]);
            let naive = 2 * 4 * (width + step - 1).div_euclid(step);
            assert_eq!(ran.json()["naive"], naive, "{range} at {width}: {}", ran.stderr);
        }
    }
}

/// The libraries that infer shapes do not agree with the standard on all of these.
#[test]
fn a_slice_has_the_extents_of_the_standard() {
    let far = i64::MAX;
    // Starts, ends, axes, steps of a 6 by 10 matrix; elements of the result.
    let cases = [
        ([-far, 0], [far, 10], [0, 1], [1, 1], 60),
        ([-far, 0], [2, 10], [0, 1], [1, 1], 20),
        ([-100, -100], [far, far], [-2, -1], [1, 1], 60),
        ([4, 0], [2, 10], [0, 1], [1, 1], 0),
        ([1, 0], [-6, 10], [0, 1], [1, 1], 0),
        ([-1, 9], [-far - 1, -far - 1], [0, 1], [-1, -2], 30),
        ([far, 0], [far, 10], [0, 1], [1, 1], 0),
        ([5, -far], [0, 7], [-2, 1], [-far, 3], 3),
    ];
    for (at, (starts, ends, axes, steps, elements)) in cases.into_iter().enumerate() {
        let inputs = ["x", "starts", "ends", "axes", "steps"];
        let graph = GraphProto {
            node: vec![node("Slice", &inputs, &["s"]), node("Concat", &["s", "s"], &["y"])],
            input: vec![value("x", FLOAT, &["6", "10"])],
            output: vec![value("y", FLOAT, &["M", "K"])],
            initializer: vec![
                int64s("starts", &starts),
                int64s("ends", &ends),
                int64s("axes", &axes),
                int64s("steps", &steps),
            ],
            ..GraphProto::default()
        };
        let mut graph = graph;
        graph.node[1].attribute.push(AttributeProto {
            name: "axis".to_owned(),
            r#type: AttributeType::Int.into(),
            ..AttributeProto::default()
        });
        let ran = plan(&format!("onnx_slice_{at}"), graph, &[]);
        assert_eq!(ran.code, 0, "{at}: {}", ran.stderr);
        assert_eq!(ran.json()["naive"], 3 * 4 * elements, "{at}");
    }
}

#[test]
fn large_numbers_that_are_no_extents_stay() {
    let graph = GraphProto {
        node: vec![node("Reshape", &["numbers", "to"], &["y"])],
        output: vec![value("y", INT64, &["M", "2"])],
        initializer: vec![int64s("numbers", &[i64::MAX, i64::MIN, 1 << 40, 0]), int64s("to", &[-1, 2])],
        ..GraphProto::default()
    };
    assert_eq!(plan("onnx_large_numbers", graph, &[]).json()["naive"], 32);
}

#[test]
fn constants_of_a_shape_are_32_bit_floats_unless_they_say_otherwise() {
    let graph = GraphProto {
        node: vec![node("ConstantOfShape", &["n"], &["c"]), node("Identity", &["c"], &["y"])],
        output: vec![value("y", FLOAT, &["M"])],
        initializer: vec![int64s("n", &[100])],
        ..GraphProto::default()
    };
    assert_eq!(plan("onnx_constant_of_shape", graph, &[]).json()["naive"], 800);
}
