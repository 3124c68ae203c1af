//! What a file says of its constants.

use std::rc::Rc;

use super::call::{Constancy, Fact};
use super::value::{self, Value};
use crate::onnx::element::{FLOAT, INT64, STRING};
use crate::onnx::proto::{AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto};

pub(super) fn of_tensor(tensor: &TensorProto) -> Fact {
    let value = Value::of(tensor).map(Rc::new);
    Fact { value, constancy: Constancy::OfFile, ..Fact::of(tensor.data_type, &tensor.dims) }
}

pub(super) fn of_sparse(sparse: &SparseTensorProto) -> Fact {
    let data_type = sparse.values.as_ref().map_or(0, |values| values.data_type);
    Fact { constancy: Constancy::OfFile, ..Fact::of(data_type, &sparse.dims) }
}

/// The value of a Constant, which is in one of its attributes.
pub(super) fn of_constant(node: &NodeProto) -> Fact {
    let Some(attribute) = node.attribute.iter().find(|attribute| !attribute.name.is_empty()) else {
        return Fact::default();
    };
    let of = |data_type: i32, dims: &[i64], value: Option<Value>| Fact {
        value: value.map(Rc::new),
        constancy: Constancy::OfFile,
        ..Fact::of(data_type, dims)
    };
    let reals = |numbers: &[f32]| Value::Reals(numbers.iter().map(|&number| f64::from(number)).collect());
    match attribute.name.as_str() {
        "value" => attribute.t.as_ref().map(of_tensor).unwrap_or_default(),
        "sparse_value" => attribute.sparse_tensor.as_ref().map(of_sparse).unwrap_or_default(),
        "value_int" => of(INT64, &[], Some(Value::Integers(vec![attribute.i]))),
        "value_ints" => {
            of(INT64, &[attribute.ints.len() as i64], Some(Value::Integers(attribute.ints.clone())))
        }
        "value_float" => of(FLOAT, &[], Some(reals(&[attribute.f]))),
        "value_floats" => of(FLOAT, &[attribute.floats.len() as i64], Some(reals(&attribute.floats))),
        "value_string" => of(STRING, &[], None),
        "value_strings" => of(STRING, &[attribute.strings.len() as i64], None),
        _ => Fact::default(),
    }
}

/// The parts of a graph that inference needs, without weights.
pub(super) fn without_weights(graph: &GraphProto) -> GraphProto {
    let bare = |tensor: &TensorProto| {
        if value::element_count(&tensor.dims).is_some_and(|count| count <= value::MOST_ELEMENTS) {
            return tensor.clone();
        }
        TensorProto {
            name: tensor.name.clone(),
            data_type: tensor.data_type,
            dims: tensor.dims.clone(),
            ..TensorProto::default()
        }
    };
    let attribute = |attribute: &AttributeProto| match &attribute.t {
        Some(tensor) => AttributeProto {
            name: attribute.name.clone(),
            r#type: attribute.r#type,
            t: Some(bare(tensor)),
            ..AttributeProto::default()
        },
        None => attribute.clone(),
    };
    let node = |node: &NodeProto| NodeProto {
        input: node.input.clone(),
        output: node.output.clone(),
        name: node.name.clone(),
        op_type: node.op_type.clone(),
        domain: node.domain.clone(),
        attribute: node.attribute.iter().map(attribute).collect(),
    };
    GraphProto {
        node: graph.node.iter().map(node).collect(),
        initializer: graph.initializer.iter().map(bare).collect(),
        name: graph.name.clone(),
        input: graph.input.clone(),
        output: graph.output.clone(),
        value_info: graph.value_info.clone(),
        sparse_initializer: graph.sparse_initializer.clone(),
    }
}
