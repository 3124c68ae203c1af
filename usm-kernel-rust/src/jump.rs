//! Loops with labels, and jumps to them.

use syn::{Label, Lifetime, Result};
use usm_kernel_ir::{Expr, Literal, Place, Scalar, Stmt, StmtKind};

use crate::label::{Exit, Jump, Loop};
use crate::reader::Reader;
use crate::refusal::refuse;

impl Reader {
    /// Reads a loop, and adds it with the tests behind it.
    pub(crate) fn read_loop(
        &mut self,
        label: Option<&Label>,
        out: &mut Vec<Stmt>,
        read: impl FnOnce(&mut Reader) -> Result<Stmt>,
    ) -> Result<()> {
        let (depth, label) = (self.loops.len(), label.map(|label| label.name.ident.to_string()));
        self.loops.push(Loop { label, calls: self.calls.len(), exits: Vec::new() });
        let stmt = read(self)?;
        let exits = self.loops.pop().map_or_else(Vec::new, |inner| inner.exits);
        let at = stmt.place;
        let is_last = |exit: &Exit| exit.to + 1 == depth;
        for exit in exits.iter().filter(|exit| is_last(exit)) {
            out.push(Stmt::new(StmtKind::Set(exit.variable, Expr::literal(Literal::bool(false), at)), at));
        }
        out.push(stmt);
        for exit in &exits {
            let jump = if is_last(exit) { exit.jump } else { Jump::Break };
            let leaves = Expr::variable(exit.variable, Scalar::Bool, at);
            out.push(Stmt::new(
                StmtKind::If { condition: leaves, then: vec![jump.stmt(at)], other: Vec::new() },
                at,
            ));
        }
        Ok(())
    }

    /// Adds a jump to a loop, by default the innermost one.
    pub(crate) fn add_jump(
        &mut self,
        jump: Jump,
        label: Option<&Lifetime>,
        at: Place,
        out: &mut Vec<Stmt>,
    ) -> Result<()> {
        let innermost = self.loops.len().wrapping_sub(1);
        let mut to = innermost;
        if let Some(label) = label {
            let (name, calls) = (label.ident.to_string(), self.calls.len());
            let is_meant = |one: &Loop| one.calls == calls && one.label.as_ref() == Some(&name);
            match self.loops.iter().rposition(is_meant) {
                Some(position) => to = position,
                None => return refuse(label.span(), format!("no loop around this has the label `{label}`")),
            }
        }
        if to == innermost {
            out.push(jump.stmt(at));
            return Ok(());
        }
        let same = |exit: &&Exit| (exit.to, exit.jump) == (to, jump);
        let variable = match self.loops[to + 1].exits.iter().find(same) {
            Some(exit) => exit.variable,
            None => self.add_hidden("leaves", Scalar::Bool, at),
        };
        for inner in &mut self.loops[to + 1..] {
            if !inner.exits.iter().any(|exit| exit.variable == variable) {
                inner.exits.push(Exit { to, jump, variable });
            }
        }
        out.push(Stmt::new(StmtKind::Set(variable, Expr::literal(Literal::bool(true), at)), at));
        out.push(Jump::Break.stmt(at));
        Ok(())
    }
}
