//! Plans of ONNX models for every value of two dimensions: a part of a tensor is a view only where
//! it begins at a multiple of the alignment for every value.
#![allow(clippy::std_instead_of_alloc, reason = "models: std is always there")]

#[path = "../src/onnx/proto.rs"]
#[allow(dead_code, unreachable_pub)]
mod proto;

use std::path::Path;

use prost::Message as _;
use proto::{
    AttributeProto, AttributeType, Dim, Dimension as Extent, GraphProto, ModelProto, NodeProto,
    OperatorSetIdProto, TensorShapeProto, TensorType, Type, TypeProto, ValueInfoProto,
};
use usm_plan::Hints;
use usm_plan::graph_json::RangePlan;
use usm_plan::usm_pool::Options;
use usm_plan::usm_pool::range::Dimension;

const FLOAT: i32 = 1;

fn value(name: &str, channels: i64) -> ValueInfoProto {
    let number = |extent| Extent { value: Some(Dim::Value(extent)) };
    let named = |name: &str| Extent { value: Some(Dim::Param(name.to_owned())) };
    let dim = vec![number(1), number(channels), named("h"), named("w")];
    let tensor = TensorType { elem_type: FLOAT, shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto { name: name.to_owned(), r#type: Some(TypeProto { value: Some(Type::Tensor(tensor)) }) }
}

fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let axis = AttributeProto {
        name: "axis".to_owned(),
        r#type: AttributeType::Int.into(),
        i: 1,
        ..AttributeProto::default()
    };
    let attribute = if matches!(op_type, "Concat" | "Split") { vec![axis] } else { Vec::new() };
    let (input, output) = (names(inputs), names(outputs));
    NodeProto { op_type: op_type.to_owned(), input, output, attribute, ..NodeProto::default() }
}

/// Two tensors joined and taken apart again: the second part begins at 4 * channels * h * w bytes.
fn model(channels: i64) -> Vec<u8> {
    let graph = GraphProto {
        node: vec![
            node("Relu", &["x"], &["a"]),
            node("Sigmoid", &["x"], &["b"]),
            node("Concat", &["a", "b"], &["c"]),
            node("Tanh", &["c"], &["d"]),
            node("Split", &["d"], &["e", "f"]),
            node("Neg", &["e"], &["y"]),
            node("Exp", &["f"], &["z"]),
        ],
        input: vec![value("x", channels)],
        value_info: [("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 1), ("f", 1)]
            .map(|(name, times)| value(name, times * channels))
            .to_vec(),
        output: vec![value("y", channels), value("z", channels)],
        ..GraphProto::default()
    };
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 13 }];
    ModelProto { ir_version: 8, opset_import, graph: Some(graph), ..ModelProto::default() }.encode_to_vec()
}

#[test]
fn a_part_is_a_view_only_where_it_is_aligned_for_every_value() {
    let ranges = [(2, 8, 2), (2, 4, 2), (4, 8, 4), (6, 8, 2), (8, 64, 8)];
    let (mut views, mut copies) = (0, 0);
    for channels in [1, 16] {
        let model = model(channels);
        for (at, &(low, high, step)) in ranges.iter().enumerate() {
            for &(from, to, by) in &ranges[at..] {
                let dim = |(low, high, step)| Dimension { low, high, step };
                let dims = [dim((low, high, step)), dim((from, to, by))];
                let named: Vec<(String, Dimension)> =
                    ["h", "w"].into_iter().map(str::to_owned).zip(dims).collect();
                let options = Options::default();
                let place = format!("{channels} channels, h={low}..{high}:{step}, w={from}..{to}:{by}");
                let plan = RangePlan::of_model(&model, &Hints::default(), &named, &options);
                let plan = plan.unwrap_or_else(|error| panic!("{place}: {error}"));
                let all = |dim: Dimension| (dim.low..=dim.high).step_by(dim.step as usize);
                let mut aligned = true;
                let mut values = all(dims[0]).flat_map(|h| all(dims[1]).map(move |w| [h, w]));
                aligned &= values.all(|[h, w]| 4 * channels as u64 * h * w % 64 == 0);
                // The ends, and what lies one step inside.
                for h in [low, low + step, high] {
                    for w in [from, from + by, to] {
                        let values = [h.min(high), w.min(to)];
                        let made = plan.outcome(&values, &options, Path::new("model"));
                        let made = made.unwrap_or_else(|error| panic!("{place}, {values:?}: {error}"));
                        let tensors = made.graph.as_ref().expect("a graph").tensors();
                        let parts =
                            tensors.iter().filter(|tensor| tensor.alias.is_some_and(|(_, at)| at > 0));
                        // Either all second parts are views, or none is.
                        let count = parts.count();
                        assert_eq!(count > 0, aligned, "{place}, {values:?}: {count} parts");
                    }
                }
                if aligned { views += 1 } else { copies += 1 }
            }
        }
    }
    assert!(views >= 9 && copies >= 9, "{views} and {copies}");
}
