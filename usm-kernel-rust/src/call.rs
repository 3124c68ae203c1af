//! Calls: functions of the same module, which are inlined, and collective operations of a group.

use alloc::rc::Rc;

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprCall, FnArg, ItemFn, Pat, Result, ReturnType, Type, TypeArray};
use usm_kernel_ir::{
    ArrayId, Binary, Collection, Expr, ExprKind, Scalar, Space, Stmt, StmtKind, without_returns,
};

use crate::expression::{expr, typed};
use crate::scope::{Called, Meaning, Module, Scope, refuse, scalar};
use crate::signature::{element, length, place_of};
use crate::{body, instance};

/// Inlines a function of the same module before the statement. The outer `None`: no function has
/// this name. The inner `None`: the function has no result.
pub(crate) fn of_neighbour(call: &ExprCall, name: &str, scope: &mut Scope) -> Result<Option<Option<Expr>>> {
    scope.neighbours.refuse_conditional(name, call.func.span())?;
    refuse_other_function(call, name, scope)?;
    let function = scope.neighbours.functions.iter().find(|function| function.sig.ident == name);
    let Some(mut function) = function.map(Rc::clone) else { return Ok(None) };
    if let Rust::Path(path) = &*call.func {
        if let Some(concrete) = instance::of_call(&function, path)? {
            function = Rc::new(concrete);
        }
    }
    scope.count_inlined(call.span())?;
    if scope.called.iter().any(|called| called.name == name) {
        return refuse(
            call.span(),
            format!("`{name}` calls itself: devices have no recursion, write a loop"),
        );
    }
    let (needed, given) = (function.sig.inputs.len(), call.args.len());
    if needed != given {
        return refuse(call.span(), format!("`{name}` has {needed} parameters, {given} arguments are given"));
    }
    let mut names = Vec::new();
    for (parameter, argument) in function.sig.inputs.iter().zip(&call.args) {
        let named = given_for(parameter, argument, scope)?;
        if names.iter().any(|(name, _)| *name == named.0) {
            return refuse(parameter.span(), format!("two parameters are called `{}`", named.0));
        }
        names.push(named);
    }
    let at = place_of(call.span());
    let result = match &function.sig.output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => {
            let ty = scalar(ty)?;
            Some((scope.hidden(name, ty, at), ty))
        }
    };
    let outside = scope.enter_body();
    for (ident, meaning) in names {
        scope.name(&ident, meaning);
    }
    scope.called.push(Called { name: name.into(), result: result.map(|(id, _)| id) });
    let before = core::mem::take(&mut scope.before);
    let inside = body_of(&function, scope);
    scope.before = before;
    let _ = scope.called.pop();
    scope.restore(outside);
    let inside = without_returns(&mut scope.kernel, inside?, result.map(|(id, _)| id));
    scope.before.extend(inside);
    Ok(Some(result.map(|(id, ty)| Expr::variable(id, ty, at))))
}

/// Refuses a call of a function that a kernel does not see, although it knows one of this name.
fn refuse_other_function(call: &ExprCall, name: &str, scope: &Scope) -> Result<()> {
    let Rust::Path(path) = &*call.func else { return Ok(()) };
    let Module { functions, others, .. } = &*scope.neighbours;
    let first = path.path.segments.first().map(|first| first.ident.to_string()).unwrap_or_default();
    if path.path.segments.len() == 1 || first == "self" {
        if others.iter().any(|other| other == name) {
            return refuse(path.span(), format!("`{name}` of this module is no `#[kernel_fn]`"));
        }
        return Ok(());
    }
    let is_neighbour = functions.iter().any(|function| function.sig.ident == name);
    let is_known = matches!(first.as_str(), "core" | "std") || Scalar::from_name(&first).is_some();
    if is_neighbour || (matches!(name, "min" | "max") && !is_known) {
        return refuse(
            path.span(),
            format!("a kernel sees no functions of other modules: write `{name}` for the one that it knows"),
        );
    }
    Ok(())
}

/// The meaning of a parameter's name inside the function: an array of the caller, or a variable
/// with the argument's value.
fn given_for(parameter: &FnArg, argument: &Rust, scope: &mut Scope) -> Result<(syn::Ident, Meaning)> {
    let FnArg::Typed(parameter) = parameter else {
        return refuse(parameter.span(), "a function of kernels is no method");
    };
    let Pat::Ident(pattern) = &*parameter.pat else {
        return refuse(parameter.pat.span(), "a parameter is a name");
    };
    if let Type::Reference(reference) = &*parameter.ty {
        let (Type::Slice(syn::TypeSlice { elem, .. }) | Type::Array(TypeArray { elem, .. })) =
            &*reference.elem
        else {
            return refuse(reference.elem.span(), "write `&[T]` or `&mut [T]`");
        };
        let mut given = argument;
        while let Rust::Reference(inner) = given {
            given = &inner.expr;
        }
        let meaning = match given {
            Rust::Path(path) => path.path.get_ident().map(|name| scope.find(name)).transpose()?,
            _ => None,
        };
        let Some(id) = meaning.and_then(Meaning::array) else {
            return refuse(argument.span(), "an array of the kernel is needed here, by its name");
        };
        let is_atomic = crate::signature::atomic(elem)?;
        let needed = is_atomic.map_or_else(|| element(elem), Ok)?;
        let found = scope.kernel.array(id).element;
        if needed != found {
            return refuse(argument.span(), format!("an array of {found}, not {needed}"));
        }
        if let Type::Array(fixed) = &*reference.elem {
            refuse_other_length(fixed, id, argument, scope)?;
        }
        let writes = reference.mutability.is_some() || is_atomic.is_some();
        if writes && matches!(meaning, Some(Meaning::ReadOnly(_))) {
            return refuse(argument.span(), "this array is only read here: take `&mut [T]`");
        }
        let meaning = if writes { Meaning::Array(id) } else { Meaning::ReadOnly(id) };
        return Ok((pattern.ident.clone(), meaning));
    }
    let ty = scalar(&parameter.ty)?;
    let value = typed(argument, ty, scope)?;
    let variable = scope.hidden(&pattern.ident.to_string(), ty, value.place);
    scope.before.push(Stmt::new(StmtKind::Set(variable, value.clone()), value.place));
    Ok((pattern.ident.clone(), Meaning::Variable { id: variable, mutable: pattern.mutability.is_some() }))
}

/// A parameter `&[T; N]` takes only arrays of that length.
fn refuse_other_length(fixed: &TypeArray, id: ArrayId, argument: &Rust, scope: &Scope) -> Result<()> {
    let needed = length(&fixed.len, scope)?;
    let found = match &scope.kernel.array(id).space {
        Space::Private(len) | Space::Constant(len) => Some(*len),
        Space::Local(Expr { kind: ExprKind::Literal(len), .. }) => Some(len.bits),
        _ => None,
    };
    match found {
        Some(found) if found == needed => Ok(()),
        Some(found) => refuse(argument.span(), format!("an array of {found} elements, not {needed}")),
        None => refuse(argument.span(), "an array of no fixed length: take `&[T]`"),
    }
}

/// Reads a function's body; its last expression sets the result.
fn body_of(function: &ItemFn, scope: &mut Scope) -> Result<Vec<Stmt>> {
    let mut block = (*function.block).clone();
    let result = scope.called.last().and_then(|called| called.result);
    let last = match (result, block.stmts.last()) {
        (Some(_), Some(syn::Stmt::Expr(value, None))) if is_value(value) => {
            let value = value.clone();
            let _ = block.stmts.pop();
            Some(value)
        }
        _ => None,
    };
    body::block_and(&block, scope, |scope, out| match (result, last) {
        (Some(result), Some(value)) => {
            let value = typed(&value, scope.kernel.variable(result).ty, scope)?;
            out.append(&mut scope.before);
            let at = value.place;
            out.push(Stmt::new(StmtKind::Set(result, value), at));
            Ok(())
        }
        _ => Ok(()),
    })
}

/// Whether the last expression of a body is its value, and not a statement that returns itself.
fn is_value(last: &Rust) -> bool {
    match last {
        Rust::Return(_) | Rust::While(_) | Rust::Loop(_) | Rust::ForLoop(_) | Rust::Assign(_) => false,
        // A branch is a value if its blocks end in values.
        Rust::If(branch) => branch.then_branch.stmts.last().is_some_and(|stmt| {
            matches!(stmt, syn::Stmt::Expr(value, None) if is_value(value)) && branch.else_branch.is_some()
        }),
        _ => true,
    }
}

/// Reads a collective operation of a group; `None` for other names.
pub(crate) fn of_group(
    call: &ExprCall,
    name: &str,
    hint: Option<Scalar>,
    scope: &mut Scope,
) -> Result<Option<Expr>> {
    let at = place_of(call.span());
    let arguments: Vec<&Rust> = call.args.iter().collect();
    let collection = match name {
        "group_reduce" | "group_any" | "group_all" => Some(Collection::Reduce),
        "group_inclusive_scan" => Some(Collection::Inclusive),
        "group_exclusive_scan" => Some(Collection::Exclusive),
        "group_broadcast" => None,
        _ => return Ok(None),
    };
    let is_of_truth = matches!(name, "group_any" | "group_all");
    let [value, rest @ ..] = &arguments[..] else {
        return refuse(call.span(), format!("`{name}` needs a value"));
    };
    let mut value = if is_of_truth { typed(value, Scalar::Bool, scope)? } else { expr(value, hint, scope)? };
    let ty = value.ty;
    let to = scope.hidden(name, ty, at);
    let kind = match (collection, rest) {
        (None, [from]) => {
            let from = scope.read_after(&mut [&mut value], |scope| typed(from, Scalar::U64, scope))?;
            StmtKind::Broadcast(to, value, from)
        }
        (Some(collection), []) if is_of_truth => {
            let operator = if name == "group_any" { Binary::Or } else { Binary::And };
            StmtKind::Collect(collection, operator, to, value)
        }
        (Some(collection), [operator]) if !is_of_truth => {
            let found = combining_operator(operator)?;
            if !found.collects(ty) {
                return refuse(operator.span(), format!("{ty} is not collected by this"));
            }
            StmtKind::Collect(collection, found, to, value)
        }
        _ => {
            let how = match name {
                "group_broadcast" => "group_broadcast(value, local_id)",
                "group_any" | "group_all" => "group_any(condition)",
                _ => "group_reduce(value, ADD)",
            };
            return refuse(call.span(), format!("write `{how}`"));
        }
    };
    scope.before.push(Stmt::new(kind, at));
    Ok(Some(Expr::variable(to, ty, at)))
}

pub(crate) fn combining_operator(operator: &Rust) -> Result<Binary> {
    let name = match operator {
        Rust::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    };
    Ok(match name.as_str() {
        "ADD" => Binary::Add,
        "MUL" => Binary::Mul,
        "MIN" => Binary::Min,
        "MAX" => Binary::Max,
        "AND" => Binary::And,
        "OR" => Binary::Or,
        "XOR" => Binary::Xor,
        _ => return refuse(operator.span(), "write ADD, MUL, MIN, MAX, AND, OR or XOR"),
    })
}

/// Reads `return` inside a function of kernels.
pub(crate) fn returned(
    value: Option<&Rust>,
    span: Span,
    scope: &mut Scope,
    out: &mut Vec<Stmt>,
) -> Result<()> {
    let at = place_of(span);
    match (scope.called.last().map(|called| called.result), value) {
        (None, Some(value)) => return refuse(value.span(), "a kernel has no result: write it to an array"),
        (Some(None), Some(value)) => {
            return refuse(value.span(), "this function has no result: write `-> T`");
        }
        (Some(Some(_)), None) => return refuse(span, "this function has a result: write `return value`"),
        (Some(Some(result)), Some(value)) => {
            let value = typed(value, scope.kernel.variable(result).ty, scope)?;
            out.append(&mut scope.before);
            out.push(Stmt::new(StmtKind::Set(result, value), at));
        }
        (_, None) => {}
    }
    out.push(Stmt::new(StmtKind::Return, at));
    Ok(())
}
