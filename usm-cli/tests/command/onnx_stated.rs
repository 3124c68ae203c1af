//! `usm plan model.onnx` of models with stated shapes.

use serde_json::json;

use crate::onnx_files::{FLOAT, chain, node, plan, plan_bytes, value};
use crate::proto::NodeProto;

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
fn files_that_are_not_onnx_are_refused() {
    for (index, content) in
        [&b""[..], b"hello", b"{\"tensors\": []}", &[0xff; 64], &[0; 64]].into_iter().enumerate()
    {
        plan_bytes(&format!("onnx_not_{index}"), content, &[]).refused(&["model.onnx", "ONNX"]);
    }
}
