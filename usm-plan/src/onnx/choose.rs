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
const LOOKED_AT: usize = 128;

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
    let plain = ordered(plain, hints)?;
    if joins.is_empty() {
        return Ok(plain.model);
    }
    // A graph with loops keeps its order.
    let better = plain.model.reordered.as_ref().filter(|reorder| reorder.bound < reorder.given);
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
    if cut(&choice)? > plain.bound {
        choice.clear();
        let mut least = plain.bound;
        for join in joins.iter().take(LOOKED_AT) {
            choice.push(join);
            let bound = cut(&choice)?;
            if bound > least {
                choice.pop();
            } else {
                least = bound;
            }
        }
    }
    let joined_model = ordered(build(&choice)?, hints)?;
    Ok(if joined_model.bound <= plain.bound { joined_model.model } else { plain.model })
}

/// A graph in its order, and its heaviest cut.
struct OrderedModel {
    model: Model,
    bound: u64,
}

fn ordered(graph: Graph, hints: &Hints<'_>) -> Result<OrderedModel> {
    if hints.keep_order {
        let bound = heaviest_cut(&graph, InPlace::SameSize).map_err(Error::unable)?;
        return Ok(OrderedModel { model: graph.into(), bound });
    }
    let sets = hints.order_sets.unwrap_or(Effort::USUAL);
    let effort = Effort::new(sets, &|| false);
    let mut reorder: Reordered = reorder_within(&graph, InPlace::SameSize, &effort).map_err(Error::unable)?;
    let every_order = reorder.every_order.take();
    let bound = reorder.bound;
    // A graph with loops keeps its order.
    let graph =
        if bound < reorder.given { graph.reordered(&reorder.order).map_err(Error::unable)? } else { graph };
    Ok(OrderedModel { model: Model { reordered: Some(reorder), every_order, ..graph.into() }, bound })
}
