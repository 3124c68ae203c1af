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
    // The answer for the pair of blocks asked last: values come in bundles, and each walk may cross the whole graph. It holds
    // until the next question, because a removal comes after a yes only, and takes nothing that would make it a no.
    let mut last = None;
    for (head, inc) in index.increments() {
        let found = index.dec_blocks(inc.value).find(|&tail| {
            tail != head
                && index.has(OpKind::Dec, tail, inc.value)
                && down.dominates(head, tail)
                && up.dominates(tail, head)
                && match last {
                    Some((pair, together)) if pair == (head, tail) => together,
                    _ => {
                        let together = walker.tails_follow_head(index, head, &[tail], &[])
                            && !walker.has_dec_between(index, head, tail);
                        last = Some(((head, tail), together));
                        together
                    }
                }
        });
        if let Some(tail) = found {
            index.remove(OpKind::Inc, head, inc.value, Pick::Id(inc.id));
            index.remove(OpKind::Dec, tail, inc.value, Pick::First);
            removed += 2;
        }
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prune::{CfgBuilder, Value};

    /// Else a bundle of values would take its number times the size of the graph.
    #[test]
    fn blocks_are_walked_once_for_a_bundle_of_values() {
        let mut builder = CfgBuilder::new();
        let blocks = [(); 4].map(|()| builder.block(false));
        for pair in blocks.windows(2) {
            builder.edge(pair[0], pair[1]);
        }
        for value in 0..100 {
            builder.op(blocks[0], OpKind::Inc, Value(value));
            builder.op(blocks[3], OpKind::Dec, Value(value));
        }
        let mut cfg = builder.build().unwrap();
        let (down, up) = (DominatorTree::forward(&cfg), DominatorTree::backward(&cfg));
        let mut walker = Walker::new(cfg.len());
        let removed = prune(&mut Index::new(&mut cfg), &down, &up, &mut walker);
        assert_eq!((removed, walker.walks()), (200, 2));
    }
}
