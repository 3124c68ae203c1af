//! `usm plan model.onnx` with operators of onnxruntime's dynamic quantisation.

use crate::onnx_files::{FLOAT, floats, node, plan, value};
use crate::proto::{AttributeProto, AttributeType, GraphProto, NodeProto, TensorProto};

const UINT8: i32 = 2;
const INT8: i32 = 3;
const FLOAT16: i32 = 10;

fn microsoft(node: NodeProto) -> NodeProto {
    NodeProto { domain: "com.microsoft".to_owned(), ..node }
}

fn bytes(name: &str, data_type: i32, dims: &[i64]) -> TensorProto {
    let size = usize::try_from(dims.iter().product::<i64>()).unwrap();
    TensorProto {
        name: name.to_owned(),
        data_type,
        dims: dims.to_vec(),
        raw_data: vec![0; size],
        ..TensorProto::default()
    }
}

/// Plans a graph with the input `x`, a float matrix of `N` rows and 8 columns.
fn naive(name: &str, node: Vec<NodeProto>, initializer: Vec<TensorProto>) -> serde_json::Value {
    let output = vec![value("y", FLOAT, &["M", "K"])];
    let input = vec![value("x", FLOAT, &["N", "8"])];
    let graph =
        GraphProto { name: name.to_owned(), node, input, output, initializer, ..GraphProto::default() };
    let ran = plan(name, graph, &["--dim", "N=10"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.json()["naive"].clone()
}

#[test]
fn a_product_that_quantises_its_input_is_a_product() {
    let nodes = vec![
        microsoft(node("DynamicQuantizeMatMul", &["x", "w", "scale", "zero", "bias"], &["a"])),
        node("Relu", &["a"], &["y"]),
    ];
    let constants = vec![
        bytes("w", INT8, &[8, 16]),
        floats("scale", &[1]),
        bytes("zero", INT8, &[1]),
        floats("bias", &[16]),
    ];
    assert_eq!(naive("onnx_quantised_matmul", nodes, constants), 2 * 10 * 16 * 4);
}

#[test]
fn a_product_of_integers_has_the_type_of_its_scales() {
    let nodes = |scale: &str| {
        vec![
            node("DynamicQuantizeLinear", &["x"], &["q", "qs", "qz"]),
            microsoft(node("MatMulIntegerToFloat", &["q", "w", scale, "scale", "qz"], &["a"])),
            node("Relu", &["a"], &["y"]),
        ]
    };
    let half = TensorProto {
        name: "half".to_owned(),
        data_type: FLOAT16,
        dims: vec![1],
        raw_data: vec![0; 2],
        ..TensorProto::default()
    };
    let constants = || vec![bytes("w", UINT8, &[8, 16]), floats("scale", &[1]), half.clone()];
    // 80 bytes, a scale of 4 bytes, a zero point, and two results.
    assert_eq!(naive("onnx_quantised_integers", nodes("qs"), constants()), 80 + 4 + 1 + 2 * 160 * 4);
    assert_eq!(naive("onnx_quantised_halves", nodes("half"), constants()), 80 + 4 + 1 + 2 * 160 * 2);
}

#[test]
fn a_quantised_lstm_is_an_lstm() {
    let attribute = |name: &str, r#type: AttributeType| AttributeProto {
        name: name.to_owned(),
        r#type: r#type.into(),
        ..AttributeProto::default()
    };
    let size = AttributeProto { i: 16, ..attribute("hidden_size", AttributeType::Int) };
    let direction =
        AttributeProto { s: b"bidirectional".to_vec(), ..attribute("direction", AttributeType::String) };
    let inputs = ["s", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"];
    let lstm = node("DynamicQuantizeLSTM", &inputs, &["steps", "last", "cell"]);
    let nodes = vec![
        node("Unsqueeze", &["x", "axis"], &["s"]),
        microsoft(NodeProto { attribute: vec![size, direction], ..lstm }),
        node("Relu", &["last"], &["y"]),
    ];
    let constants = vec![
        crate::onnx_files::int64s("axis", &[1]),
        bytes("w", INT8, &[2, 8, 64]),
        bytes("r", INT8, &[2, 16, 64]),
        floats("scale", &[2]),
        bytes("zero", INT8, &[2]),
    ];
    // The sequence, 10 steps of two directions, and three results of one step.
    let expected = (10 * 8 + 10 * 2 * 16 + 3 * 2 * 16) * 4;
    assert_eq!(naive("onnx_quantised_lstm", nodes, constants), expected);
}

#[test]
fn shapes_that_the_file_states_for_other_operators_count() {
    let attention = microsoft(node("QAttention", &["x", "w"], &["a"]));
    let nodes = vec![attention.clone(), node("Relu", &["a"], &["b"]), node("Relu", &["b"], &["y"])];
    let graph = GraphProto {
        name: "stated".to_owned(),
        node: nodes,
        input: vec![value("x", FLOAT, &["N", "8"])],
        output: vec![value("y", FLOAT, &["M", "K"])],
        value_info: vec![value("a", FLOAT, &["N", "8"])],
        initializer: vec![floats("w", &[8, 24])],
        ..GraphProto::default()
    };
    let ran = plan("onnx_stated_attention", graph.clone(), &["--dim", "N=10"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["naive"], 3 * 10 * 8 * 4);
    let unstated = GraphProto { value_info: Vec::new(), ..graph };
    plan("onnx_unstated_attention", unstated, &["--dim", "N=10"]).refused(&["QAttention", "\"a\""]);
}
