//! Guards of items as bounds of the loop over a row.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::super::guard::{Bound, Condition, Guards};
use super::host::Host;
use crate::kernel::{Expr, Query};
use crate::scalar::Scalar;

impl Host<'_, '_> {
    /// Writes the first local id of a row that is inside of the guards, and the one behind the
    /// last.
    pub(super) fn bounds(&mut self, guards: &Guards<'_>, [from, to]: [&str; 2]) {
        self.line(&format!("ulong {from} = 0, {to} = usm_here_0;"));
        if guards.rows.is_empty() && guards.bounds.is_empty() {
            return;
        }
        self.line("{");
        let rows = guards.rows.iter().map(|condition| condition.expr);
        let exprs: Vec<&Expr> = rows.chain(guards.bounds.iter().map(|bound| bound.limit)).collect();
        self.recompute(&exprs);
        for condition in &guards.rows {
            let outside = self.condition(*condition, false);
            self.line(&format!("if ({outside}) {to} = 0;"));
        }
        for Bound { id, limit, first, end, .. } in &guards.bounds {
            let base = if *id == Query::GlobalId { "usm_base_0" } else { "0ul" };
            let convert = if limit.ty == Scalar::I64 { "usm_of_signed" } else { "usm_of_unsigned" };
            let limit = self.writer.expr(limit);
            if let Some(more) = first {
                self.line(&format!("{from} = usm_later({from}, {convert}({limit}, {more}), {base});"));
            }
            if let Some(more) = end {
                self.line(&format!("{to} = usm_earlier({to}, {convert}({limit}, {more}), {base});"));
            }
        }
        self.line("}");
    }

    /// The text that is true if a condition has its value, or has it not.
    pub(super) fn condition(&mut self, Condition { expr, value, .. }: Condition<'_>, has: bool) -> String {
        let text = self.writer.expr(expr);
        if value == has { text } else { format!("!({text})") }
    }
}
