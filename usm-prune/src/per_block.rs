//! Removes pairs inside one block, and operations on null.

use alloc::vec::Vec;

use crate::cfg::{Op, OpKind, Value};
use crate::index::{Index, Pick};

/// Removes operations on null, then pairs each increment, from the last to the first, with the
/// first decrement of the same value. Returns the number of removed operations.
pub(crate) fn prune(index: &mut Index<'_>) -> usize {
    let mut removed_count = 0;
    let mut increments: Vec<Op> = Vec::new();
    for block in index.cfg.blocks() {
        increments.clear();
        increments.extend(index.live(block, OpKind::Inc));
        while index.remove(OpKind::Dec, block, Value::NULL, Pick::First) {
            removed_count += 1;
        }
        for inc in increments.iter().rev() {
            if inc.value == Value::NULL {
                index.remove(OpKind::Inc, block, inc.value, Pick::Last);
                removed_count += 1;
            } else if index.remove(OpKind::Dec, block, inc.value, Pick::First) {
                index.remove(OpKind::Inc, block, inc.value, Pick::Last);
                removed_count += 2;
            }
        }
    }
    removed_count
}

/// The pass from before llvmlite had one (`NUMBA_LLVM_REFPRUNE_PASS=0`): only pairs, last with
/// last, and null like any other value. Returns the number of removed operations.
pub(crate) fn prune_legacy(index: &mut Index<'_>) -> usize {
    let mut removed_count = 0;
    let mut increments: Vec<Op> = Vec::new();
    for block in index.cfg.blocks() {
        increments.clear();
        increments.extend(index.live(block, OpKind::Inc));
        for inc in increments.iter().rev() {
            if index.remove(OpKind::Dec, block, inc.value, Pick::Last) {
                index.remove(OpKind::Inc, block, inc.value, Pick::Last);
                removed_count += 2;
            }
        }
    }
    removed_count
}
