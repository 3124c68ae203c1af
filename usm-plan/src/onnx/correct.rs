//! Operators that libraries for shape inference do not know or get wrong. Each is replaced by one
//! with the same result once the shape of its input is known.
//!
//! | operator | replaced by |
//! |---|---|
//! | Squeeze without axes | Reshape |
//! | Slice with constant bounds, where the library's shape is not the standard's | Slice with bounds inside the input |

use std::collections::HashSet;

use super::allow::Facts;
use super::infer::Inferred;
use super::proto::{AttributeProto, AttributeType, GraphProto, NodeProto, TensorProto};
use super::slice::{Bounds, Selection};
use super::{is_standard, outputs};

/// `TensorProto.DataType` of 64-bit integers.
const INT64: i32 = 7;

pub(super) struct Corrected {
    /// Whether an operator was replaced: inference must run again.
    pub(super) changed: bool,
    /// Names of values that inference computed from a result that may be wrong.
    pub(super) doubtful: HashSet<String>,
}

/// Replaces the operators whose inputs have shapes that no such operator computed. `substituted`:
/// inference saw another operator in place of a Squeeze without axes.
pub(super) fn correct(graph: &mut GraphProto, inferred: &Inferred, substituted: bool) -> Corrected {
    let facts = Facts::of(graph, &inferred.shapes);
    let mut doubtful: HashSet<String> = HashSet::new();
    let mut replaced = Vec::new();
    for (index, node) in graph.node.iter().enumerate() {
        let mut doubt = node.input.iter().any(|name| doubtful.contains(name));
        if !doubt {
            let other = if substituted && squeezes_all(node) {
                doubt = true;
                reshape(node, &facts)
            } else if is_standard(node, "Slice") {
                slice(node, &facts, inferred)
            } else {
                None
            };
            doubt |= other.is_some();
            replaced.extend(other.map(|other| (index, other)));
        }
        if doubt {
            doubtful.extend(outputs(node).map(str::to_owned));
        }
    }
    let changed = !replaced.is_empty();
    for (index, (node, constants)) in replaced {
        graph.node[index] = node;
        graph.initializer.extend(constants);
    }
    Corrected { changed, doubtful }
}

/// An operator, and constants that it reads.
type Replacement = (NodeProto, Vec<TensorProto>);

/// Whether a node removes every extent of 1. tract must be told which.
pub(super) fn squeezes_all(node: &NodeProto) -> bool {
    let said = node.attribute.iter().any(|attribute| attribute.name == "axes");
    is_standard(node, "Squeeze") && !said && node.input.get(1).is_none_or(String::is_empty)
}

fn reshape(node: &NodeProto, facts: &Facts<'_>) -> Option<Replacement> {
    let input = node.input.first()?;
    let dims = &facts.shape(input)?.dims;
    let left = dims.iter().filter(|&&extent| extent != 1).map(|&extent| extent as i64).collect();
    let to = constant(node, "without extents of 1", left);
    let input = vec![input.clone(), to.name.clone()];
    Some((
        NodeProto { op_type: "Reshape".to_owned(), input, attribute: Vec::new(), ..node.clone() },
        vec![to],
    ))
}

/// A Slice with other bounds and the same result. `None` if inference knows the result's shape.
fn slice(node: &NodeProto, facts: &Facts<'_>, inferred: &Inferred) -> Option<Replacement> {
    let (input, result) = (node.input.first()?, node.output.first()?);
    let numbers = |name: &str| facts.numbers(name).or_else(|| inferred.numbers.get(name).cloned());
    let Selection { said, inside, dims } = Selection::of(node, &facts.shape(input)?.dims, numbers)?;
    let known = inferred.shapes.get(result).is_some_and(|shape| shape.dims == dims);
    if known || inside == said {
        return None;
    }
    let Bounds { starts, ends, axes, steps } = inside;
    if node.input.get(1).is_some_and(|name| !name.is_empty()) {
        let lists = [("starts", starts), ("ends", ends), ("axes", axes), ("steps", steps)];
        let constants = lists.map(|(name, list)| constant(node, name, list));
        let input = core::iter::once(input.clone()).chain(constants.iter().map(|c| c.name.clone()));
        return Some((NodeProto { input: input.collect(), ..node.clone() }, constants.into()));
    }
    let attribute = [("starts", starts), ("ends", ends), ("axes", axes)].map(|(name, ints)| AttributeProto {
        name: name.to_owned(),
        r#type: AttributeType::Ints.into(),
        ints,
        ..AttributeProto::default()
    });
    Some((NodeProto { attribute: attribute.into(), ..node.clone() }, Vec::new()))
}

fn constant(node: &NodeProto, what: &str, numbers: Vec<i64>) -> TensorProto {
    TensorProto {
        name: format!("{}/{what}", node.output.first().map_or("", String::as_str)),
        data_type: INT64,
        dims: vec![numbers.len() as i64],
        int64_data: numbers,
        ..TensorProto::default()
    }
}
