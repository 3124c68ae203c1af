//! Brings every block into the form the passes expect: decrements after everything else.

use crate::cfg::{Cfg, OpKind};

/// In blocks with an increment, moves all decrements behind all increments; both keep their order.
/// A block that only decrements is in that form already.
pub(crate) fn normalize(cfg: &mut Cfg) {
    for ops in cfg.ops_mut() {
        // A stable partition: the order within each kind stays.
        ops.sort_by_key(|op| op.kind == OpKind::Dec);
    }
}
