//! The branches and loops of a model: which run, and how often.

use std::collections::HashMap;

use super::call::{self, Made};
use super::file::without_weights;
use super::{InferenceResult, Walk};
use crate::onnx::control::Control;
use crate::onnx::proto::{GraphProto, ModelProto, NodeProto};
use crate::onnx::shape::Shape;
use crate::onnx::{is_constant, outputs};

/// Maximum number of walks, each without the branches found dead before.
const MOST_WALKS: usize = 64;

/// Whether every operator's results are known, but for those that a loop overwrites.
pub(super) fn all_known(graph: &GraphProto, control: &Control, is_known: impl Fn(&str) -> bool) -> bool {
    let late_values = control.known_later();
    let results = graph.node.iter().filter(|node| !is_constant(node)).flat_map(outputs);
    results.filter(|name| !late_values.contains(*name)).all(is_known)
}

/// As [`complete`]; `fallback`: shapes that count if none is inferred.
pub(super) fn of_branches(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    declared_shapes: &HashMap<String, Shape>,
    fallback: &HashMap<String, Shape>,
    remark: &dyn Fn(String),
) -> InferenceResult {
    let inference = reachable(frame, graph, control, declared_shapes);
    let Some(complaint) = &inference.complaint else { return inference };
    let are_known = |graph: &GraphProto, control: &Control, inference: &InferenceResult| {
        let shape = |name: &str| inference.facts.get(name).is_some_and(|fact| fact.shape().is_some());
        all_known(graph, control, |name| {
            shape(name) || declared_shapes.contains_key(name) || fallback.contains_key(name)
        })
    };
    if are_known(graph, control, &inference) {
        return inference;
    }
    for condition in control.conditions() {
        for truth in [true, false] {
            let (mut light, mut left) = (without_weights(graph), control.clone());
            let truths = HashMap::from([(condition.clone(), truth)]);
            left.remove_dead_branches(&truths, &mut light);
            let branch = reachable(frame, &mut light, &mut left, declared_shapes);
            if are_known(&light, &left, &branch) {
                remark(format!(
                    "the branch for {} of the If on {condition:?} is left out, because no shapes fit it: {complaint}",
                    !truth
                ));
                control.remove_dead_branches(&truths, graph);
                return reachable(frame, graph, control, declared_shapes);
            }
        }
    }
    inference
}

/// As [`complete`], for the branches that may run by their conditions.
fn reachable(
    frame: &ModelProto,
    graph: &mut GraphProto,
    control: &mut Control,
    declared_shapes: &HashMap<String, Shape>,
) -> InferenceResult {
    let mut collected_rows: HashMap<String, Made> = HashMap::new();
    for _ in 0..MOST_WALKS {
        let inference = Walk::of(frame, graph, declared_shapes, &collected_rows).run(graph);
        if control.remove_dead_branches(&inference.truths, graph) {
            continue;
        }
        let rows = rows_of_loops(graph, control, &inference);
        if rows.iter().all(|(name, row)| collected_rows.get(name) == Some(row)) {
            return inference;
        }
        collected_rows.extend(rows);
    }
    Walk::of(frame, graph, declared_shapes, &collected_rows).run(graph)
}

/// The results of loops that have a row for each iteration, where their number is known.
fn rows_of_loops(graph: &GraphProto, control: &Control, inference: &InferenceResult) -> Vec<(String, Made)> {
    let mut rows = Vec::new();
    for &(first, end) in &control.loops {
        let Some(nodes) = graph.node.get(first..end) else { continue };
        let Some(count) = nodes.first().and_then(|node| iterations(node, nodes, control, inference)) else {
            continue;
        };
        for node in nodes {
            let (Some(source), Some(result)) = (node.input.first(), node.output.first()) else { continue };
            let Some((of, axis)) = control.row_of(result) else { continue };
            let Some(fact) = inference.facts.get(source) else { continue };
            let Some(mut dims) = fact.dims.clone() else { continue };
            if let Ok(at) = call::place(axis, dims.len() + 1) {
                dims.insert(at, Some(count));
                rows.push((of.to_owned(), (fact.data_type, dims)));
            }
        }
    }
    rows
}

/// How often the body runs whose first node this is.
fn iterations(
    node: &NodeProto,
    nodes: &[NodeProto],
    control: &Control,
    inference: &InferenceResult,
) -> Option<u64> {
    let fact = |name: &String| inference.facts.get(name);
    match node.op_type.as_str() {
        "Element" => {
            let sequence = fact(node.input.first()?)?.dims.as_ref()?;
            let axis = node.attribute.iter().find(|a| a.name == "axis").map_or(0, |a| a.i);
            sequence[call::place(axis, sequence.len()).ok()?]
        }
        "Number" => {
            // Without a limit there is only the condition.
            let [limit, condition] = &node.input[..] else { return None };
            let &[count] = fact(limit)?.value.as_deref()?.integers()? else { return None };
            let is_true = |name: &String| {
                fact(name).and_then(|fact| fact.value.as_deref()?.integers().map(|all| all == [1]))
                    == Some(true)
            };
            // Each iteration says that the next one runs, or none says anything.
            let next = nodes.iter().find(|node| {
                node.output.first().is_some_and(|result| control.overwrites(result) == Some(condition))
            });
            let goes_on = match next {
                Some(next) => next.input.first().is_some_and(is_true),
                None => is_true(condition),
            };
            goes_on.then(|| u64::try_from(count).unwrap_or(0))
        }
        _ => None,
    }
}
