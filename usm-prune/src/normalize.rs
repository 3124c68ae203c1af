//! Brings every block into the form that the passes expect: decrements last.

use crate::cfg::{Cfg, OpKind};

/// In blocks with an increment, moves all decrements behind all increments; both keep their order.
/// A block with decrements only already has that form.
pub(crate) fn normalize(cfg: &mut Cfg) {
    for ops in cfg.ops_mut() {
        // A stable partition: each kind keeps its order.
        ops.sort_by_key(|op| op.kind == OpKind::Dec);
    }
}
