//! Exchanges of two places.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Result};
use usm_kernel_ir::{ArrayId, Expr, Scalar, Stmt, StmtKind};

use crate::body::{keep_index, set_place, type_of_place};
use crate::expression::{element, expr, may_write};
use crate::scope::{Scope, refuse};
use crate::structure;

/// A place whose index, if it has one, is read once.
enum Side<'r> {
    Element(ArrayId, Scalar, Expr),
    Other(&'r Rust),
}

/// Exchanges the values of two places. Both indices are read before anything is written.
pub(crate) fn read(places: [&Rust; 2], scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let [one, two] = places;
    if places.iter().all(|place| structure::is_element(place, scope)) {
        return structure::swap(places, scope, out);
    }
    let mut first = side(one, scope)?;
    let second = match &mut first {
        Side::Element(_, _, index) => scope.read_after(&mut [index], |scope| side(two, scope))?,
        Side::Other(_) => side(two, scope)?,
    };
    let values = [first.value(scope)?, second.value(scope)?];
    if values[0].ty != values[1].ty {
        let [found, needed] = [values[1].ty, values[0].ty];
        return refuse(two.span(), format!("{found} where {needed} is needed: write `as {needed}`"));
    }
    let kept = values.map(|value| {
        let (ty, at) = (value.ty, value.place);
        let kept = scope.hidden("swapped", ty, at);
        scope.before.push(Stmt::new(StmtKind::Set(kept, value), at));
        Expr::variable(kept, ty, at)
    });
    let [to_second, to_first] = kept;
    first.set(to_first, scope)?;
    second.set(to_second, scope)?;
    out.append(&mut scope.before);
    Ok(())
}

/// The two elements of `a.swap(i, j)`.
pub(crate) fn elements(call: &syn::ExprMethodCall) -> [Rust; 2] {
    [&call.args[0], &call.args[1]].map(|index| {
        Rust::Index(syn::ExprIndex {
            attrs: Vec::new(),
            expr: call.receiver.clone(),
            bracket_token: syn::token::Bracket(index.span()),
            index: Box::new(index.clone()),
        })
    })
}

fn side<'r>(place: &'r Rust, scope: &mut Scope) -> Result<Side<'r>> {
    let found = match place {
        Rust::Index(index) => {
            may_write(index, scope)?;
            Some(element(index, scope)?)
        }
        Rust::Field(field) if structure::is_element(&field.base, scope) => {
            structure::field_type(field, scope)?;
            structure::field_place(field, scope)?
        }
        other => {
            type_of_place(other, scope)?;
            None
        }
    };
    let Some((array, ty, mut index)) = found else { return Ok(Side::Other(place)) };
    let mut before = core::mem::take(&mut scope.before);
    keep_index(&mut index, scope, &mut before);
    scope.before = before;
    Ok(Side::Element(array, ty, index))
}

impl Side<'_> {
    fn value(&self, scope: &mut Scope) -> Result<Expr> {
        match self {
            Self::Element(array, ty, index) => Ok(Expr::load(*array, *ty, index.clone(), index.place)),
            Self::Other(place) => expr(place, None, scope),
        }
    }

    fn set(self, value: Expr, scope: &mut Scope) -> Result<()> {
        match self {
            Self::Element(array, _, index) => {
                let at = index.place;
                scope.before.push(Stmt::new(StmtKind::Store { array, index, value }, at));
                Ok(())
            }
            Self::Other(place) => set_place(place, value, scope),
        }
    }
}
