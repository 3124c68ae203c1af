//! Tuples of numbers: as values, results and variables. They are several values of the nodes.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprField, Member, Pat, Result, ReturnType, Stmt as RustStmt, Type};
use usm_kernel_ir::{Expr, ExprKind, Math, Scalar, Stmt, StmtKind, VarId};

use crate::ahead::of_value;
use crate::body;
use crate::expression::{apart, expr, typed};
use crate::scope::{Meaning, Scope, refuse, scalar};
use crate::signature::place_of;
use crate::{call, choice, complex, structure};

/// The types of a tuple's parts; `None` for another type.
pub(crate) fn types(ty: &Type) -> Result<Option<Vec<Scalar>>> {
    match ty {
        Type::Paren(inner) => types(&inner.elem),
        Type::Group(inner) => types(&inner.elem),
        Type::Tuple(tuple) if !tuple.elems.is_empty() => {
            tuple.elems.iter().map(scalar).collect::<Result<_>>().map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether a text is a tuple.
pub(crate) fn is_tuple(value: &Rust, scope: &Scope) -> bool {
    let last = |block: &syn::Block| match block.stmts.last() {
        Some(RustStmt::Expr(value, None)) => is_tuple(value, scope),
        _ => false,
    };
    match value {
        Rust::Paren(inner) => is_tuple(&inner.expr, scope),
        Rust::Group(inner) => is_tuple(&inner.expr, scope),
        Rust::Tuple(tuple) => !tuple.elems.is_empty(),
        Rust::Struct(_) | Rust::Unary(_) | Rust::Index(_) | Rust::Binary(_) => {
            of_value(value, scope).is_some()
        }
        Rust::Block(inner) => last(&inner.block) || of_value(value, scope).is_some(),
        Rust::If(branch) => last(&branch.then_branch) || of_value(value, scope).is_some(),
        Rust::Match(choice) => choice.arms.iter().any(|arm| is_tuple(&arm.body, scope)),
        Rust::MethodCall(call) => call.method == "sin_cos" || of_value(value, scope).is_some(),
        Rust::Path(path) => {
            path.path.get_ident().is_some_and(|name| matches!(scope.find(name), Ok(Meaning::Tuple(_))))
        }
        Rust::Call(_) if of_value(value, scope).is_some() => true,
        Rust::Call(call) => {
            let Rust::Path(path) = &*call.func else { return false };
            let Some(last) = path.path.segments.last() else { return false };
            scope.neighbours.function(&last.ident.to_string()).is_some_and(|function| {
                matches!(&function.sig.output, ReturnType::Type(_, ty) if matches!(&**ty, Type::Tuple(tuple) if !tuple.elems.is_empty()))
            })
        }
        _ => false,
    }
}

/// Reads the parts of a tuple; a literal has the type of its place in `hints`.
pub(crate) fn parts(value: &Rust, hints: &[Option<Scalar>], scope: &mut Scope) -> Result<Vec<Expr>> {
    if let Some(of) = complex::made(value, scope) {
        return complex::parts(value, of, scope);
    }
    let at = place_of(value.span());
    match value {
        Rust::Struct(literal) => structure::literal(literal, scope),
        element if structure::is_element(element, scope) => structure::loads(element, scope),
        Rust::Paren(inner) => parts(&inner.expr, hints, scope),
        Rust::Group(inner) => parts(&inner.expr, hints, scope),
        Rust::Tuple(tuple) => {
            let mut known: Vec<Expr> = Vec::new();
            for (place, part) in tuple.elems.iter().enumerate() {
                let hint = hints.get(place).copied().flatten();
                let mut earlier: Vec<&mut Expr> = known.iter_mut().collect();
                let next = scope.read_after(&mut earlier, |scope| match hint {
                    Some(ty) => typed(part, ty, scope),
                    None => expr(part, None, scope),
                })?;
                known.push(next);
            }
            Ok(known)
        }
        Rust::Path(path) => {
            let meaning = path.path.get_ident().map(|name| scope.find(name)).transpose()?;
            let Some(Meaning::Tuple(number)) = meaning else {
                return refuse(value.span(), "this is no tuple");
            };
            let (names, _) = scope.tuples[number].clone();
            Ok(names.into_iter().map(|id| Expr::variable(id, scope.kernel.variable(id).ty, at)).collect())
        }
        Rust::Block(inner) => body::value_of(&inner.block, scope, |value, scope| parts(value, hints, scope)),
        Rust::Match(word) => parts(&choice::as_branches(word)?, hints, scope),
        Rust::If(branch) => {
            if let Rust::Let(word) = &*branch.cond {
                return refuse(word.span(), "a kernel has no such patterns: write `match` or a comparison");
            }
            let condition = typed(&branch.cond, Scalar::Bool, scope)?;
            let Some((_, other)) = &branch.else_branch else {
                return refuse(branch.span(), "a value needs `else`");
            };
            let (one, mut first) = apart(scope, |scope| {
                body::value_of(&branch.then_branch, scope, |value, scope| parts(value, hints, scope))
            })?;
            let hints: Vec<Option<Scalar>> = one.iter().map(|part| Some(part.ty)).collect();
            let (two, mut second) = apart(scope, |scope| parts(other, &hints, scope))?;
            if one.len() != two.len() {
                return refuse(other.span(), format!("{} values, not {}", two.len(), one.len()));
            }
            let mut found = Vec::new();
            for (one, two) in one.into_iter().zip(two) {
                let ty = one.ty;
                let result = scope.hidden("chosen", ty, at);
                first.push(Stmt::new(StmtKind::Set(result, one), at));
                second.push(Stmt::new(StmtKind::Set(result, two), at));
                found.push(Expr::variable(result, ty, at));
            }
            scope.before.push(Stmt::new(StmtKind::If { condition, then: first, other: second }, at));
            Ok(found)
        }
        Rust::Call(found) => {
            let Rust::Path(path) = &*found.func else {
                return refuse(found.func.span(), "only functions by name are called");
            };
            let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
            match call::of_neighbour(found, &name, scope)? {
                Some(values) => Ok(values),
                None => refuse(value.span(), "this is no tuple"),
            }
        }
        Rust::MethodCall(call) if call.method == "sin_cos" && call.args.is_empty() => {
            let angle = expr(&call.receiver, hints.first().copied().flatten(), scope)?;
            if !angle.ty.is_float() {
                return refuse(call.method.span(), format!("{} has no `sin_cos`: write `as f32`", angle.ty));
            }
            let angle = keep(angle, scope);
            let of = |function| {
                let kind = ExprKind::Math(function, vec![angle.clone()]);
                Expr { kind, ty: angle.ty, place: at }
            };
            Ok(vec![of(Math::Sin), of(Math::Cos)])
        }
        other => refuse(other.span(), "a tuple of values is needed here"),
    }
}

/// A value in a variable of its own.
pub(crate) fn keep(value: Expr, scope: &mut Scope) -> Expr {
    let (ty, at) = (value.ty, value.place);
    let variable = scope.hidden("part", ty, at);
    scope.before.push(Stmt::new(StmtKind::Set(variable, value), at));
    Expr::variable(variable, ty, at)
}

/// `t.0`: the variable, and whether it may be set.
pub(crate) fn field(field: &ExprField, scope: &Scope) -> Result<(VarId, bool)> {
    let of = match &*field.base {
        Rust::Path(path) => path.path.get_ident(),
        _ => None,
    };
    let meaning = of.and_then(|name| scope.find(name).ok());
    if let Some(Meaning::Tuple(number)) = meaning {
        let (names, mutable) = &scope.tuples[number];
        if let Some(id) = structure::variable(number, &field.member, names, scope)? {
            return Ok((id, *mutable));
        }
    }
    let (Some(Meaning::Tuple(number)), Member::Unnamed(place)) = (meaning, &field.member) else {
        return refuse(
            field.member.span(),
            "a kernel knows structures with `#[derive(Structure)]` beside it, in a module with `#[kernels]`: make it a parameter",
        );
    };
    let (names, mutable) = &scope.tuples[number];
    match names.get(place.index as usize) {
        Some(id) => Ok((*id, *mutable)),
        None => refuse(place.span, format!("a tuple of {} values", names.len())),
    }
}

/// `let t = ..` and `let (a, b) = ..`.
pub(crate) fn declare(
    pattern: &Pat,
    ty: Option<&Type>,
    init: &Rust,
    scope: &mut Scope,
    out: &mut Vec<Stmt>,
) -> Result<()> {
    let structure = of_value(init, scope);
    if let Some(needed) = ty.and_then(|ty| structure::of_type(ty, scope)) {
        if structure != Some(needed) {
            return complex::refuse_other(init, needed, scope);
        }
    }
    let types = ty.filter(|_| structure.is_none()).map(types).transpose()?.flatten();
    let hints: Vec<Option<Scalar>> = types.iter().flatten().map(|ty| Some(*ty)).collect();
    let values = parts(init, &hints, scope)?;
    if types.as_ref().is_some_and(|types| types.len() != values.len()) {
        let needed = types.map_or(0, |types| types.len());
        return refuse(init.span(), format!("{} values for {needed} types", values.len()));
    }
    for (value, ty) in values.iter().zip(types.iter().flatten()) {
        if value.ty != *ty {
            return refuse(init.span(), format!("{} where {ty} is needed: write `as {ty}`", value.ty));
        }
    }
    out.append(&mut scope.before);
    let at = place_of(pattern.span());
    match pattern {
        Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
            let mut parts = Vec::new();
            for value in values {
                let variable = scope.hidden(&name.ident.to_string(), value.ty, at);
                out.push(Stmt::new(StmtKind::Set(variable, value), at));
                parts.push(variable);
            }
            if let Some(structure) = structure {
                scope.tuple_structures.insert(scope.tuples.len(), structure);
            }
            scope.tuples.push((parts, name.mutability.is_some()));
            scope.name(&name.ident, Meaning::Tuple(scope.tuples.len() - 1));
            Ok(())
        }
        Pat::Wild(_) => Ok(()),
        Pat::Tuple(names) => {
            if names.elems.len() != values.len() {
                let (names, found) = (names.elems.len(), values.len());
                return refuse(init.span(), format!("{names} names for {found} values"));
            }
            let mut seen = Vec::new();
            for (name, value) in names.elems.iter().zip(values) {
                let name = match name {
                    Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => name,
                    Pat::Wild(_) => continue,
                    other => return refuse(other.span(), "a tuple of names is needed here"),
                };
                if seen.contains(&&name.ident) {
                    return refuse(name.span(), format!("`{}` is bound more than once here", name.ident));
                }
                seen.push(&name.ident);
                let variable = scope.variable(&name.ident, value.ty, name.mutability.is_some());
                out.push(Stmt::new(StmtKind::Set(variable, value), place_of(name.span())));
            }
            Ok(())
        }
        other => refuse(other.span(), "a name, or a tuple of names, is needed here"),
    }
}

/// `(a, b[i]) = ..`: all values are computed before a place is set.
pub(crate) fn assign(left: &[&Rust], right: &Rust, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let hints = left.iter().map(|place| body::type_of_place(place, scope)).collect::<Result<Vec<_>>>()?;
    let values = parts(right, &hints, scope)?;
    if values.len() != left.len() {
        return refuse(right.span(), format!("{} places for {} values", left.len(), values.len()));
    }
    set(left, values, scope, out)
}

/// Sets places, after all values are computed.
pub(crate) fn set(left: &[&Rust], values: Vec<Expr>, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let values: Vec<Expr> = values.into_iter().map(|value| keep(value, scope)).collect();
    for (place, value) in left.iter().zip(values) {
        body::set_place(place, value, scope)?;
    }
    out.append(&mut scope.before);
    Ok(())
}
