//! Exchanges of two places.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Result};
use usm_kernel_ir::{ArrayId, Expr, Scalar, Stmt, StmtKind};

use crate::reader::Reader;
use crate::refusal::refuse;

/// A place whose index, if it has one, is read once.
enum Side<'r> {
    Element(ArrayId, Scalar, Expr),
    Other(&'r Rust),
}

impl Side<'_> {
    fn value(&self, reader: &mut Reader) -> Result<Expr> {
        match self {
            Self::Element(array, ty, index) => Ok(Expr::load(*array, *ty, index.clone(), index.place)),
            Self::Other(place) => reader.read_expr(place, None),
        }
    }

    fn set(self, value: Expr, reader: &mut Reader) -> Result<()> {
        match self {
            Self::Element(array, _, index) => {
                let at = index.place;
                reader.before.push(Stmt::new(StmtKind::Store { array, index, value }, at));
                Ok(())
            }
            Self::Other(place) => reader.set_place(place, value),
        }
    }
}

impl Reader {
    /// Exchanges the values of two places. Both indices are read before anything is written.
    pub(crate) fn read_swap(&mut self, places: [&Rust; 2], out: &mut Vec<Stmt>) -> Result<()> {
        let [one, two] = places;
        if places.iter().all(|place| self.is_structure_element(place)) {
            return self.swap_structures(places, out);
        }
        let mut first = self.swap_side(one)?;
        let second = match &mut first {
            Side::Element(_, _, index) => self.read_after(&mut [index], |reader| reader.swap_side(two))?,
            Side::Other(_) => self.swap_side(two)?,
        };
        let values = [first.value(self)?, second.value(self)?];
        if values[0].ty != values[1].ty {
            let [expected, found] = [values[0].ty, values[1].ty];
            return refuse(two.span(), format!("{found} where {expected} is needed: write `as {expected}`"));
        }
        let operands = values.map(|value| {
            let (ty, at) = (value.ty, value.place);
            let variable = self.add_hidden("swapped", ty, at);
            self.before.push(Stmt::new(StmtKind::Set(variable, value), at));
            Expr::variable(variable, ty, at)
        });
        let [to_second, to_first] = operands;
        first.set(to_first, self)?;
        second.set(to_second, self)?;
        out.append(&mut self.before);
        Ok(())
    }

    fn swap_side<'r>(&mut self, place: &'r Rust) -> Result<Side<'r>> {
        let element = match place {
            Rust::Index(index) => {
                self.check_writable(index)?;
                Some(self.read_element(index)?)
            }
            Rust::Field(field) if self.is_structure_element(&field.base) => {
                self.field_type(field)?;
                self.field_place(field)?
            }
            other => {
                self.type_of_place(other)?;
                None
            }
        };
        let Some((array, ty, mut index)) = element else { return Ok(Side::Other(place)) };
        let mut before = core::mem::take(&mut self.before);
        self.keep_index(&mut index, &mut before);
        self.before = before;
        Ok(Side::Element(array, ty, index))
    }
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
