//! Removes a decrement and a later increment of the same value in two blocks that always run
//! together: the object lives on between them.
//!
//! Releases between the two do not matter, unlike for an increment and its decrement. So blocks
//! that always run together, in alternation on every path, form classes. Inside a class the
//! decrements and increments of a value match like brackets. One pass is enough: the removals of
//! other passes leave no new brackets to match.

use alloc::vec::Vec;

use crate::cfg::{OpKind, Value};
use crate::dominance::{DominatorTree, NONE};
use crate::index::{Index, Pick};
use crate::loops::Loops;

/// Maximum number of dominators that are tried to find a block's class.
const MAX_STEPS: usize = 64;

/// Removes such pairs. Returns the number of removed operations.
pub(crate) fn prune(index: &mut Index<'_>) -> usize {
    let classes = Classes::new(index);
    // Value, class, position of the block on the way from the class's first block, position in the
    // block, kind, id.
    let mut ops: Vec<(Value, u32, u32, u32, OpKind, u32)> = Vec::new();
    for (place, &block) in (0u32..).zip(&classes.order) {
        for kind in [OpKind::Inc, OpKind::Dec] {
            for op in index.live(block, kind).filter(|op| op.value != Value::NULL) {
                index.step();
                ops.push((op.value, classes.class[block as usize], place, block, kind, op.id));
            }
        }
    }
    // Stable: a block's increments stay before its decrements.
    ops.sort_by_key(|&(value, class, place, ..)| (value, class, place));
    let mut removed_count = 0;
    let mut open: Vec<(u32, u32)> = Vec::new();
    let mut last = None;
    for (value, class, _, block, kind, id) in ops {
        if last.replace((value, class)) != Some((value, class)) {
            open.clear();
        }
        if kind == OpKind::Dec {
            open.push((block, id));
        } else if let Some((before, dec)) = open.pop() {
            index.remove(OpKind::Dec, before, value, Pick::Id(dec));
            index.remove(OpKind::Inc, block, value, Pick::Id(id));
            removed_count += 2;
        }
    }
    removed_count
}

/// Blocks that run in alternation on every path.
struct Classes {
    /// Reachable blocks, each behind its dominators.
    order: Vec<u32>,
    /// The first block of each block's class.
    class: Vec<u32>,
}

impl Classes {
    fn new(index: &Index<'_>) -> Self {
        let (down, up) = (DominatorTree::forward(index.cfg), DominatorTree::backward(index.cfg));
        let (loops, back) = (Loops::forward(index.cfg), Loops::backward(index.cfg));
        let block_count = loops.blocks();
        let order = down.preorder();
        let mut class: Vec<u32> = index.cfg.blocks().collect();
        for &block in &order {
            let mut above = down.immediate_dominator(block);
            for _ in 0..MAX_STEPS {
                // If neither holds for this dominator, neither holds for one further up.
                if above == NONE
                    || !up.dominates(block, above)
                    || loops.returns_through(above, block) != Some(true)
                {
                    break;
                }
                index.step();
                if back.returns_through(block, above) == Some(true) {
                    class[block as usize] = class[above as usize];
                    break;
                }
                // This one repeats before the block. The next candidate lies before its loop.
                let header = loops.header(above).map(|header| block_count[header as usize]);
                let before = header
                    .filter(|&header| down.dominates(header, above))
                    .map(|header| down.immediate_dominator(header));
                above = match before {
                    Some(before) if before == NONE || loops.returns_through(before, block) == Some(true) => {
                        before
                    }
                    _ => down.immediate_dominator(above),
                };
            }
        }
        Self { order, class }
    }
}
