//! The structure that a text is, found ahead of reading it.

use syn::{Expr as Rust, Ident, Pat};

use crate::scope::{Meaning, Scope};
use crate::{complex, structure, view};

/// The number of the structure that a value is; `None` for other values.
pub(crate) fn of_value(value: &Rust, scope: &Scope) -> Option<usize> {
    if let Some((number, ..)) = complex::made(value, scope) {
        return Some(number);
    }
    match value {
        Rust::Paren(inner) => of_value(&inner.expr, scope),
        Rust::Group(inner) => of_value(&inner.expr, scope),
        Rust::Struct(literal) => structure::of_path(&literal.path, scope),
        Rust::Path(path) => of_name(path.path.get_ident()?, scope),
        Rust::Call(call) => {
            let Rust::Path(path) = &*call.func else { return None };
            let function = scope.neighbours.function(&path.path.segments.last()?.ident.to_string())?;
            match &function.sig.output {
                syn::ReturnType::Type(_, ty) => structure::of_type(ty, scope),
                syn::ReturnType::Default => None,
            }
        }
        Rust::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => of_value(&unary.expr, scope),
        Rust::Block(inner) => of_block(&inner.block, scope),
        Rust::If(branch) => of_block(&branch.then_branch, scope),
        Rust::Match(choice) => of_value(&choice.arms.first()?.body, scope),
        element if structure::is_element(element, scope) => {
            let (id, _) = view::root(structure::referred(element), scope).ok()??;
            scope.structures.get(&id).copied()
        }
        _ => None,
    }
}

fn of_name(name: &Ident, scope: &Scope) -> Option<usize> {
    if let Some((_, of)) = scope.ahead.borrow().iter().rev().find(|(known, _)| name == known) {
        return *of;
    }
    match scope.find(name).ok()? {
        Meaning::Tuple(number) => scope.tuple_structures.get(&number).copied(),
        Meaning::View(number) if scope.views[number].is_structure(scope) => {
            scope.structures.get(&scope.views[number].array).copied()
        }
        _ => None,
    }
}

/// The structure that a block's last value is, with the names that the block declares.
fn of_block(block: &syn::Block, scope: &Scope) -> Option<usize> {
    let (syn::Stmt::Expr(last, None), first) = block.stmts.split_last()? else { return None };
    let mark = scope.ahead.borrow().len();
    for stmt in first {
        let syn::Stmt::Local(local) = stmt else { continue };
        let (pattern, ty) = match &local.pat {
            Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
            other => (other, None),
        };
        let of = match (ty, &local.init) {
            (Some(ty), _) => structure::of_type(ty, scope),
            (None, Some(init)) => of_value(structure::unreferenced(&init.expr), scope),
            (None, None) => None,
        };
        let name = |pattern: &Pat, of| {
            if let Pat::Ident(name) = pattern {
                scope.ahead.borrow_mut().push((name.ident.to_string(), of));
            }
        };
        match pattern {
            Pat::Tuple(tuple) => tuple.elems.iter().for_each(|part| name(part, None)),
            one => name(one, of),
        }
    }
    let found = of_value(last, scope);
    scope.ahead.borrow_mut().truncate(mark);
    found
}
