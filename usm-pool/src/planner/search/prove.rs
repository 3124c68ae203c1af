//! The lines of a bound proof: they show that no placement is within a capacity.

use alloc::vec::Vec;

use super::super::{Instance, Options};
use super::decide::{Answer, Search};
use super::log::{Line, Lines};
use super::model::Model;
use super::order::Order;
use super::schedule::of_rank;

/// Nodes of the first try.
const FIRST: u64 = 1 << 14;

/// Maximum number of lines: some gigabytes of text.
const LINES: u64 = 1 << 27;

/// Finds lines that show that no placement ends at or below the capacity; `None` if the nodes of
/// the options do not suffice. Tries the orders of the search in turn, each time with more nodes.
pub(in super::super) fn refute(
    instance: Instance<'_>,
    options: &Options<'_>,
    capacity: u64,
) -> Option<Vec<Line>> {
    let model = Model::new(instance)?;
    let mut search = Search::new(&model);
    let mut stop = || options.stop.is_some_and(|stop| stop());
    let (mut nodes, mut limit) = (options.nodes.min(LINES), FIRST);
    let mut rank = 0;
    while nodes >= model.weight() && !stop() {
        let (rule, noise) = of_rank(rank);
        let mut left = limit.min(nodes);
        let budget = left;
        let mut lines = Lines::default();
        // The ends of compacted placements are multiples of the unit.
        let aim = capacity / model.unit * model.unit;
        match search.decide(aim, &Order::new(&model, rule, noise, rank), &mut left, &mut stop, &mut lines) {
            Answer::Found => return None,
            Answer::Infeasible => return Some(lines.0),
            Answer::Limit => {}
        }
        nodes -= budget - left;
        rank += 1;
        limit = limit.saturating_add(limit / 2);
    }
    None
}
