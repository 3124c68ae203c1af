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
use super::{is_standard, outputs};

/// `TensorProto.DataType` of 64-bit integers.
const INT64: i32 = 7;

pub(super) struct Settled {
    /// Whether an operator was replaced: inference must run again.
    pub(super) changed: bool,
    /// Names of values that inference computed from a result that may be wrong.
    pub(super) doubtful: HashSet<String>,
}

/// Replaces the operators whose inputs have shapes that no such operator computed. `substituted`:
/// inference saw another operator in place of a Squeeze without axes.
pub(super) fn settle(graph: &mut GraphProto, inferred: &Inferred, substituted: bool) -> Settled {
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
    Settled { changed, doubtful }
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

/// The bounds of a Slice, an entry for each axis that it names.
#[derive(Clone, Default, PartialEq)]
struct Bounds {
    starts: Vec<i64>,
    ends: Vec<i64>,
    axes: Vec<i64>,
    steps: Vec<i64>,
}

/// A Slice with other bounds and the same result. `None` if inference knows the result's shape.
fn slice(node: &NodeProto, facts: &Facts<'_>, inferred: &Inferred) -> Option<Replacement> {
    let (input, result) = (node.input.first()?, node.output.first()?);
    let dims = &facts.shape(input)?.dims;
    let list = |at: usize, attribute: &str| match node.input.get(at).filter(|name| !name.is_empty()) {
        Some(name) => facts.numbers(name).or_else(|| inferred.numbers.get(name).cloned()),
        None => node.attribute.iter().find(|a| a.name == attribute).map(|a| a.ints.clone()),
    };
    let given = |at: usize| node.input.get(at).is_some_and(|name| !name.is_empty());
    let (starts, ends) = (list(1, "starts")?, list(2, "ends")?);
    let axes = match list(3, "axes") {
        None if given(3) => return None,
        axes => axes.unwrap_or_else(|| (0..starts.len() as i64).collect()),
    };
    let steps = match list(4, "") {
        None if given(4) => return None,
        steps => steps.unwrap_or_else(|| vec![1; starts.len()]),
    };
    if [&ends, &axes, &steps].iter().any(|list| list.len() != starts.len()) {
        return None;
    }
    let said = Bounds { starts, ends, axes, steps };
    let (mut inside, mut left) = (Bounds::default(), dims.clone());
    for at in 0..said.starts.len() {
        let named = said.axes[at];
        let axis = if named < 0 { named.checked_add(dims.len() as i64)? } else { named };
        let place = usize::try_from(axis).ok()?;
        let extent = i64::try_from(*dims.get(place)?).ok()?;
        let (start, end, step, count) = inside_of(extent, said.starts[at], said.ends[at], said.steps[at])?;
        left[place] = count;
        inside.starts.push(start);
        inside.ends.push(end);
        inside.axes.push(axis);
        inside.steps.push(step);
    }
    let known = inferred.shapes.get(result).is_some_and(|shape| shape.dims == left);
    if known || inside == said {
        return None;
    }
    let Bounds { starts, ends, axes, steps } = inside;
    if given(1) {
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

/// Start, end and step that select the same elements of an extent and lie inside of it, and the
/// number of these elements. `None` for a step of 0.
fn inside_of(extent: i64, start: i64, end: i64, step: i64) -> Option<(i64, i64, i64, u64)> {
    let from_zero = |at: i64| if at < 0 { at.saturating_add(extent) } else { at };
    let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
    let (start, end) = (from_zero(start).clamp(low, high), from_zero(end).clamp(low, high));
    let length = if step > 0 { end - start } else { start - end };
    let count = if length > 0 { length.unsigned_abs().div_ceil(step.unsigned_abs()) } else { 0 };
    Some(match count {
        _ if step == 0 => return None,
        0 => (0, 0, 1, 0),
        1 => (start, start + 1, 1, 1),
        // An end before the first element cannot be written as a number of 0 and above.
        _ if end < 0 => (start, i64::MIN, step, count),
        _ => (start, end, step, count),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every combination beside a plain walk, as the standard describes it.
    #[test]
    fn bounds_inside_select_the_same_elements() {
        let walk = |extent: i64, start: i64, end: i64, step: i64| -> Vec<i64> {
            let from_zero = |at: i64| if at < 0 { i128::from(at) + i128::from(extent) } else { at.into() };
            let (low, high) = if step > 0 { (0, extent) } else { (-1, extent - 1) };
            let bound = |at: i64| from_zero(at).clamp(low.into(), high.into()) as i64;
            let (mut at, end) = (bound(start), bound(end));
            let mut found = Vec::new();
            while if step > 0 { at < end } else { at > end } {
                found.push(at);
                at = at.saturating_add(step);
            }
            found
        };
        let far = [i64::MIN, i64::MIN + 1, i64::from(i32::MAX), i64::MAX - 1, i64::MAX];
        let ends: Vec<i64> = (-7..=7).chain(far).collect();
        for extent in 0..=5 {
            for &start in &ends {
                for &end in &ends {
                    for step in (-6..=6).chain(far).filter(|&step| step != 0) {
                        let expected = walk(extent, start, end, step);
                        let place = format!("{extent}: {start}..{end} by {step}");
                        let (from, to, by, count) = inside_of(extent, start, end, step).unwrap();
                        assert_eq!(count, expected.len() as u64, "{place}");
                        assert_eq!(walk(extent, from, to, by), expected, "{place}");
                        assert_eq!(inside_of(extent, from, to, by), Some((from, to, by, count)), "{place}");
                    }
                }
            }
        }
        assert_eq!(inside_of(4, 0, 4, 0), None);
    }
}
