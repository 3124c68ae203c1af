//! Declarations: variables, and arrays of a group or of an item.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Local, Pat, Result, Type};
use usm_kernel_ir::{Array, ArrayId, Expr, Literal, Scalar, Space, Stmt, StmtKind};

use crate::expression::{expr, typed};
use crate::scope::{Meaning, Scope, refuse, scalar};
use crate::signature::{length, place_of};

/// Reads a `let`.
pub(crate) fn declare(local: &Local, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    if let Some(attribute) = local.attrs.first() {
        let space = attribute.path();
        return if space.is_ident("local") {
            array(local, true, scope, out)
        } else {
            refuse(attribute.span(), "write `#[local]` for memory of the group")
        };
    }
    let (pattern, ty) = match &local.pat {
        Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
        other => (other, None),
    };
    if matches!(ty, Some(Type::Array(_))) {
        array(local, false, scope, out)?;
        return private(local, scope, out);
    }
    let Some(init) = &local.init else {
        return refuse(local.span(), "a variable needs a value where it is declared");
    };
    if let Some((word, _)) = &init.diverge {
        return refuse(word.span, "`let .. else` is no part of a kernel: write `if`");
    }
    match pattern {
        Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
            let ty = ty.map(scalar).transpose()?;
            let value = match ty {
                Some(ty) => typed(&init.expr, ty, scope)?,
                None => expr(&init.expr, None, scope)?,
            };
            out.append(&mut scope.before);
            let variable = scope.variable(&name.ident, value.ty, name.mutability.is_some());
            out.push(Stmt::new(StmtKind::Set(variable, value), place_of(name.span())));
            Ok(())
        }
        Pat::Wild(_) => {
            let _ = expr(&init.expr, None, scope)?;
            out.append(&mut scope.before);
            Ok(())
        }
        Pat::Tuple(names) => {
            let Rust::Tuple(values) = &*init.expr else {
                return refuse(init.expr.span(), "a tuple of as many values is needed here");
            };
            if names.elems.len() != values.elems.len() {
                let (names, found) = (names.elems.len(), values.elems.len());
                return refuse(values.span(), format!("{names} names for {found} values"));
            }
            // All values are computed before the first name is declared.
            let mut known = Vec::new();
            for value in &values.elems {
                let mut earlier: Vec<&mut Expr> = known.iter_mut().collect();
                let next = scope.read_after(&mut earlier, |scope| expr(value, None, scope))?;
                known.push(next);
            }
            out.append(&mut scope.before);
            let mut seen = Vec::new();
            for (name, value) in names.elems.iter().zip(known) {
                let name = match name {
                    Pat::Ident(name) => name,
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

/// Reads the declaration of a local or private array.
fn array(local: &Local, is_local: bool, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    out.append(&mut scope.before);
    let Pat::Type(typed) = &local.pat else {
        return refuse(local.span(), "an array needs its type: `let mut a: [f32; 16]`");
    };
    let (Pat::Ident(name), Type::Array(ty)) = (&*typed.pat, &*typed.ty) else {
        return refuse(typed.span(), "an array needs its type: `let mut a: [f32; 16]`");
    };
    let element = scalar(&ty.elem)?;
    let space = if is_local {
        if let Some(init) = &local.init {
            return refuse(
                init.expr.span(),
                "local memory has no value at first: let the items write it, then a barrier",
            );
        }
        let len = match length(&ty.len, scope) {
            Ok(len) => Expr::literal(Literal::integer(Scalar::U64, len), place_of(ty.len.span())),
            Err(_) => expr(&ty.len, Some(Scalar::U64), scope)?,
        };
        Space::Local(len)
    } else {
        Space::Private(length(&ty.len, scope)?)
    };
    let id = ArrayId(scope.kernel.arrays.len() as u32);
    let text = name.ident.to_string();
    scope.kernel.arrays.push(Array { name: text, element, space, place: place_of(name.span()) });
    scope.name(&name.ident, Meaning::Array(id));
    Ok(())
}

/// Reads the values of a private array.
fn private(local: &Local, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let id = ArrayId(scope.kernel.arrays.len() as u32 - 1);
    let (element, at) = (scope.kernel.array(id).element, scope.kernel.array(id).place);
    let Some(init) = &local.init else {
        return refuse(local.span(), "a private array needs values: `let mut a: [f32; 16] = [0.0; 16];`");
    };
    let len = if let Space::Private(len) = scope.kernel.array(id).space { len } else { 0 };
    match &*init.expr {
        Rust::Repeat(repeat) => {
            if length(&repeat.len, scope)? != len {
                return refuse(repeat.len.span(), format!("the array has {len} elements"));
            }
            let value = typed(&repeat.expr, element, scope)?;
            out.append(&mut scope.before);
            let variable = scope.hidden("k", Scalar::U64, at);
            let number = |value| Expr::literal(Literal::integer(Scalar::U64, value), at);
            let index = Expr::variable(variable, Scalar::U64, at);
            let store = Stmt::new(StmtKind::Store(id, index, value), at);
            out.push(Stmt::new(StmtKind::For(variable, number(0), number(len), number(1), vec![store]), at));
            Ok(())
        }
        Rust::Array(values) => {
            if values.elems.len() as u64 != len {
                return refuse(values.span(), format!("{} values for {len} elements", values.elems.len()));
            }
            for (place, value) in values.elems.iter().enumerate() {
                let value = typed(value, element, scope)?;
                out.append(&mut scope.before);
                let index = Expr::literal(Literal::integer(Scalar::U64, place as u64), value.place);
                let at = value.place;
                out.push(Stmt::new(StmtKind::Store(id, index, value), at));
            }
            Ok(())
        }
        other => refuse(other.span(), "write `[value; length]` or a list of values"),
    }
}
