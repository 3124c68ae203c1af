//! Statements.

use syn::spanned::Spanned as _;
use syn::{Block, Expr as Rust, ExprIf, Item, Result, Stmt as RustStmt};
use usm_kernel_ir::{Expr, Literal, Scalar, Stmt, StmtKind};

use crate::choice::as_branches;
use crate::label::Jump;
use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;
use crate::types::scalar;
use crate::{expression, swap};

impl Reader {
    pub(crate) fn read_block(&mut self, block: &Block) -> Result<Vec<Stmt>> {
        self.read_block_and(block, |_, _| Ok(()))
    }

    /// Reads a block, then runs `end` while the block's names are still known.
    pub(crate) fn read_block_and(
        &mut self,
        block: &Block,
        end: impl FnOnce(&mut Reader, &mut Vec<Stmt>) -> Result<()>,
    ) -> Result<Vec<Stmt>> {
        let mark = self.mark();
        let mut out = Vec::new();
        self.read_statements(&block.stmts, &mut out)?;
        end(self, &mut out)?;
        self.forget(mark);
        Ok(out)
    }

    fn read_statements(&mut self, stmts: &[RustStmt], out: &mut Vec<Stmt>) -> Result<()> {
        for stmt in stmts {
            if !self.calls.is_empty() {
                self.count_inlined(stmt.span())?;
            }
            match stmt {
                RustStmt::Local(local) => self.declare(local, out)?,
                RustStmt::Expr(inner, _) => self.read_statement(inner, out)?,
                RustStmt::Item(Item::Const(item)) if scalar(&item.ty).is_ok() => {
                    let value = self.read_constant(item)?;
                    self.name(&item.ident, Meaning::Constant(value));
                }
                RustStmt::Item(item) => {
                    return refuse(
                        item.span(),
                        "a kernel has no items inside but constants that are numbers: write them beside it in a module with `#[kernels]`",
                    );
                }
                RustStmt::Macro(call) => self.read_macro(&call.mac, out)?,
            }
        }
        Ok(())
    }

    /// Reads a block that is a value: its statements run before the current one.
    pub(crate) fn read_block_value<T>(
        &mut self,
        block: &Block,
        read: impl FnOnce(&Rust, &mut Reader) -> Result<T>,
    ) -> Result<T> {
        let Some((RustStmt::Expr(last, None), first)) = block.stmts.split_last() else {
            return refuse(block.span(), "a block that is a value ends in one, without `;`");
        };
        let mark = self.mark();
        let mut out = core::mem::take(&mut self.before);
        self.read_statements(first, &mut out)?;
        self.before = out;
        let value = read(last, self)?;
        self.forget(mark);
        Ok(value)
    }

    fn read_statement(&mut self, stmt: &Rust, out: &mut Vec<Stmt>) -> Result<()> {
        match stmt {
            Rust::Macro(call) => self.read_macro(&call.mac, out),
            Rust::Assign(assign) => self.read_assignment(assign, out),
            Rust::Binary(binary) => match expression::assignment_operator(&binary.op) {
                Some(operator) => self.read_update(binary, operator, out),
                None => refuse(binary.span(), "a value that nothing takes: assign it"),
            },
            Rust::If(branch) => self.read_if(branch, out),
            Rust::While(repeat) => self.read_while(repeat, out),
            Rust::Loop(repeat) => self.read_loop(repeat.label.as_ref(), out, |reader| {
                let at = place_of(repeat.loop_token.span);
                let body = reader.read_block(&repeat.body)?;
                Ok(Stmt::new(StmtKind::While(Expr::literal(Literal::bool(true), at), body), at))
            }),
            Rust::ForLoop(word) => self.read_for(word, out),
            Rust::Block(inner) => {
                if let Some(label) = &inner.label {
                    return refuse(
                        label.name.span(),
                        "only loops have labels: write `loop` with a `break` at its end",
                    );
                }
                out.extend(self.read_block(&inner.block)?);
                Ok(())
            }
            Rust::Break(word) => {
                if let Some(value) = &word.expr {
                    return refuse(value.span(), "`break` leaves a loop without a value");
                }
                self.add_jump(Jump::Break, word.label.as_ref(), place_of(word.span()), out)
            }
            Rust::Continue(word) => {
                self.add_jump(Jump::Continue, word.label.as_ref(), place_of(word.span()), out)
            }
            Rust::Return(word) => self.read_return(word.expr.as_deref(), word.span(), out),
            Rust::Call(call) => self.read_call_statement(call, out),
            Rust::MethodCall(call) if call.method == "swap" && call.args.len() == 2 => {
                let [one, two] = swap::elements(call);
                self.read_swap([&one, &two], out)
            }
            Rust::MethodCall(call) => {
                let stmts = self.read_atomic(call, None)?;
                out.append(&mut self.before);
                out.extend(stmts);
                Ok(())
            }
            Rust::Paren(inner) => self.read_statement(&inner.expr, out),
            Rust::Closure(closure) => refuse(closure.span(), "a kernel has no closures: write the loop"),
            Rust::Match(word) => self.read_statement(&as_branches(word)?, out),
            Rust::Unsafe(word) => refuse(
                word.unsafe_token.span,
                "a kernel has no unsafe blocks: write `unsafe fn`, whose launch is unsafe too",
            ),
            other => refuse(
                other.span(),
                "no statement of a kernel: it has `let`, assignments, `if`, loops, `return`, barriers, atomic operations and calls",
            ),
        }
    }

    fn read_while(&mut self, repeat: &syn::ExprWhile, out: &mut Vec<Stmt>) -> Result<()> {
        let at = place_of(repeat.while_token.span);
        let condition = self.read_typed(&repeat.cond, Scalar::Bool)?;
        // The statements that the condition needs run in each round.
        let mut rounds = core::mem::take(&mut self.before);
        self.read_loop(repeat.label.as_ref(), out, |reader| {
            let body = reader.read_block(&repeat.body)?;
            if rounds.is_empty() {
                return Ok(Stmt::new(StmtKind::While(condition, body), at));
            }
            let leave = vec![Stmt::new(StmtKind::Break, at)];
            rounds.push(Stmt::new(StmtKind::If { condition, then: Vec::new(), other: leave }, at));
            rounds.extend(body);
            Ok(Stmt::new(StmtKind::While(Expr::literal(Literal::bool(true), at), rounds), at))
        })
    }

    fn read_call_statement(&mut self, call: &syn::ExprCall, out: &mut Vec<Stmt>) -> Result<()> {
        let Rust::Path(path) = &*call.func else {
            return refuse(call.func.span(), "only functions by name are called");
        };
        let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        if self.read_call(call, &name)?.is_some() {
            out.append(&mut self.before);
            return Ok(());
        }
        if name == "swap" && call.args.len() == 2 {
            let places: Vec<&Rust> = call.args.iter().map(referent).collect();
            return self.read_swap([places[0], places[1]], out);
        }
        let at = place_of(path.span());
        match name.as_str() {
            "barrier" => {
                let [local, global] = spaces(call)?;
                out.push(Stmt::new(StmtKind::Barrier { local, global }, at));
                Ok(())
            }
            "fence" => {
                let [local, global] = spaces(call)?;
                out.push(Stmt::new(StmtKind::Fence { local, global }, at));
                Ok(())
            }
            _ => refuse(
                call.span(),
                "no statement of a kernel; it calls `barrier`, `fence` and what is a `#[kernel_fn]` in the same module with `#[kernels]`",
            ),
        }
    }

    fn read_macro(&mut self, call: &syn::Macro, out: &mut Vec<Stmt>) -> Result<()> {
        match call.path.get_ident().map(ToString::to_string).unwrap_or_default().as_str() {
            "assert" => self.read_assertion(call, out),
            "print" => self.read_print(call, false, out),
            "println" => self.read_print(call, true, out),
            _ => refuse(call.path.span(), "a kernel calls no macros but `assert!`, `print!` and `println!`"),
        }
    }

    fn read_if(&mut self, branch: &ExprIf, out: &mut Vec<Stmt>) -> Result<()> {
        if let Rust::Let(word) = &*branch.cond {
            return refuse(word.span(), "a kernel has no such patterns: write `match` or a comparison");
        }
        let condition = self.read_typed(&branch.cond, Scalar::Bool)?;
        out.append(&mut self.before);
        let then = self.read_block(&branch.then_branch)?;
        let mut other = Vec::new();
        match branch.else_branch.as_ref().map(|(_, other)| &**other) {
            None => {}
            Some(Rust::If(next)) => self.read_if(next, &mut other)?,
            Some(Rust::Block(inner)) => other = self.read_block(&inner.block)?,
            Some(other) => return refuse(other.span(), "`else` needs a block"),
        }
        out.push(Stmt::new(StmtKind::If { condition, then, other }, place_of(branch.if_token.span)));
        Ok(())
    }
}

/// The memory that a barrier or fence names: local, global or both.
fn spaces(call: &syn::ExprCall) -> Result<[bool; 2]> {
    let (mut local, mut global) = (call.args.is_empty(), call.args.is_empty());
    let mut spaces: Vec<&Rust> = call.args.iter().collect();
    while let Some(space) = spaces.pop() {
        match space {
            Rust::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "LOCAL") => {
                local = true
            }
            Rust::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == "GLOBAL") => {
                global = true
            }
            Rust::Binary(both) if matches!(both.op, syn::BinOp::BitOr(_)) => {
                spaces.extend([&*both.left, &*both.right])
            }
            other => {
                return refuse(
                    other.span(),
                    "write `barrier(LOCAL)`, `barrier(GLOBAL)` or `barrier(LOCAL | GLOBAL)`",
                );
            }
        }
    }
    Ok([local, global])
}

/// What a reference refers to.
fn referent(value: &Rust) -> &Rust {
    match value {
        Rust::Reference(inner) => &inner.expr,
        other => other,
    }
}
