//! Declarations: variables, and arrays of a group or of an item.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Ident, Local, Pat, Result, Type};
use usm_kernel_ir::{Array, ArrayId, Binary, Expr, ExprKind, Literal, Place, Scalar, Space, Stmt, StmtKind};

use crate::expression::{self, expr, typed};
use crate::scope::{Meaning, Scope, refuse, scalar};
use crate::signature::{length, place_of};
use crate::view::View;
use crate::{call, column, constant, literal, structure, tuple, view};

/// Reads a `let`.
pub(crate) fn declare(local: &Local, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    if let Some(attribute) = local.attrs.first() {
        let space = attribute.path();
        return if space.is_ident("local") {
            let (name, id) = array(local, true, scope, out)?;
            scope.name(&name, Meaning::Array(id));
            Ok(())
        } else {
            refuse(attribute.span(), "write `#[local]` for memory of the group")
        };
    }
    let (pattern, ty) = match &local.pat {
        Pat::Type(typed) => (&*typed.pat, Some(&*typed.ty)),
        other => (other, None),
    };
    if matches!(ty, Some(Type::Array(_))) {
        let (name, id) = array(local, false, scope, out)?;
        let Some(init) = &local.init else {
            return refuse(local.span(), "a private array needs values: `let mut a: [f32; 16] = [0.0; 16];`");
        };
        let fill = if scope.structures.contains_key(&id) { column::fill } else { fill };
        fill(id, &init.expr, scope, out)?;
        scope.name(&name, Meaning::Array(id));
        return Ok(());
    }
    let Some(init) = &local.init else {
        // Its type says what it is; each read needs a value before.
        return match (pattern, ty) {
            (Pat::Ident(name), Some(ty)) if name.subpat.is_none() && name.by_ref.is_none() => {
                let _ = scope.variable(&name.ident, scalar(ty)?, true);
                Ok(())
            }
            _ => refuse(local.span(), "a variable without a value needs its type: `let x: f32;`"),
        };
    };
    if let Some((word, _)) = &init.diverge {
        return refuse(word.span, "`let .. else` is no part of a kernel: write `if`");
    }
    if let Some(mut part) = part_of_array(&init.expr, scope)? {
        let Pat::Ident(name) = pattern else {
            return refuse(pattern.span(), "a part of an array needs a name");
        };
        part.keep(scope);
        out.append(&mut scope.before);
        scope.views.push(part);
        scope.name(&name.ident, Meaning::View(scope.views.len() - 1));
        return Ok(());
    }
    if let (Pat::Ident(name), Rust::Array(_) | Rust::Repeat(_)) = (pattern, &*init.expr) {
        out.append(&mut scope.before);
        if let Some((number, len)) = column::listed(&init.expr, scope)? {
            let (id, _) =
                column::declare(&name.ident, number, &|elements| Space::Private(len * elements), scope);
            column::fill(id, &init.expr, scope, out)?;
            scope.name(&name.ident, Meaning::Array(id));
            return Ok(());
        }
        let id = listed_array(&name.ident, &init.expr, scope)?;
        fill(id, &init.expr, scope, out)?;
        scope.name(&name.ident, Meaning::Array(id));
        return Ok(());
    }
    if tuple::is_tuple(&init.expr, scope) || ty.is_some_and(|ty| structure::of_type(ty, scope).is_some()) {
        return tuple::declare(pattern, ty, &init.expr, scope, out);
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
        Pat::Tuple(_) => refuse(init.expr.span(), "a tuple of as many values is needed here"),
        other => refuse(other.span(), "a name, or a tuple of names, is needed here"),
    }
}

/// A row or slice, or an array itself by another name; `None` for numbers.
fn part_of_array(init: &Rust, scope: &mut Scope) -> Result<Option<View>> {
    let mut of = init;
    while let Rust::Reference(inner) = of {
        of = &inner.expr;
    }
    // Without `&` a structure is a copy.
    let is_copy = !matches!(init, Rust::Reference(_)) && structure::is_element(of, scope);
    if is_copy || !matches!(of, Rust::Path(_) | Rust::Index(_)) || view::depth(of, scope) == Some(0) {
        return Ok(None);
    }
    view::view(init, scope)
}

/// Reads the declaration of a local or private array.
fn array(local: &Local, is_local: bool, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<(Ident, ArrayId)> {
    out.append(&mut scope.before);
    let Pat::Type(typed) = &local.pat else {
        return refuse(local.span(), "an array needs its type: `let mut a: [f32; 16]`");
    };
    let (Pat::Ident(name), Type::Array(ty)) = (&*typed.pat, &*typed.ty) else {
        return refuse(typed.span(), "an array needs its type: `let mut a: [f32; 16]`");
    };
    if let (true, Some(init)) = (is_local, &local.init) {
        return refuse(
            init.expr.span(),
            "local memory has no value at first: let the items write it, then a barrier",
        );
    }
    if let Some(number) = structure::of_type(&ty.elem, scope) {
        return Ok((name.ident.clone(), structures(&name.ident, number, &ty.len, is_local, scope)?));
    }
    let (element, inner) = call::rows(&ty.elem, scope)?;
    let per_row: u64 = inner.iter().product();
    let mut lengths = Vec::new();
    let space = if is_local {
        let len = match length(&ty.len, scope) {
            Ok(len) => {
                lengths.push(len);
                number(len.saturating_mul(per_row), place_of(ty.len.span()))
            }
            Err(_) if inner.is_empty() => expr(&ty.len, Some(Scalar::U64), scope)?,
            Err(error) => return Err(error),
        };
        Space::Local(len)
    } else {
        let len = length(&ty.len, scope)?;
        lengths.push(len);
        Space::Private(len.saturating_mul(per_row))
    };
    let lengths = if inner.is_empty() { Vec::new() } else { lengths.into_iter().chain(inner).collect() };
    Ok((name.ident.clone(), added(&name.ident, element, space, lengths, scope)))
}

/// Declares an array of structures, of a group or of an item.
fn structures(name: &Ident, number: usize, len: &Rust, is_local: bool, scope: &mut Scope) -> Result<ArrayId> {
    let at = place_of(len.span());
    let len = match length(len, scope) {
        Ok(len) => self::number(len, at),
        Err(error) if !is_local => return Err(error),
        Err(_) => expr(len, Some(Scalar::U64), scope)?,
    };
    let space = |elements: u64| match (&len.kind, elements) {
        (ExprKind::Literal(len), _) if !is_local => Space::Private(len.bits.saturating_mul(elements)),
        (ExprKind::Literal(len), _) => Space::Local(self::number(len.bits.saturating_mul(elements), at)),
        (_, 1) => Space::Local(len.clone()),
        (_, elements) => Space::Local(Expr::binary(Binary::Mul, len.clone(), self::number(elements, at), at)),
    };
    Ok(column::declare(name, number, &space, scope).0)
}

/// Adds an array; `lengths` are those of several dimensions.
fn added(name: &Ident, element: Scalar, space: Space, lengths: Vec<u64>, scope: &mut Scope) -> ArrayId {
    let id = ArrayId(scope.kernel.arrays.len() as u32);
    let (text, place) = (name.to_string(), place_of(name.span()));
    scope.kernel.arrays.push(Array { name: text, element, space, place });
    if lengths.len() > 1 {
        scope.shapes.insert(id, lengths);
    }
    id
}

/// Adds a private array whose values say its type.
fn listed_array(name: &Ident, init: &Rust, scope: &mut Scope) -> Result<ArrayId> {
    let (mut lengths, mut rest) = (Vec::new(), vec![init]);
    let mut element = None;
    let mut first = Some(init);
    while let Some(value) = first {
        first = match value {
            Rust::Array(values) => {
                lengths.push(values.elems.len() as u64);
                values.elems.first()
            }
            Rust::Repeat(repeat) => {
                lengths.push(length(&repeat.len, scope)?);
                Some(&*repeat.expr)
            }
            _ => None,
        };
    }
    while let (Some(value), None) = (rest.pop(), element) {
        match value {
            Rust::Array(values) => rest.extend(values.elems.iter().rev()),
            Rust::Repeat(repeat) => rest.push(&repeat.expr),
            open if literal::is_open(open) => {}
            // It is read again where it is stored.
            typed => element = Some(expression::apart(scope, |scope| expr(typed, None, scope))?.0.ty),
        }
    }
    let Some(element) = element else {
        return refuse(
            init.span(),
            "the type of these numbers is open: write it, such as `0_u32` or `0.0_f32`",
        );
    };
    let len = lengths.iter().fold(1_u64, |all, one| all.saturating_mul(*one));
    Ok(added(name, element, Space::Private(len), lengths, scope))
}

fn number(value: u64, at: Place) -> Expr {
    Expr::literal(Literal::integer(Scalar::U64, value), at)
}

/// Reads the values of a private array.
fn fill(id: ArrayId, init: &Rust, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let (element, at) = (scope.kernel.array(id).element, scope.kernel.array(id).place);
    let len = if let Space::Private(len) = scope.kernel.array(id).space { len } else { 0 };
    let shape = scope.shapes.get(&id).cloned().unwrap_or_else(|| vec![len]);
    if let Some(value) = repeated(init, &shape, scope)? {
        let value = typed(value, element, scope)?;
        out.append(&mut scope.before);
        let variable = scope.hidden("k", Scalar::U64, at);
        let index = Expr::variable(variable, Scalar::U64, at);
        let store = Stmt::new(StmtKind::Store { array: id, index, value }, at);
        let (start, end, step) = (number(0, at), number(len, at), number(1, at));
        out.push(Stmt::new(StmtKind::For { variable, start, end, step, body: vec![store] }, at));
        return Ok(());
    }
    let mut values = Vec::new();
    listed(init, &shape, scope, &mut values)?;
    for (place, value) in values.into_iter().enumerate() {
        let value = typed(value, element, scope)?;
        out.append(&mut scope.before);
        let at = value.place;
        out.push(Stmt::new(StmtKind::Store { array: id, index: number(place as u64, at), value }, at));
    }
    Ok(())
}

/// The value that all elements have, `[[value; N]; M]`; `None` for a list.
fn repeated<'r>(init: &'r Rust, shape: &[u64], scope: &Scope) -> Result<Option<&'r Rust>> {
    let [len, rest @ ..] = shape else { return Ok(Some(init)) };
    let Rust::Repeat(repeat) = init else { return Ok(None) };
    if length(&repeat.len, scope)? != *len {
        return refuse(repeat.len.span(), format!("the array has {len} elements"));
    }
    let inner = repeated(&repeat.expr, rest, scope)?;
    if inner.is_none() {
        return refuse(repeat.span(), "repeat one number, or list the rows");
    }
    Ok(inner)
}

/// The values of lists in lists, in order.
fn listed<'r>(init: &'r Rust, shape: &[u64], scope: &Scope, out: &mut Vec<&'r Rust>) -> Result<()> {
    let [len, rest @ ..] = shape else {
        out.push(init);
        return Ok(());
    };
    if out.len() as u64 >= MOST_LISTED {
        return refuse(init.span(), format!("more than {MOST_LISTED} values in a list"));
    }
    match init {
        Rust::Array(values) if values.elems.len() as u64 == *len => {
            values.elems.iter().try_for_each(|value| listed(value, rest, scope, out))
        }
        Rust::Array(values) => {
            refuse(values.span(), format!("{} values for {len} elements", values.elems.len()))
        }
        Rust::Repeat(repeat) => match repeated(init, shape, scope)? {
            Some(value) => {
                let count = shape.iter().product::<u64>();
                if out.len() as u64 + count > MOST_LISTED {
                    return refuse(repeat.span(), format!("more than {MOST_LISTED} values in a list"));
                }
                out.extend((0..count).map(|_| value));
                Ok(())
            }
            None => refuse(init.span(), "write `[value; length]` or a list of values"),
        },
        other => refuse(other.span(), "write `[value; length]` or a list of values"),
    }
}

/// Maximum number of values in a list.
const MOST_LISTED: u64 = 4096;
/// Maximum number of elements of an array that is a constant of the module: each item has a copy.
const MOST_IN_TABLE: u64 = 256;

/// The array of a constant of the module, filled before the body.
pub(crate) fn table(item: &syn::ItemConst, scope: &mut Scope) -> Result<ArrayId> {
    let Type::Array(ty) = &*item.ty else { return refuse(item.ty.span(), "an array is needed here") };
    let (element, inner) = call::rows(&ty.elem, scope)?;
    let shape: Vec<u64> = core::iter::once(length(&ty.len, scope)?).chain(inner).collect();
    let len = shape.iter().fold(1_u64, |all, one| all.saturating_mul(*one));
    if len > MOST_IN_TABLE {
        return refuse(
            item.ident.span(),
            format!(
                "{len} elements: a constant of a kernel has {MOST_IN_TABLE}; pass it as `&[{element}; {len}]`"
            ),
        );
    }
    let at = place_of(item.ident.span());
    let id = added(&item.ident, element, Space::Private(len), shape.clone(), scope);
    let mut values = Vec::new();
    listed(&item.expr, &shape, scope, &mut values)?;
    for (place, value) in values.into_iter().enumerate() {
        let span = value.span();
        let value = typed(value, element, scope)?;
        let Some(value) = constant::fold(&value) else {
            return refuse(span, "a constant of kernels is a number, or a sum or product of numbers");
        };
        let store =
            StmtKind::Store { array: id, index: number(place as u64, at), value: Expr::literal(value, at) };
        scope.first.push(Stmt::new(store, at));
    }
    Ok(id)
}
