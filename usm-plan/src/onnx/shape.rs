//! Shapes of tensors, and the values of symbolic dimensions.

use std::collections::BTreeMap;

use super::element;
use super::proto::{
    Dim, Dimension, GraphProto, TensorShapeProto, TensorType, Type, TypeProto, ValueInfoProto,
};
use crate::error::{Error, Result};
use crate::field::Field;

/// Element type and extents of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bits of one element.
    pub bits: u64,
    /// Extents in elements.
    pub dims: Vec<u64>,
}

impl Shape {
    /// Size in bytes: elements are packed, and the last byte is filled up.
    pub fn bytes(&self) -> Result<u64> {
        let too_large = || Error::bad(format!("shape {:?} exceeds 64 bits", self.dims));
        if self.dims.contains(&0) {
            return Ok(0);
        }
        let elements = self.dims.iter().try_fold(1_u64, |n, &dim| n.checked_mul(dim));
        let bits = elements.map(|n| u128::from(n) * u128::from(self.bits)).ok_or_else(too_large)?;
        u64::try_from(bits.div_ceil(8)).map_err(|_| too_large())
    }

    /// Element type and extents from the fields of the file.
    pub fn new(data_type: i32, dims: &[i64]) -> Result<Self> {
        let bits = element::bits(data_type).ok_or_else(|| Error::bad(element::unsized_reason(data_type)))?;
        let dims = dims.iter().map(|&dim| u64::try_from(dim)).collect::<Result<_, _>>();
        Ok(Self { bits, dims: dims.map_err(|_| Error::bad("a negative extent"))? })
    }
}

/// The tensor type of a value; `None` for sequences, maps and values without a type.
pub(crate) fn tensor_type(value: &ValueInfoProto) -> Option<&TensorType> {
    match value.r#type.as_ref()?.value.as_ref()? {
        Type::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}

/// What a value without a tensor's type is.
pub(crate) fn other_type(value: &ValueInfoProto) -> &'static str {
    match value.r#type.as_ref().and_then(|r#type| r#type.value.as_ref()) {
        Some(Type::Sequence(_)) => "is a sequence, which has no fixed size",
        Some(Type::Map(_)) => "is a map, which has no fixed size",
        Some(Type::SparseTensor(_)) => "is a sparse tensor, whose size depends on the data",
        Some(Type::Optional(_)) => "is an optional value, which has no fixed size",
        Some(Type::Tensor(_)) | None => "is not a tensor",
    }
}

/// The extents of a shape; `None` for unknown ones.
pub(crate) fn extents(shape: &TensorShapeProto) -> Vec<Option<u64>> {
    let extent = |dim: &Dimension| match dim.value {
        Some(Dim::Value(extent)) => u64::try_from(extent).ok(),
        _ => None,
    };
    shape.dim.iter().map(extent).collect()
}

/// The shape of a value, if the file states all of it.
pub(crate) fn known(value: &ValueInfoProto) -> Option<Shape> {
    let tensor = tensor_type(value)?;
    let extent = |dim: &Dimension| match dim.value {
        Some(Dim::Value(extent)) => Some(extent),
        _ => None,
    };
    let dims: Option<Vec<i64>> = tensor.shape.as_ref()?.dim.iter().map(extent).collect();
    Shape::new(tensor.elem_type, &dims?).ok()
}

/// A value of a known shape, for shape inference.
pub(crate) fn value_info(name: &str, data_type: i32, dims: &[i64]) -> ValueInfoProto {
    let dim = |&extent: &i64| Dimension { value: Some(Dim::Value(extent)) };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor = TensorType { elem_type: data_type, shape };
    let r#type = Some(TypeProto { value: Some(Type::Tensor(tensor)) });
    ValueInfoProto { name: name.to_owned(), r#type }
}

/// Gives every symbolic dimension the user's value.
///
/// A dimension is named by its symbol, or by `INPUT.AXIS` if the file gives none (`?`, nothing, a
/// negative extent). All dimensions of `inputs` need a value; those of other tensors may be
/// inferred.
pub(crate) fn bind(graph: &mut GraphProto, inputs: &[String], values: &[(String, u64)]) -> Result<()> {
    let mut symbols = BTreeMap::new();
    for (name, value) in values {
        let extent = i64::try_from(*value)
            .map_err(|_| Error::bad(format!("{value} is above {}", i64::MAX)).in_option(Field::Dims))?;
        if let Some(before) = symbols.insert(name.as_str(), extent).filter(|before| *before != extent) {
            return Err(
                Error::bad(format!("{name} is given as {before} and as {extent}")).in_option(Field::Dims)
            );
        }
    }
    let mut used = std::collections::BTreeSet::new();
    let mut names_without_value: Vec<String> = Vec::new();
    let GraphProto { input, output, value_info, .. } = graph;
    for (is_input, value) in
        input.iter_mut().map(|v| (true, v)).chain(output.iter_mut().chain(value_info).map(|v| (false, v)))
    {
        let must_be_known = is_input && inputs.contains(&value.name);
        let Some(Type::Tensor(tensor)) = value.r#type.as_mut().and_then(|t| t.value.as_mut()) else {
            continue;
        };
        for (axis, dim) in tensor.shape.iter_mut().flat_map(|shape| &mut shape.dim).enumerate() {
            let symbol = match &dim.value {
                Some(Dim::Value(extent)) if *extent >= 0 => continue,
                Some(Dim::Param(symbol)) if !symbol.is_empty() => Some(symbol.clone()),
                _ => None,
            };
            let position = format!("{}.{axis}", value.name);
            let names = [is_input.then_some(position.as_str()), symbol.as_deref()];
            let entry = names.into_iter().flatten().find_map(|name| symbols.get_key_value(name));
            match entry {
                Some((name, &extent)) => {
                    used.insert(*name);
                    dim.value = Some(Dim::Value(extent));
                }
                None if must_be_known => {
                    let name = symbol.filter(|symbol| symbol != "?").unwrap_or(position);
                    if !names_without_value.contains(&name) {
                        names_without_value.push(name);
                    }
                }
                // Inference finds it.
                None => dim.value = None,
            }
        }
    }
    if !names_without_value.is_empty() {
        let reason = format!(
            "no value for {}; say --dim {name}=VALUE, in Python dims={{{name:?}: VALUE}}",
            quoted(&names_without_value),
            name = names_without_value.first().map_or("", String::as_str)
        );
        return Err(Error::bad(reason).in_field("symbolic dimensions of the inputs"));
    }
    if let Some(stranger) = symbols.keys().find(|name| !used.contains(*name)) {
        return Err(
            Error::bad(format!("the model has no symbolic dimension `{stranger}`")).in_option(Field::Dims)
        );
    }
    Ok(())
}

/// Names in back quotes, separated by commas.
fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
