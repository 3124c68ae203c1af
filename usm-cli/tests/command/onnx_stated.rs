//! `usm plan model.onnx` in every build: models with stated shapes, and the error for others in a
//! build without inference.

use serde_json::json;

use crate::onnx_files::{FLOAT, chain, node, plan, plan_bytes, value};
use crate::proto::NodeProto;
use crate::support::infers_shapes;

#[test]
fn shapes_in_the_file_count_and_need_no_inference() {
    let mut graph = chain();
    // An unknown operator with a stated result.
    graph.node[1] = NodeProto { domain: "example".to_owned(), ..node("Mystery", &["a"], &["b"]) };
    graph.value_info = vec![value("a", FLOAT, &["2", "3"]), value("b", 10, &["32"])];
    graph.output = vec![value("y", FLOAT, &["N", "4", "4"])];
    let ran = plan("onnx_stated", graph, &["--dim", "N=1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.json()["naive"], 2 * 3 * 4 + 32 * 2 + 16 * 4);
}

#[test]
fn symbolic_dimensions_of_stated_shapes_get_their_values() {
    let mut graph = chain();
    graph.value_info = vec![value("a", FLOAT, &["N", "16"]), value("b", FLOAT, &["N", "16"])];
    graph.output = vec![value("y", FLOAT, &["N", "4", "4"])];
    let report = plan("onnx_stated_symbols", graph.clone(), &["--dim", "N=10"]).json();
    assert_eq!((&report["naive"], &report["peak"]), (&json!(3 * 640), &json!(2 * 640)));
    plan("onnx_stated_unknown", graph, &[]).refused(&["model.onnx", "`N`", "--dim N=VALUE"]);
}

#[test]
fn a_missing_shape_names_the_build_that_infers_it() {
    let ran = plan("onnx_not_stated", chain(), &["--dim", "N=10"]);
    if infers_shapes() {
        assert_eq!((ran.code, &ran.json()["peak"]), (0, &json!(2 * 640)));
        return;
    }
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    for part in [
        "model.onnx",
        "node 0 (MatMul)",
        "\"a\"",
        "cargo run --release --features onnx --bin usm -- plan model.onnx",
    ] {
        assert!(ran.stderr.contains(part), "{part:?} is not in {:?}", ran.stderr);
    }
}

#[test]
fn files_that_are_not_onnx_are_refused() {
    for (index, content) in
        [&b""[..], b"hello", b"{\"tensors\": []}", &[0xff; 64], &[0; 64]].into_iter().enumerate()
    {
        plan_bytes(&format!("onnx_not_{index}"), content, &[]).refused(&["model.onnx", "ONNX"]);
    }
}
