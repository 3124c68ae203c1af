//! Pairs inside one block, and operations on null.

use alloc::vec::Vec;

use super::cfg::{Index, Op, OpKind, Value};

/// Removes operations on null, then pairs each increment, from the last to the first, with the first
/// decrement of the same value. Returns how many operations were removed.
pub(crate) fn prune(index: &mut Index<'_>) -> usize {
    let mut removed = 0;
    let mut increments: Vec<Op> = Vec::new();
    for block in index.cfg.blocks() {
        increments.clear();
        increments.extend(index.live(block).filter(|op| op.kind == OpKind::Inc));
        while index.remove_dec(block, Value::NULL) {
            removed += 1;
        }
        for &inc in increments.iter().rev() {
            if inc.value == Value::NULL {
                index.remove_inc(inc);
                removed += 1;
            } else if index.remove_dec(block, inc.value) {
                index.remove_inc(inc);
                removed += 2;
            }
        }
    }
    removed
}
