//! Statements.

use syn::spanned::Spanned as _;
use syn::{Block, Expr as Rust, ExprAssign, ExprIf, Result, Stmt as RustStmt};
use usm_kernel_ir::{ArrayId, Binary, Expr, Literal, Scalar, Stmt, StmtKind, VarId};

use crate::atomic::{atomic, is_atomic};
use crate::declaration::declare;
use crate::expression::{self, typed};
use crate::label::{self, Jump};
use crate::literal;
use crate::range;
use crate::scope::{Meaning, Scope, refuse};
use crate::signature::place_of;

pub(crate) fn block(block: &Block, scope: &mut Scope) -> Result<Vec<Stmt>> {
    block_and(block, scope, |_, _| Ok(()))
}

/// Reads a block, then runs `end` while the block's names are still known.
pub(crate) fn block_and(
    block: &Block,
    scope: &mut Scope,
    end: impl FnOnce(&mut Scope, &mut Vec<Stmt>) -> Result<()>,
) -> Result<Vec<Stmt>> {
    let mark = scope.mark();
    let mut out = Vec::new();
    for stmt in &block.stmts {
        if !scope.called.is_empty() {
            scope.count_inlined(stmt.span())?;
        }
        match stmt {
            RustStmt::Local(local) => declare(local, scope, &mut out)?,
            RustStmt::Expr(inner, _) => statement(inner, scope, &mut out)?,
            RustStmt::Item(item) => {
                return refuse(
                    item.span(),
                    "a kernel has no items inside: write them beside it in a module with `#[kernels]`",
                );
            }
            RustStmt::Macro(call) => return refuse(call.span(), "a kernel calls no macros"),
        }
    }
    end(scope, &mut out)?;
    scope.forget(mark);
    Ok(out)
}

fn statement(stmt: &Rust, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    match stmt {
        Rust::Assign(assign) => assignment(assign, scope, out),
        Rust::Binary(binary) => match expression::assigning(&binary.op) {
            Some(operator) => update(binary, operator, scope, out),
            None => refuse(binary.span(), "a value that nothing takes: assign it"),
        },
        Rust::If(branch) => conditional(branch, scope, out),
        Rust::While(repeat) => {
            let at = place_of(repeat.while_token.span);
            let condition = typed(&repeat.cond, Scalar::Bool, scope)?;
            // The statements that the condition needs run in each round.
            let mut rounds = core::mem::take(&mut scope.before);
            label::enclosing(repeat.label.as_ref(), scope, out, |scope| {
                let body = block(&repeat.body, scope)?;
                if rounds.is_empty() {
                    return Ok(Stmt::new(StmtKind::While(condition, body), at));
                }
                let leave = vec![Stmt::new(StmtKind::Break, at)];
                rounds.push(Stmt::new(StmtKind::If(condition, Vec::new(), leave), at));
                rounds.extend(body);
                Ok(Stmt::new(StmtKind::While(Expr::literal(Literal::bool(true), at), rounds), at))
            })
        }
        Rust::Loop(repeat) => label::enclosing(repeat.label.as_ref(), scope, out, |scope| {
            let at = place_of(repeat.loop_token.span);
            let body = block(&repeat.body, scope)?;
            Ok(Stmt::new(StmtKind::While(Expr::literal(Literal::bool(true), at), body), at))
        }),
        Rust::ForLoop(counted) => range::counting(counted, scope, out),
        Rust::Block(inner) => {
            if let Some(label) = &inner.label {
                return refuse(
                    label.name.span(),
                    "only loops have labels: write `loop` with a `break` at its end",
                );
            }
            out.extend(block(&inner.block, scope)?);
            Ok(())
        }
        Rust::Break(word) => {
            if let Some(value) = &word.expr {
                return refuse(value.span(), "`break` leaves a loop without a value");
            }
            label::jump(Jump::Break, word.label.as_ref(), place_of(word.span()), scope, out)
        }
        Rust::Continue(word) => {
            label::jump(Jump::Continue, word.label.as_ref(), place_of(word.span()), scope, out)
        }
        Rust::Return(word) => crate::call::returned(word.expr.as_deref(), word.span(), scope, out),
        Rust::Call(call) => {
            let Rust::Path(path) = &*call.func else {
                return refuse(call.func.span(), "only functions by name are called");
            };
            let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
            if crate::call::of_neighbour(call, &name, scope)?.is_some() {
                out.append(&mut scope.before);
                return Ok(());
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
        Rust::MethodCall(call) => {
            let stmts = atomic(call, None, scope)?;
            out.append(&mut scope.before);
            out.extend(stmts);
            Ok(())
        }
        Rust::Paren(inner) => statement(&inner.expr, scope, out),
        Rust::Closure(closure) => refuse(closure.span(), "a kernel has no closures: write the loop"),
        Rust::Match(word) => refuse(word.match_token.span, "a kernel has no `match`: write `if`"),
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

fn conditional(branch: &ExprIf, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    if let Rust::Let(word) = &*branch.cond {
        return refuse(word.span(), "a kernel has no patterns: write a comparison");
    }
    let condition = typed(&branch.cond, Scalar::Bool, scope)?;
    out.append(&mut scope.before);
    let then = block(&branch.then_branch, scope)?;
    let mut other = Vec::new();
    match branch.else_branch.as_ref().map(|(_, other)| &**other) {
        None => {}
        Some(Rust::If(next)) => conditional(next, scope, &mut other)?,
        Some(Rust::Block(inner)) => other = block(&inner.block, scope)?,
        Some(other) => return refuse(other.span(), "`else` needs a block"),
    }
    out.push(Stmt::new(StmtKind::If(condition, then, other), place_of(branch.if_token.span)));
    Ok(())
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

fn assignment(assign: &ExprAssign, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let at = place_of(assign.eq_token.span);
    match &*assign.left {
        Rust::Path(path) => {
            let (variable, ty) = assigned(path, scope)?;
            if let Rust::MethodCall(call) = &*assign.right {
                if is_atomic(call) {
                    let stmts = atomic(call, Some(variable), scope)?;
                    out.append(&mut scope.before);
                    out.extend(stmts);
                    return Ok(());
                }
            }
            let value = typed(&assign.right, ty, scope)?;
            out.append(&mut scope.before);
            out.push(Stmt::new(StmtKind::Set(variable, value), at));
            Ok(())
        }
        Rust::Index(index) => {
            let (array, index, value) = written(index, &assign.right, None, scope)?;
            out.append(&mut scope.before);
            let at = index.place;
            out.push(Stmt::new(StmtKind::Store(array, index, value), at));
            Ok(())
        }
        other => refuse(other.span(), "only variables and elements are assigned"),
    }
}

/// Reads the value and then the index of an element that is written.
fn written(
    index: &syn::ExprIndex,
    right: &Rust,
    operator: Option<Binary>,
    scope: &mut Scope,
) -> Result<(ArrayId, Expr, Expr)> {
    expression::may_write(index, scope)?;
    let Some(ty) = expression::type_of_element(index, scope) else {
        // Says what is wrong.
        let (array, element, index) = expression::element(index, scope)?;
        return Ok((array, index, typed(right, element, scope)?));
    };
    let mut value = right_side(right, ty, operator, scope)?;
    let (array, _, index) = scope.read_after(&mut [&mut value], |scope| expression::element(index, scope))?;
    Ok((array, index, value))
}

/// Reads the right side of an assignment to a place of this type; a number of bits to shift by has
/// any integer type.
fn right_side(right: &Rust, ty: Scalar, operator: Option<Binary>, scope: &mut Scope) -> Result<Expr> {
    match operator {
        Some(Binary::Shl | Binary::Shr) if !literal::is_open(right) => expression::expr(right, None, scope),
        _ => typed(right, ty, scope),
    }
}

fn assigned(path: &syn::ExprPath, scope: &Scope) -> Result<(VarId, Scalar)> {
    let Some(name) = path.path.get_ident() else {
        return refuse(path.span(), "a kernel sees nothing outside of itself: make it a parameter");
    };
    match scope.find(name)? {
        Meaning::Variable { id, mutable: true } => Ok((id, scope.kernel.variable(id).ty)),
        Meaning::Variable { mutable: false, .. } => {
            refuse(name.span(), format!("`{name}` is set once: write `let mut {name}`"))
        }
        Meaning::Value(_) => refuse(
            name.span(),
            format!("`{name}` is a parameter, the same for all items: write `let mut {name} = {name};`"),
        ),
        Meaning::Constant(_) => refuse(name.span(), format!("`{name}` is a constant")),
        Meaning::Array(_) | Meaning::ReadOnly(_) => {
            refuse(name.span(), format!("`{name}` is an array: assign to an element `{name}[i]`"))
        }
    }
}

fn update(binary: &syn::ExprBinary, operator: Binary, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let at = place_of(binary.op.span());
    match &*binary.left {
        Rust::Path(path) => {
            let (variable, ty) = assigned(path, scope)?;
            let right = right_side(&binary.right, ty, Some(operator), scope)?;
            out.append(&mut scope.before);
            let left = Expr::variable(variable, ty, place_of(path.span()));
            out.push(Stmt::new(StmtKind::Set(variable, Expr::binary(operator, left, right, at)), at));
            Ok(())
        }
        Rust::Index(index) => {
            let (array, index, right) = written(index, &binary.right, Some(operator), scope)?;
            out.append(&mut scope.before);
            let at = index.place;
            let load = Expr::load(array, scope.kernel.array(array).element, index.clone(), at);
            out.push(Stmt::new(StmtKind::Store(array, index, Expr::binary(operator, load, right, at)), at));
            Ok(())
        }
        other => refuse(other.span(), "only variables and elements are assigned"),
    }
}
