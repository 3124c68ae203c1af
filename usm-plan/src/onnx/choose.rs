//! Chooses the concatenations that are made in place, and the order of the operators, for the
//! lowest peak.
//!
//! A block for all inputs of a Concat lives from the first of them on. That saves the copy, and may
//! raise or lower the peak.

use usm_pool::Graph;
use usm_pool::alias::InPlace;
use usm_pool::planner::reorder::{Effort, Reordered, heaviest_cut, reorder_within};

use super::allow::Join;
use crate::error::{Error, Result};
use crate::model::{Hints, Model};

/// Maximum number of concatenations that are tried one by one. If there are more, either all are in
/// place or none.
const MAX_SINGLE_TRIALS: usize = 128;

/// Builds the graph with the lowest heaviest cut. An out-of-order queue has no order; its
/// concatenations are copies.
pub(super) fn choose(
    build: impl Fn(&[&Join]) -> Result<Graph>,
    joins: &[Join],
    hints: &Hints<'_>,
) -> Result<Model> {
    let plain = build(&[])?;
    if hints.out_of_order {
        return Ok(plain.into());
    }
    let plain = find_order(plain, hints)?;
    if joins.is_empty() {
        return Ok(plain.model);
    }
    // A graph with loops keeps its order.
    let better = plain.model.reordered.as_ref().filter(|reorder| reorder.peak < reorder.peak_before);
    let order = better.map(|reorder| reorder.order.as_slice());
    let cut = |joins: &[&Join]| {
        let graph = build(joins)?;
        let graph = match order {
            Some(order) => graph.reordered(order).map_err(Error::unable)?,
            None => graph,
        };
        heaviest_cut(&graph, InPlace::SameSize).map_err(Error::unable)
    };
    let mut choice: Vec<&Join> = joins.iter().collect();
    if cut(&choice)? > plain.peak {
        choice.clear();
        let mut least = plain.peak;
        for join in joins.iter().take(MAX_SINGLE_TRIALS) {
            choice.push(join);
            let peak = cut(&choice)?;
            if peak > least {
                choice.pop();
            } else {
                least = peak;
            }
        }
    }
    let joined_model = find_order(build(&choice)?, hints)?;
    Ok(if joined_model.peak <= plain.peak { joined_model.model } else { plain.model })
}

/// A graph in its order, and the peak of the tensors that are live together in it.
struct OrderedModel {
    model: Model,
    peak: u64,
}

/// Finds an order with a low peak for the operators of a graph, unless they keep theirs.
fn find_order(graph: Graph, hints: &Hints<'_>) -> Result<OrderedModel> {
    if hints.keep_order {
        let peak = heaviest_cut(&graph, InPlace::SameSize).map_err(Error::unable)?;
        return Ok(OrderedModel { model: graph.into(), peak });
    }
    let sets = hints.order_sets.unwrap_or(Effort::USUAL);
    let effort = Effort::new(sets, hints.stop.unwrap_or(&|| false));
    let mut reorder: Reordered = reorder_within(&graph, InPlace::SameSize, &effort).map_err(Error::unable)?;
    let every_order = reorder.every_order.take();
    let peak = reorder.peak;
    // A graph with loops keeps its order.
    let graph = if peak < reorder.peak_before {
        graph.reordered(&reorder.order).map_err(Error::unable)?
    } else {
        graph
    };
    Ok(OrderedModel { model: Model { reordered: Some(reorder), every_order, ..graph.into() }, peak })
}
