//! An increment and a decrement of the same value in two blocks that always run together.

use super::cfg::{Index, OpKind, Pick};
use super::dominance::DominatorTree;
use super::walk::Walker;

/// Removes pairs where the increment's block dominates the decrement's, the decrement's post-dominates the
/// increment's, both run equally often, and nothing is given back on the way. Returns how many
/// operations were removed.
pub(crate) fn prune(
    index: &mut Index<'_>,
    down: &DominatorTree,
    up: &DominatorTree,
    walker: &mut Walker,
) -> usize {
    let mut removed = 0;
    for (head, inc) in index.increments() {
        let found = index.dec_blocks(inc.value).find(|&tail| {
            tail != head
                && index.has(OpKind::Dec, tail, inc.value)
                && down.dominates(head, tail)
                && up.dominates(tail, head)
                && walker.tails_follow_head(index, head, &[tail], &[])
                && !walker.has_dec_between(index, head, tail)
        });
        if let Some(tail) = found {
            index.remove(OpKind::Inc, head, inc.value, Pick::Id(inc.id));
            index.remove(OpKind::Dec, tail, inc.value, Pick::First);
            removed += 2;
        }
    }
    removed
}
