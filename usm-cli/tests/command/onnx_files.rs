//! Small ONNX files, and the command on them.

use prost::Message as _;

use crate::proto::{
    Dim, Dimension, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TensorShapeProto,
    TensorType, Type, TypeProto, ValueInfoProto,
};
use crate::support::{Ran, file, folder, usm};

pub(crate) const FLOAT: i32 = 1;
pub(crate) const INT64: i32 = 7;

/// A value whose dimensions are numbers, symbols, or `-` for none.
pub(crate) fn value(name: &str, data_type: i32, dims: &[&str]) -> ValueInfoProto {
    let dim = |text: &&str| Dimension {
        value: match text.parse() {
            Ok(extent) => Some(Dim::Value(extent)),
            Err(_) if *text == "-" => None,
            Err(_) => Some(Dim::Param((*text).to_owned())),
        },
    };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = Type::Tensor(TensorType { elem_type: data_type, shape });
    let r#type = Some(TypeProto { value: Some(tensor) });
    ValueInfoProto { name: name.to_owned(), r#type }
}

pub(crate) fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    NodeProto {
        op_type: op_type.to_owned(),
        input: names(inputs),
        output: names(outputs),
        ..NodeProto::default()
    }
}

pub(crate) fn floats(name: &str, dims: &[i64]) -> TensorProto {
    let bytes = dims.iter().product::<i64>() * 4;
    TensorProto {
        name: name.to_owned(),
        data_type: FLOAT,
        dims: dims.to_vec(),
        raw_data: vec![0; usize::try_from(bytes).unwrap()],
        ..TensorProto::default()
    }
}

pub(crate) fn int64s(name: &str, values: &[i64]) -> TensorProto {
    let dims = vec![i64::try_from(values.len()).unwrap()];
    TensorProto {
        name: name.to_owned(),
        data_type: INT64,
        dims,
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

pub(crate) fn bytes(graph: GraphProto) -> Vec<u8> {
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version: 13 }];
    ModelProto { ir_version: 8, opset_import, graph: Some(graph), ..ModelProto::default() }.encode_to_vec()
}

/// x[N, 8] -> MatMul(w[8, 16]) -> Relu -> Reshape(0, 4, 4) -> y: no shape between input and output
/// is stated.
pub(crate) fn chain() -> GraphProto {
    GraphProto {
        name: "chain".to_owned(),
        node: vec![
            node("MatMul", &["x", "w"], &["a"]),
            node("Relu", &["a"], &["b"]),
            node("Reshape", &["b", "to"], &["y"]),
        ],
        input: vec![value("x", FLOAT, &["N", "8"])],
        output: vec![value("y", FLOAT, &["M", "4", "4"])],
        initializer: vec![floats("w", &[8, 16]), int64s("to", &[0, 4, 4])],
        ..GraphProto::default()
    }
}

/// Plans a model as written: in its order, every result with bytes of its own.
pub(crate) fn plan(name: &str, graph: GraphProto, arguments: &[&str]) -> Ran {
    let as_written = ["--keep-order", "--no-views"];
    plan_bytes(name, &bytes(graph), &[&as_written, arguments].concat())
}

pub(crate) fn plan_bytes(name: &str, model: &[u8], arguments: &[&str]) -> Ran {
    let path = file(&folder(name), "model.onnx", model);
    let arguments: Vec<&str> =
        ["plan", &path, "--json"].into_iter().chain(arguments.iter().copied()).collect();
    usm(&arguments)
}
