//! Plans of ONNX models in C.
#![cfg(feature = "capi-models")]
#![allow(clippy::std_instead_of_alloc, reason = "models: std is always there")]

mod common;
#[path = "../src/onnx/proto.rs"]
#[allow(dead_code, unreachable_pub)]
mod proto;

use std::process::Command;

use common::{cc, crate_dir, library, program, run, scratch};
use prost::Message as _;
use proto::{
    Dim, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorShapeProto, TensorType,
    Type, TypeProto, ValueInfoProto,
};
use usm_plan::{Answer, Request, Source};

const FLOAT: i32 = 1;

/// Floats of `[n, w]`.
fn value(name: &str) -> ValueInfoProto {
    let named = |name: &str| Dimension { value: Some(Dim::Param(name.to_owned())) };
    let tensor =
        TensorType { elem_type: FLOAT, shape: Some(TensorShapeProto { dim: vec![named("n"), named("w")] }) };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value: Some(Type::Tensor(tensor)) }) }
}

/// Two branches that meet.
fn model() -> Vec<u8> {
    let node = |op_type: &str, input: &[&str], output: &str| NodeProto {
        op_type: op_type.to_owned(),
        input: input.iter().map(|&name| name.to_owned()).collect(),
        output: vec![output.to_owned()],
        ..NodeProto::default()
    };
    let graph = GraphProto {
        node: vec![
            node("Transpose", &["x"], "left"),
            node("Transpose", &["left"], "upper"),
            node("Transpose", &["left"], "right"),
            node("Add", &["upper", "right"], "y"),
        ],
        input: vec![value("x")],
        output: vec![value("y")],
        ..GraphProto::default()
    };
    let opset = OperatorSetIdProto { version: 17, ..OperatorSetIdProto::default() };
    ModelProto { graph: Some(graph), opset_import: vec![opset], ..ModelProto::default() }.encode_to_vec()
}

/// The text of the program in C.
fn rust(dims: &[(&str, &str)], values: &[u64]) -> String {
    let dims = dims.iter().map(|(name, values)| ((*name).to_owned(), values.parse().unwrap())).collect();
    let job = Request { dims, ..Request::default() }.check(Source::model("model", model())).unwrap();
    let line = |name: &str, offset: &u64| format!("{name} {offset}\n");
    match job.run_plain(&std::time::Instant::now()).unwrap() {
        Answer::Every(plan) => {
            let mut offsets = vec![0; plan.ids().len()];
            let peak = plan.at(values, &mut offsets).unwrap().peak;
            let names = (0..).map(|number| plan.name(number).unwrap());
            names.zip(&offsets).map(|(name, offset)| line(name, offset)).collect::<String>()
                + &format!("{peak}\n")
        }
        Answer::One(outcome) => {
            let (graph, plan) = (outcome.graph.unwrap(), outcome.plan);
            let name = |id| graph.tensors()[graph.tensor_index(id).unwrap()].name.as_deref().unwrap();
            let lines = plan.rows.iter().map(|row| line(name(row.id), &row.offset));
            lines.collect::<String>() + &format!("{}\n", plan.peak)
        }
        Answer::Recompute(..) => panic!("no curve was requested"),
    }
}

/// Names, offsets and peak of a model, for one value and for every value of a dimension.
#[test]
fn a_model_has_the_plan_of_rust() {
    let folder = scratch("plan_model");
    let Some(command) = cc() else { return };
    let symbols = run(Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library()));
    if !symbols.contains("usm_plan_model ") {
        return skip::missing("models in C", "this is the library without models");
    }
    let program = program(command, &crate_dir().join("tests/c/model.c"), &folder);
    let file = folder.join("model.onnx");
    std::fs::write(&file, model()).unwrap();
    let c = |words: &[&str]| run(Command::new(&program).arg(&file).args(words));

    let one = c(&["n=12", "w=20"]);
    assert_eq!(one, rust(&[("n", "12"), ("w", "20")], &[]));
    assert!(one.contains("left 0\n") && one.contains("right "), "{one}");
    for value in ["8", "64"] {
        let every = c(&["n=8..64:8", "w=8..64:8", "--", value, value]);
        let number = value.parse().unwrap();
        assert_eq!(every, rust(&[("n", "8..64:8"), ("w", "8..64:8")], &[number, number]));
    }

    // A dimension without a value: the text names it.
    let output = Command::new(&program).arg(&file).arg("n=12").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains('w'), "{output:?}");
}
