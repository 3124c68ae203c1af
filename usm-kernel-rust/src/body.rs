//! Statements.

use syn::spanned::Spanned as _;
use syn::{Block, Expr as Rust, ExprAssign, ExprIf, Item, Result, Stmt as RustStmt};
use usm_kernel_ir::{ArrayId, Binary, Expr, Literal, Scalar, Stmt, StmtKind, VarId};

use crate::ahead::of_value;
use crate::atomic::{atomic, is_atomic};
use crate::choice::as_branches;
use crate::declaration::declare;
use crate::expression::{self, typed};
use crate::label::{self, Jump};
use crate::scope::{Meaning, Scope, refuse, scalar};
use crate::signature::place_of;
use crate::{assertion, complex, constant, literal, print, range, structure, swap, tuple};

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
    statements(&block.stmts, scope, &mut out)?;
    end(scope, &mut out)?;
    scope.forget(mark);
    Ok(out)
}

fn statements(stmts: &[RustStmt], scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    for stmt in stmts {
        if !scope.called.is_empty() {
            scope.count_inlined(stmt.span())?;
        }
        match stmt {
            RustStmt::Local(local) => declare(local, scope, out)?,
            RustStmt::Expr(inner, _) => statement(inner, scope, out)?,
            RustStmt::Item(Item::Const(item)) if scalar(&item.ty).is_ok() => {
                let value = constant::of_item(item, scope)?;
                scope.name(&item.ident, Meaning::Constant(value));
            }
            RustStmt::Item(item) => {
                return refuse(
                    item.span(),
                    "a kernel has no items inside but constants that are numbers: write them beside it in a module with `#[kernels]`",
                );
            }
            RustStmt::Macro(call) => called_macro(&call.mac, scope, out)?,
        }
    }
    Ok(())
}

/// Reads a block that is a value: its statements run before the current one.
pub(crate) fn value_of<T>(
    block: &Block,
    scope: &mut Scope,
    read: impl FnOnce(&Rust, &mut Scope) -> Result<T>,
) -> Result<T> {
    let Some((RustStmt::Expr(last, None), first)) = block.stmts.split_last() else {
        return refuse(block.span(), "a block that is a value ends in one, without `;`");
    };
    let mark = scope.mark();
    let mut out = core::mem::take(&mut scope.before);
    statements(first, scope, &mut out)?;
    scope.before = out;
    let value = read(last, scope)?;
    scope.forget(mark);
    Ok(value)
}

fn statement(stmt: &Rust, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    match stmt {
        Rust::Macro(call) => called_macro(&call.mac, scope, out),
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
                rounds.push(Stmt::new(StmtKind::If { condition, then: Vec::new(), other: leave }, at));
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
            if name == "swap" && call.args.len() == 2 {
                let places: Vec<&Rust> = call.args.iter().map(referred).collect();
                return swap::read([places[0], places[1]], scope, out);
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
        Rust::MethodCall(call) if call.method == "swap" && call.args.len() == 2 => {
            let [one, two] = swap::elements(call);
            swap::read([&one, &two], scope, out)
        }
        Rust::MethodCall(call) => {
            let stmts = atomic(call, None, scope)?;
            out.append(&mut scope.before);
            out.extend(stmts);
            Ok(())
        }
        Rust::Paren(inner) => statement(&inner.expr, scope, out),
        Rust::Closure(closure) => refuse(closure.span(), "a kernel has no closures: write the loop"),
        Rust::Match(word) => statement(&as_branches(word)?, scope, out),
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

fn called_macro(call: &syn::Macro, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    match call.path.get_ident().map(ToString::to_string).unwrap_or_default().as_str() {
        "assert" => assertion::read(call, scope, out),
        "print" => print::read(call, false, scope, out),
        "println" => print::read(call, true, scope, out),
        _ => refuse(call.path.span(), "a kernel calls no macros but `assert!`, `print!` and `println!`"),
    }
}

fn conditional(branch: &ExprIf, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    if let Rust::Let(word) = &*branch.cond {
        return refuse(word.span(), "a kernel has no such patterns: write `match` or a comparison");
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
    out.push(Stmt::new(StmtKind::If { condition, then, other }, place_of(branch.if_token.span)));
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
        element if structure::is_element(element, scope) => {
            structure::assign(element, &assign.right, scope, out)
        }
        Rust::Path(path) if tuple::is_tuple(&assign.left, scope) => {
            let Some(Meaning::Tuple(number)) = path.path.get_ident().and_then(|name| scope.find(name).ok())
            else {
                return refuse(path.span(), "only variables and elements are assigned");
            };
            let (names, mutable) = scope.tuples[number].clone();
            if !mutable {
                return refuse(path.span(), "this tuple or structure is set once: write `let mut`");
            }
            let hints: Vec<_> = names.iter().map(|id| Some(scope.kernel.variable(*id).ty)).collect();
            let [needed, given] = [&assign.left, &assign.right].map(|side| of_value(side, scope));
            if let Some(needed) = needed.filter(|needed| given != Some(*needed)) {
                return complex::refuse_other(&assign.right, needed, scope);
            }
            let values = tuple::parts(&assign.right, &hints, scope)?;
            let found: Vec<_> = values.iter().map(|value| Some(value.ty)).collect();
            if found != hints || given != needed {
                return refuse(assign.right.span(), "a tuple of other types");
            }
            let mut kept = Vec::new();
            for value in values {
                let variable = scope.hidden("part", value.ty, at);
                kept.push(Expr::variable(variable, value.ty, at));
                scope.before.push(Stmt::new(StmtKind::Set(variable, value), at));
            }
            out.append(&mut scope.before);
            let sets = names.into_iter().zip(kept);
            out.extend(sets.map(|(id, value)| Stmt::new(StmtKind::Set(id, value), at)));
            Ok(())
        }
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
            out.push(Stmt::new(StmtKind::Store { array, index, value }, at));
            Ok(())
        }
        Rust::Tuple(tuple) => {
            let places: Vec<&Rust> = tuple.elems.iter().collect();
            tuple::assign(&places, &assign.right, scope, out)
        }
        Rust::Field(field) if structure::is_element(&field.base, scope) => {
            let (array, index, value) = written_field(field, &assign.right, None, scope)?;
            out.append(&mut scope.before);
            let at = index.place;
            out.push(Stmt::new(StmtKind::Store { array, index, value }, at));
            Ok(())
        }
        Rust::Field(field) => {
            let (variable, ty) = assigned_field(field, scope)?;
            let value = typed(&assign.right, ty, scope)?;
            out.append(&mut scope.before);
            out.push(Stmt::new(StmtKind::Set(variable, value), at));
            Ok(())
        }
        other => refuse(other.span(), "only variables, elements and tuples of them are assigned"),
    }
}

/// Reads the value of a field of an element, and then its place.
fn written_field(
    field: &syn::ExprField,
    right: &Rust,
    operator: Option<Binary>,
    scope: &mut Scope,
) -> Result<(ArrayId, Expr, Expr)> {
    let ty = structure::field_type(field, scope)?;
    let mut value = right_side(right, ty, operator, scope)?;
    let found = scope.read_after(&mut [&mut value], |scope| structure::field_place(field, scope))?;
    match found {
        Some((array, _, index)) => Ok((array, index, value)),
        None => refuse(field.span(), "only variables, elements and their fields are assigned"),
    }
}

fn assigned_field(field: &syn::ExprField, scope: &Scope) -> Result<(VarId, Scalar)> {
    match tuple::field(field, scope)? {
        (id, true) => Ok((id, scope.kernel.variable(id).ty)),
        (_, false) => refuse(field.span(), "this tuple or structure is set once: write `let mut`"),
    }
}

/// What a reference refers to.
fn referred(value: &Rust) -> &Rust {
    match value {
        Rust::Reference(inner) => &inner.expr,
        other => other,
    }
}

/// The type of a place that is set; `None` for `_`.
pub(crate) fn type_of_place(place: &Rust, scope: &Scope) -> Result<Option<Scalar>> {
    Ok(match place {
        Rust::Infer(_) => None,
        Rust::Path(path) => Some(assigned(path, scope)?.1),
        Rust::Field(field) if structure::is_element(&field.base, scope) => {
            Some(structure::field_type(field, scope)?)
        }
        Rust::Field(field) => Some(assigned_field(field, scope)?.1),
        Rust::Index(index) => expression::type_of_element(index, scope),
        other => return refuse(other.span(), "only variables and elements are assigned"),
    })
}

/// Sets a place to a value, before the current statement.
pub(crate) fn set_place(place: &Rust, value: Expr, scope: &mut Scope) -> Result<()> {
    let at = place_of(place.span());
    let is = |ty: Scalar, value: &Expr| {
        if value.ty == ty {
            return Ok(());
        }
        refuse(place.span(), format!("{} where {ty} is needed: write `as {ty}`", value.ty))
    };
    match place {
        Rust::Infer(_) => {}
        Rust::Index(index) => {
            expression::may_write(index, scope)?;
            let (array, element, index) = expression::element(index, scope)?;
            is(element, &value)?;
            let at = index.place;
            scope.before.push(Stmt::new(StmtKind::Store { array, index, value }, at));
        }
        Rust::Field(field) if structure::is_element(&field.base, scope) => {
            let ty = structure::field_type(field, scope)?;
            is(ty, &value)?;
            if let Some((array, _, index)) = structure::field_place(field, scope)? {
                let at = index.place;
                scope.before.push(Stmt::new(StmtKind::Store { array, index, value }, at));
            }
        }
        Rust::Field(field) => {
            let (variable, ty) = assigned_field(field, scope)?;
            is(ty, &value)?;
            scope.before.push(Stmt::new(StmtKind::Set(variable, value), at));
        }
        Rust::Path(path) => {
            let (variable, ty) = assigned(path, scope)?;
            is(ty, &value)?;
            scope.before.push(Stmt::new(StmtKind::Set(variable, value), at));
        }
        other => return refuse(other.span(), "only variables and elements are assigned"),
    }
    Ok(())
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
        Meaning::Array(_) | Meaning::ReadOnly(_) | Meaning::View(_) | Meaning::Table(_) => {
            refuse(name.span(), format!("`{name}` is an array: assign to an element `{name}[i]`"))
        }
        Meaning::Tuple(_) => refuse(name.span(), format!("`{name}` is a tuple: assign to `{name}.0`")),
    }
}

/// Reads an index once that memory gives: a second read may differ.
pub(crate) fn keep_index(index: &mut Expr, scope: &mut Scope, out: &mut Vec<Stmt>) {
    if scope.may_change(index) {
        let (ty, at) = (index.ty, index.place);
        let kept = scope.hidden("index", ty, at);
        let value = core::mem::replace(index, Expr::variable(kept, ty, at));
        out.push(Stmt::new(StmtKind::Set(kept, value), at));
    }
}

fn update(binary: &syn::ExprBinary, operator: Binary, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let at = place_of(binary.op.span());
    if let Some(of) = complex::of(&binary.left, scope) {
        return complex::update(binary, operator, of, scope, out);
    }
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
            let (array, mut index, right) = written(index, &binary.right, Some(operator), scope)?;
            out.append(&mut scope.before);
            let at = index.place;
            keep_index(&mut index, scope, out);
            let load = Expr::load(array, scope.kernel.array(array).element, index.clone(), at);
            out.push(Stmt::new(
                StmtKind::Store { array, index, value: Expr::binary(operator, load, right, at) },
                at,
            ));
            Ok(())
        }
        Rust::Field(field) if structure::is_element(&field.base, scope) => {
            let (array, mut index, right) = written_field(field, &binary.right, Some(operator), scope)?;
            out.append(&mut scope.before);
            let at = index.place;
            keep_index(&mut index, scope, out);
            let load = Expr::load(array, scope.kernel.array(array).element, index.clone(), at);
            out.push(Stmt::new(
                StmtKind::Store { array, index, value: Expr::binary(operator, load, right, at) },
                at,
            ));
            Ok(())
        }
        Rust::Field(field) => {
            let (variable, ty) = assigned_field(field, scope)?;
            let right = right_side(&binary.right, ty, Some(operator), scope)?;
            out.append(&mut scope.before);
            let left = Expr::variable(variable, ty, at);
            out.push(Stmt::new(StmtKind::Set(variable, Expr::binary(operator, left, right, at)), at));
            Ok(())
        }
        other => refuse(other.span(), "only variables and elements are assigned"),
    }
}
