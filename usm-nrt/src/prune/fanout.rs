//! One increment against a decrement on every path that leaves it.

use alloc::vec::Vec;

use super::cfg::{BlockId, Index, OpKind, Pick, Value};
use super::walk::Walker;

/// Blocks on one path, the head included, at which the search gives up.
const MAX_DEPTH: usize = 15;

/// What the walk from a head found.
enum Step {
    /// The path ends well here, or goes on well.
    Good,
    /// The increment cannot be removed.
    Fail,
    /// No increment of this head can.
    Bad,
}

/// Removes an increment with one decrement on every path that follows: paths end in a block that gives the
/// value back, or, with `raising`, in a block that raises. Heads that failed for every value are skipped
/// for the rest of the pass. Returns how many operations were removed.
pub(crate) fn prune(
    index: &mut Index<'_>,
    walker: &mut Walker,
    raising: bool,
    subgraph_limit: usize,
) -> usize {
    let mut removed = 0;
    let mut bad = alloc::vec![false; index.cfg.len()];
    let mut search = Search::default();
    for (head, inc) in index.increments() {
        if bad[head as usize] || index.has_dec(head) {
            continue;
        }
        match search.run(index, head, inc.value, raising, subgraph_limit) {
            Step::Bad => bad[head as usize] = true,
            Step::Good if walker.tails_follow_head(index, head, &search.tails, &search.raises) => {
                for &tail in &search.tails {
                    index.remove(OpKind::Dec, tail, inc.value, Pick::First);
                }
                index.remove(OpKind::Inc, head, inc.value, Pick::Id(inc.id));
                removed += 1 + search.tails.len();
            }
            Step::Good | Step::Fail => {}
        }
    }
    removed
}

/// A depth-first search along all paths from a head.
#[derive(Default)]
struct Search {
    /// Blocks that give the value back, each once.
    tails: Vec<u32>,
    /// Blocks that raise, each once.
    raises: Vec<u32>,
    /// Blocks of the current path, with the number of successors taken.
    path: Vec<(u32, u32)>,
}

impl Search {
    fn run(
        &mut self,
        index: &Index<'_>,
        head: u32,
        value: Value,
        raising: bool,
        subgraph_limit: usize,
    ) -> Step {
        self.tails.clear();
        self.raises.clear();
        self.path.clear();
        self.path.push((head, 0));
        let mut visited = 0usize;
        // A head or inner block without successors ends a path without giving the value back.
        if index.cfg.succ().of(head).is_empty() {
            return Step::Fail;
        }
        while let Some((block, taken)) = self.path.last_mut() {
            let Some(&child) = index.cfg.succ().of(*block).get(*taken as usize) else {
                self.path.pop();
                continue;
            };
            *taken += 1;
            if self.path.len() >= MAX_DEPTH {
                return Step::Fail;
            }
            visited += 1;
            if visited > subgraph_limit || child == head {
                return Step::Bad;
            }
            if self.path.iter().any(|&(on_path, _)| on_path == child) {
                continue;
            }
            if index.has(OpKind::Dec, child, value) {
                if !self.tails.contains(&child) {
                    self.tails.push(child);
                }
            } else if index.has_dec(child) {
                return Step::Bad;
            } else if raising && index.cfg.is_raising(BlockId(child)) {
                if !self.raises.contains(&child) {
                    self.raises.push(child);
                }
            } else if index.cfg.succ().of(child).is_empty() {
                return Step::Fail;
            } else {
                self.path.push((child, 0));
            }
        }
        if self.tails.is_empty() || (raising && self.raises.is_empty()) { Step::Fail } else { Step::Good }
    }
}
