//! Innermost loops of CUDA C, with a counter of 32 bits where the bounds fit.
//!
//! NVIDIA's assembler takes four rounds of a loop together if its counter has 64 bits, and sixteen
//! and more if it has 32. A sum of a column waits for its loads: with four at a time it takes 2.9
//! times as long.

use alloc::format;

use super::{Dialect, Writer};
use crate::kernel::{Expr, ExprKind, Stmt, StmtKind, VarId, for_each};

/// Statements of a body that is worth writing twice.
const MOST: usize = 16;
/// Bounds and steps up to it: sums of two have 32 bits.
const LIMIT: &str = "0x3fffffff";

impl Writer<'_> {
    /// Writes a counting loop for bounds of 32 bits, and the `else` in front of the loop for all
    /// bounds, one level deeper. Returns whether it did: then a brace has to follow that loop.
    pub(super) fn loop_of_32_bits(
        &mut self,
        variable: VarId,
        bounds: [&Expr; 3],
        body: &[Stmt],
        depth: usize,
    ) -> bool {
        let ty = self.kernel.variable(variable).ty;
        let is_one = matches!(bounds[2].kind, ExprKind::Literal(literal) if literal.bits <= 1);
        // The compiler itself counts the rounds of loops with fixed bounds.
        let is_fixed = bounds.iter().all(|bound| matches!(bound.kind, ExprKind::Literal(_)));
        let is_quick = ty.bits() < 32 || (ty.bits() == 32 && is_one) || is_fixed;
        if self.dialect != Dialect::Cuda || self.checks.is_some() || is_quick {
            return false;
        }
        // What memory holds is read once.
        if bounds.iter().any(|bound| loads(bound)) || !is_small(body) {
            return false;
        }
        let (c, number) = (self.ty(ty), self.loops);
        self.loops += 1;
        self.line(depth, "{");
        let [start, end, step] = ["start", "end", "step"].map(|name| format!("{name}_{number}"));
        for (name, bound) in [&start, &end, &step].into_iter().zip(bounds) {
            let value = self.expr(bound);
            self.line(depth + 1, &format!("const {c} {name} = {value};"));
        }
        let mut fits = format!("{start} <= {LIMIT} && {end} <= {LIMIT} && {step} > 0 && {step} <= {LIMIT}");
        if ty.is_signed() {
            fits += &format!(" && {start} >= -{LIMIT} && {end} >= -{LIMIT}");
        }
        self.line(depth + 1, &format!("if ({fits}) {{"));
        let counter = format!("count_{number}");
        self.line(
            depth + 2,
            &format!(
                "for (int {counter} = (int){start}; {counter} < (int){end}; {counter} += (int){step}) {{"
            ),
        );
        let name = self.variable_name(variable);
        self.line(depth + 3, &format!("{name} = {counter};"));
        self.breaks.push(None);
        self.block(body, depth + 3);
        self.breaks.pop();
        self.line(depth + 2, "}");
        self.line(depth + 1, "} else");
        true
    }
}

fn loads(expr: &Expr) -> bool {
    let mut has_load = false;
    expr.for_each(&mut |part| has_load |= matches!(part.kind, ExprKind::Load(..)));
    has_load
}

/// Whether a body has few statements, no loop and no barrier.
fn is_small(body: &[Stmt]) -> bool {
    let (mut statements, mut is_plain) = (0, true);
    for_each(
        body,
        &mut |stmt| {
            statements += 1;
            is_plain &=
                !matches!(stmt.kind, StmtKind::While(..) | StmtKind::For { .. } | StmtKind::Barrier { .. });
        },
        &mut |_| (),
    );
    is_plain && statements <= MOST
}
