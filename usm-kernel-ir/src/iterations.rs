//! Rounds of loops, as far as the nodes state them.

use crate::kernel::{ExprKind, Stmt, StmtKind};

/// The most rounds of a short loop, with those of the loops inside.
const SHORT: u64 = 4096;

impl Stmt {
    /// Whether it is a counting loop of few rounds. Machine code need not ask inside whether it may
    /// go on.
    #[must_use]
    pub fn is_short_loop(&self) -> bool {
        self.short_rounds().is_some()
    }

    /// The rounds of a short loop, with those of the short loops inside.
    fn short_rounds(&self) -> Option<u64> {
        let StmtKind::For { start, end, body, .. } = &self.kind else { return None };
        let (ExprKind::Literal(start), ExprKind::Literal(end)) = (&start.kind, &end.kind) else {
            return None;
        };
        let own = end.bits.wrapping_sub(start.bits);
        let all = own.checked_mul(1 + rounds_inside(body))?;
        (all <= SHORT).then_some(all)
    }
}

/// The rounds of the short loops in a block.
fn rounds_inside(body: &[Stmt]) -> u64 {
    let of = |stmt: &Stmt| {
        let inside = || stmt.blocks().into_iter().map(rounds_inside).sum();
        stmt.short_rounds().unwrap_or_else(inside)
    };
    body.iter().map(of).sum()
}
