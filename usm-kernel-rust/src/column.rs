//! Arrays of structures: an array for each type of their fields.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Ident, Result};
use usm_kernel_ir::{Array, ArrayId, Binary, Expr, ExprKind, Literal, Place, Scalar, Space, Stmt, StmtKind};

use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

impl Reader {
    /// Declares an array of structures: one for each type of their fields, whose memory `space`
    /// gives for its elements in a structure.
    pub(crate) fn declare_columns(
        &mut self,
        name: &Ident,
        number: usize,
        space: &dyn Fn(u64) -> Space,
    ) -> (ArrayId, Vec<ArrayId>) {
        let structure = self.neighbours.structures[number].clone();
        let (text, place) = (name.to_string().trim_start_matches("r#").to_string(), place_of(name.span()));
        let first = self.kernel.arrays.len() as u32;
        for element in structure.columns() {
            let space = space(structure.bytes() / element.bytes());
            self.kernel.arrays.push(Array { name: text.clone(), element, space, place });
        }
        let arrays: Vec<ArrayId> = (first..self.kernel.arrays.len() as u32).map(ArrayId).collect();
        self.structures.insert(arrays[0], number);
        (arrays[0], arrays)
    }

    /// Stores the values of structures in an array of the item: one for all elements, or one for
    /// each.
    pub(crate) fn fill_columns(&mut self, array: ArrayId, init: &Rust, out: &mut Vec<Stmt>) -> Result<()> {
        let at = self.kernel.array(array).place;
        let number = self.structures[&array];
        let of = |value: &Rust, reader: &mut Reader| {
            if reader.structure_of_value(value) != Some(number) {
                let name = &reader.neighbours.structures[number].name;
                return refuse(value.span(), format!("a `{name}` is needed here"));
            }
            let values = reader.tuple_parts(value, &[])?;
            Ok(values.into_iter().map(|value| reader.keep_part(value)).collect::<Vec<Expr>>())
        };
        let count = self.literal_count(array);
        let index = |value| Expr::literal(Literal::integer(Scalar::U64, value), at);
        let stores = |index: &Expr, values: Vec<Expr>, reader: &Reader| {
            let places = values.into_iter().enumerate().filter_map(|(field, value)| {
                let (array, index) = reader.column_place(array, field, Some(index), at)?;
                Some(Stmt::new(StmtKind::Store { array, index, value }, at))
            });
            places.collect::<Vec<Stmt>>()
        };
        match init {
            Rust::Repeat(repeat) if self.length(&repeat.len)? != count => {
                return refuse(repeat.len.span(), format!("the array has {count} elements"));
            }
            Rust::Repeat(repeat) => {
                let values = of(&repeat.expr, self)?;
                out.append(&mut self.before);
                let k = self.add_hidden("k", Scalar::U64, at);
                let body = stores(&Expr::variable(k, Scalar::U64, at), values, self);
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
                    let values = of(value, self)?;
                    out.append(&mut self.before);
                    out.extend(stores(&index(place as u64), values, self));
                }
            }
            other => return refuse(other.span(), "write `[value; length]` or a list of values"),
        }
        Ok(())
    }

    /// The structure and the length of `[S { .. }; N]` or `[S { .. }, ..]`; `None` for numbers.
    pub(crate) fn structure_list(&self, init: &Rust) -> Result<Option<(usize, u64)>> {
        Ok(match init {
            Rust::Repeat(repeat) => match self.structure_of_value(&repeat.expr) {
                Some(number) => Some((number, self.length(&repeat.len)?)),
                None => None,
            },
            Rust::Array(list) => {
                let first = list.elems.first().and_then(|first| self.structure_of_value(first));
                first.map(|number| (number, list.elems.len() as u64))
            }
            _ => None,
        })
    }

    /// The structures in an array of an item.
    fn literal_count(&self, array: ArrayId) -> u64 {
        match (self.kernel.array(array).space.clone(), self.column_stride(array)) {
            (Space::Private(len), stride) => len / stride,
            _ => 0,
        }
    }

    /// Elements of an array, the first of its structures, in one of them.
    pub(crate) fn column_stride(&self, array: ArrayId) -> u64 {
        let structure = &self.neighbours.structures[self.structures[&array]];
        structure.place(0).map_or(1, |place| place.stride)
    }

    /// The array and index of a field of the structure at a position, at 0 without one.
    pub(crate) fn column_place(
        &self,
        array: ArrayId,
        field: usize,
        index: Option<&Expr>,
        at: Place,
    ) -> Option<(ArrayId, Expr)> {
        let position = self.neighbours.structures[*self.structures.get(&array)?].place(field)?;
        let number = |value| Expr::literal(Literal::integer(Scalar::U64, value), at);
        let start = index.map(|index| match position.stride {
            1 => index.clone(),
            stride => Expr::binary(Binary::Mul, index.clone(), number(stride), index.place),
        });
        let index = match start {
            Some(start) if position.offset == 0 => start,
            Some(start) => Expr::binary(Binary::Add, start, number(position.offset), at),
            None => number(position.offset),
        };
        Some((ArrayId(array.0 + position.column as u32), index))
    }

    /// The number of structures in an array.
    pub(crate) fn count_structures(&self, array: ArrayId) -> Expr {
        let (at, by) = (self.kernel.array(array).place, self.column_stride(array));
        let number = |value| Expr::literal(Literal::integer(Scalar::U64, value), at);
        let length = match &self.kernel.array(array).space {
            Space::Private(len) => return number(len / by),
            Space::Local(len) => {
                return match &len.kind {
                    ExprKind::Literal(len) => number(len.bits / by),
                    // It is made of a number of structures.
                    ExprKind::Binary { operator: Binary::Mul, left: count, .. } if by != 1 => {
                        (**count).clone()
                    }
                    _ => len.clone(),
                };
            }
            _ => Expr { kind: ExprKind::Len(array), ty: Scalar::U64, place: at },
        };
        Expr::binary(Binary::Div, length, number(by), at)
    }
}
