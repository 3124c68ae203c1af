//! Arrays of structures: an array for each type of their fields.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Ident, Result};
use usm_kernel_ir::{Array, ArrayId, Binary, Expr, ExprKind, Literal, Place, Scalar, Space, Stmt, StmtKind};

use crate::ahead::of_value;
use crate::scope::{Scope, refuse};
use crate::signature::{length, place_of};
use crate::tuple;

/// Declares an array of structures: one for each type of their fields, whose memory `space` gives
/// for its elements in a structure.
pub(crate) fn declare(
    name: &Ident,
    number: usize,
    space: &dyn Fn(u64) -> Space,
    scope: &mut Scope,
) -> (ArrayId, Vec<ArrayId>) {
    let structure = scope.neighbours.structures[number].clone();
    let (text, place) = (name.to_string().trim_start_matches("r#").to_string(), place_of(name.span()));
    let first = scope.kernel.arrays.len() as u32;
    for element in structure.columns() {
        let space = space(structure.bytes() / element.bytes());
        scope.kernel.arrays.push(Array { name: text.clone(), element, space, place });
    }
    let arrays: Vec<ArrayId> = (first..scope.kernel.arrays.len() as u32).map(ArrayId).collect();
    scope.structures.insert(arrays[0], number);
    (arrays[0], arrays)
}

/// Stores the values of structures in an array of the item: one for all elements, or one for each.
pub(crate) fn fill(array: ArrayId, init: &Rust, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let at = scope.kernel.array(array).place;
    let number = scope.structures[&array];
    let of = |value: &Rust, scope: &mut Scope| {
        if of_value(value, scope) != Some(number) {
            let name = &scope.neighbours.structures[number].name;
            return refuse(value.span(), format!("a `{name}` is needed here"));
        }
        let values = tuple::parts(value, &[], scope)?;
        Ok(values.into_iter().map(|value| tuple::keep(value, scope)).collect::<Vec<Expr>>())
    };
    let count = literal_count(array, scope);
    let index = |value| Expr::literal(Literal::integer(Scalar::U64, value), at);
    let stores = |index: &Expr, values: Vec<Expr>, scope: &Scope| {
        let places = values.into_iter().enumerate().filter_map(|(field, value)| {
            let (array, index) = place(array, field, Some(index), at, scope)?;
            Some(Stmt::new(StmtKind::Store { array, index, value }, at))
        });
        places.collect::<Vec<Stmt>>()
    };
    match init {
        Rust::Repeat(repeat) if length(&repeat.len, scope)? != count => {
            return refuse(repeat.len.span(), format!("the array has {count} elements"));
        }
        Rust::Repeat(repeat) => {
            let values = of(&repeat.expr, scope)?;
            out.append(&mut scope.before);
            let k = scope.hidden("k", Scalar::U64, at);
            let body = stores(&Expr::variable(k, Scalar::U64, at), values, scope);
            out.push(Stmt::new(
                StmtKind::For { variable: k, start: index(0), end: index(count), step: index(1), body },
                at,
            ));
        }
        Rust::Array(list) if list.elems.len() as u64 != count => {
            return refuse(list.span(), format!("{} values for {count} elements", list.elems.len()));
        }
        Rust::Array(list) => {
            for (place, value) in list.elems.iter().enumerate() {
                let values = of(value, scope)?;
                out.append(&mut scope.before);
                out.extend(stores(&index(place as u64), values, scope));
            }
        }
        other => return refuse(other.span(), "write `[value; length]` or a list of values"),
    }
    Ok(())
}

/// The structure and the length of `[S { .. }; N]` or `[S { .. }, ..]`; `None` for numbers.
pub(crate) fn listed(init: &Rust, scope: &Scope) -> Result<Option<(usize, u64)>> {
    Ok(match init {
        Rust::Repeat(repeat) => match of_value(&repeat.expr, scope) {
            Some(number) => Some((number, length(&repeat.len, scope)?)),
            None => None,
        },
        Rust::Array(list) => {
            let first = list.elems.first().and_then(|first| of_value(first, scope));
            first.map(|number| (number, list.elems.len() as u64))
        }
        _ => None,
    })
}

/// The structures in an array of an item.
fn literal_count(array: ArrayId, scope: &Scope) -> u64 {
    match (scope.kernel.array(array).space.clone(), stride(array, scope)) {
        (Space::Private(len), stride) => len / stride,
        _ => 0,
    }
}

/// Elements of an array, the first of its structures, in one of them.
pub(crate) fn stride(array: ArrayId, scope: &Scope) -> u64 {
    let structure = &scope.neighbours.structures[scope.structures[&array]];
    structure.place(0).map_or(1, |place| place.stride)
}

/// The array and index of a field of the structure at a position, at 0 without one.
pub(crate) fn place(
    array: ArrayId,
    field: usize,
    index: Option<&Expr>,
    at: Place,
    scope: &Scope,
) -> Option<(ArrayId, Expr)> {
    let found = scope.neighbours.structures[*scope.structures.get(&array)?].place(field)?;
    let number = |value| Expr::literal(Literal::integer(Scalar::U64, value), at);
    let start = index.map(|index| match found.stride {
        1 => index.clone(),
        stride => Expr::binary(Binary::Mul, index.clone(), number(stride), index.place),
    });
    let index = match start {
        Some(start) if found.offset == 0 => start,
        Some(start) => Expr::binary(Binary::Add, start, number(found.offset), at),
        None => number(found.offset),
    };
    Some((ArrayId(array.0 + found.column as u32), index))
}

/// The number of structures in an array.
pub(crate) fn count(array: ArrayId, scope: &Scope) -> Expr {
    let (at, by) = (scope.kernel.array(array).place, stride(array, scope));
    let number = |value| Expr::literal(Literal::integer(Scalar::U64, value), at);
    let length = match &scope.kernel.array(array).space {
        Space::Private(len) => return number(len / by),
        Space::Local(len) => {
            return match &len.kind {
                ExprKind::Literal(len) => number(len.bits / by),
                // It is made of a number of structures.
                ExprKind::Binary { operator: Binary::Mul, left: count, .. } if by != 1 => (**count).clone(),
                _ => len.clone(),
            };
        }
        _ => Expr { kind: ExprKind::Len(array), ty: Scalar::U64, place: at },
    };
    Expr::binary(Binary::Div, length, number(by), at)
}
