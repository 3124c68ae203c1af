//! Reads parts of arrays: elements, rows of arrays in several dimensions, and slices.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprRange, RangeLimits, Result};
use usm_kernel_ir::{Array, ArrayId, Binary, Expr, ExprKind, Place, Scalar, Space, Stmt, StmtKind};

use crate::difference::{difference, is_of_launch, without_places};
use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;
use crate::view::{Dimension, Guard, View, literal, number, scale};

impl View {
    /// A whole array.
    pub(crate) fn of(array: ArrayId, read_only: bool, at: Place, reader: &mut Reader) -> Self {
        if let Some(structure) = reader.structures.get(&array) {
            let fields = reader.neighbours.structures[*structure].fields.len() as u64;
            let count = reader.count_structures(array);
            let first = Dimension {
                guard: Guard::Extent(reader.extent_of(array, &count)),
                length: count,
                // Its start is a number of structures.
                stride: 1,
            };
            let second = Dimension { length: number(fields, at), guard: Guard::Array, stride: 1 };
            return Self { array, read_only, start: None, dimensions: vec![first, second] };
        }
        let shape = reader.shapes.get(&array).cloned().unwrap_or_default();
        if shape.is_empty() {
            let length = Expr { kind: ExprKind::Len(array), ty: Scalar::U64, place: at };
            let dimensions = vec![Dimension { length, guard: Guard::Array, stride: 1 }];
            return Self { array, read_only, start: None, dimensions };
        }
        let dimension = |place: usize| {
            let length = number(shape[place], at);
            let guard = Guard::Extent(reader.extent_of(array, &length));
            Dimension { length, guard, stride: shape[place + 1..].iter().product() }
        };
        let dimensions = (0..shape.len()).map(dimension).collect();
        Self { array, read_only, start: None, dimensions }
    }

    /// Whether it is one structure.
    pub(crate) fn is_structure(&self, reader: &Reader) -> bool {
        self.dimensions.len() == 1 && reader.structures.contains_key(&self.array)
    }

    /// The array and the position of a field of one structure.
    pub(crate) fn field(&self, field: usize, at: Place, reader: &Reader) -> Option<(ArrayId, Expr)> {
        reader.column_place(self.array, field, self.start.as_ref(), at)
    }

    /// Keeps its start in a variable, so that it stays what it is now.
    pub(crate) fn keep(&mut self, reader: &mut Reader) {
        if let Some(start) = &mut self.start {
            if literal(start).is_none() {
                *start = reader.keep_value("start", start.clone());
            }
        }
    }

    /// Takes one index off.
    fn index(mut self, index: Expr, reader: &mut Reader) -> Self {
        let first = self.dimensions.remove(0);
        let at = index.place;
        let index = match first.guard {
            Guard::Array => index,
            Guard::Extent(extent) => Expr::load(extent, Scalar::U64, index, at),
            Guard::Item => {
                // No array has an element at the greatest index.
                let index = reader.keep_value("index", index);
                let inside = Expr::binary(Binary::Lt, index.clone(), first.length, at);
                self.shift_start(index);
                let (start, none) = (self.position(at), number(u64::MAX, at));
                let kind = ExprKind::Select {
                    condition: Box::new(inside),
                    then: Box::new(start),
                    other: Box::new(none),
                };
                self.start = Some(Expr { kind, ty: Scalar::U64, place: at });
                return self;
            }
        };
        self.shift_start(scale(index, first.stride));
        self
    }

    /// Takes a part of the first dimension.
    fn slice(mut self, range: &ExprRange, reader: &mut Reader) -> Result<Self> {
        let at = place_of(range.span());
        let Some(first) = self.dimensions.first().cloned() else {
            return refuse(range.span(), "an element has no parts");
        };
        let mut start = match &range.start {
            Some(start) => reader.read_typed(start, Scalar::U64)?,
            None => number(0, at),
        };
        let end = match &range.end {
            Some(end) => {
                reader.read_after(&mut [&mut start], |reader| reader.read_typed(end, Scalar::U64))?
            }
            None => first.length.clone(),
        };
        let end = match range.limits {
            RangeLimits::Closed(_) if range.end.is_some() => {
                Expr::binary(Binary::Add, end, number(1, at), at)
            }
            _ => end,
        };
        if let (Some(from), Some(to)) = (literal(&start), literal(&end)) {
            let most = literal(&first.length).unwrap_or(u64::MAX);
            if from > to || to > most {
                let of = if most == u64::MAX { String::new() } else { format!(" of {most} elements") };
                return refuse(range.span(), format!("the slice {from}..{to}{of}"));
            }
        }
        // The access refuses what is outside of the whole array.
        let is_of_structures = self.start.is_none() && reader.structures.contains_key(&self.array);
        let is_inside = matches!(first.guard, Guard::Array)
            || is_of_structures
            || (literal(&end).is_some() && literal(&first.length).is_some());
        let length = difference(&end, &start).filter(|length| is_inside && is_of_launch(length));
        let (length, guard) = match length {
            Some(length) => {
                if is_of_structures && literal(&start).is_none_or(|start| start > u64::from(u32::MAX)) {
                    // A start beyond the array could wrap around when it is multiplied by the
                    // fields.
                    let from = reader.keep_value("start", start);
                    let is_right = Expr::binary(Binary::Le, from.clone(), first.length.clone(), at);
                    let kind = ExprKind::Select {
                        condition: Box::new(is_right),
                        then: Box::new(from),
                        other: Box::new(first.length.clone()),
                    };
                    start = Expr { kind, ty: Scalar::U64, place: at };
                }
                let guard = Guard::Extent(reader.extent_of(self.array, &length));
                (length, guard)
            }
            None => {
                let (from, to) = (reader.keep_value("start", start.clone()), reader.keep_value("end", end));
                start = from.clone();
                let mut is_right = Expr::binary(Binary::Le, from.clone(), to.clone(), at);
                if !matches!(first.guard, Guard::Array) {
                    let inside = Expr::binary(Binary::Le, to.clone(), first.length.clone(), at);
                    is_right = Expr::binary(Binary::AndThen, is_right, inside, at);
                }
                let length = Expr::binary(Binary::Sub, to, from, at);
                let kind = ExprKind::Select {
                    condition: Box::new(is_right),
                    then: Box::new(length),
                    other: Box::new(number(0, at)),
                };
                (reader.keep_value("length", Expr { kind, ty: Scalar::U64, place: at }), Guard::Item)
            }
        };
        if matches!(guard, Guard::Item) && (first.stride != 1 || self.dimensions.len() > 1) {
            return refuse(range.span(), "a slice of rows needs a length that the launch knows");
        }
        self.dimensions[0] = Dimension { length, guard, ..first };
        self.shift_start(scale(start, first.stride));
        Ok(self)
    }
}

impl Reader {
    /// Reads a part of an array; `None` if the text is none.
    pub(crate) fn read_view(&mut self, value: &Rust) -> Result<Option<View>> {
        match value {
            Rust::Paren(inner) => self.read_view(&inner.expr),
            Rust::Group(inner) => self.read_view(&inner.expr),
            Rust::Reference(reference) => {
                let view = self.read_view(&reference.expr)?;
                Ok(view.map(|mut view| {
                    view.read_only |= reference.mutability.is_none();
                    view
                }))
            }
            Rust::Path(path) => {
                let Some(name) = path.path.get_ident() else { return Ok(None) };
                let at = place_of(name.span());
                Ok(match self.find(name)? {
                    Meaning::Array(id) => Some(View::of(id, false, at, self)),
                    Meaning::ReadOnly(id) => Some(View::of(id, true, at, self)),
                    Meaning::View(number) => Some(self.views[number].clone()),
                    Meaning::Table(number) => {
                        let id = self.table(number)?;
                        Some(View::of(id, true, at, self))
                    }
                    _ => None,
                })
            }
            Rust::Index(index) => self.read_indexed(index),
            _ => Ok(None),
        }
    }

    /// As [`read_view`](Self::read_view).
    pub(crate) fn read_indexed(&mut self, index: &syn::ExprIndex) -> Result<Option<View>> {
        let Some(mut of) = self.read_view(&index.expr)? else { return Ok(None) };
        if let Rust::Range(range) = &*index.index {
            return of.slice(range, self).map(Some);
        }
        if of.is_structure(self) {
            return refuse(index.span(), "a structure has no elements: name a field, such as `p.x`");
        }
        if of.dimensions.is_empty() {
            return Ok(None);
        }
        let place = match &mut of.start {
            Some(start) => {
                self.read_after(&mut [start], |reader| reader.read_typed(&index.index, Scalar::U64))?
            }
            None => self.read_typed(&index.index, Scalar::U64)?,
        };
        Ok(Some(of.index(place, self)))
    }

    /// The dimensions of the part of an array that a text names, before its indices are read.
    pub(crate) fn view_depth(&self, value: &Rust) -> Option<usize> {
        match value {
            Rust::Paren(inner) => self.view_depth(&inner.expr),
            Rust::Group(inner) => self.view_depth(&inner.expr),
            Rust::Reference(inner) => self.view_depth(&inner.expr),
            Rust::Index(index) => {
                let of = self.view_depth(&index.expr)?;
                if matches!(&*index.index, Rust::Range(_)) { Some(of) } else { of.checked_sub(1) }
            }
            Rust::Path(path) => match self.find(path.path.get_ident()?).ok()? {
                Meaning::Array(id) | Meaning::ReadOnly(id) if self.structures.contains_key(&id) => Some(2),
                Meaning::Array(id) | Meaning::ReadOnly(id) => Some(self.shapes.get(&id).map_or(1, Vec::len)),
                Meaning::View(number) => Some(self.views[number].depth()),
                Meaning::Table(number) => {
                    let (mut ty, mut depth) = (&*self.neighbours.tables[number].ty, 0);
                    while let syn::Type::Array(array) = ty {
                        depth += 1;
                        ty = &array.elem;
                    }
                    Some(depth)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The array whose part a text names, before its indices are read.
    pub(crate) fn root_array(&self, value: &Rust) -> Result<Option<(ArrayId, bool)>> {
        match value {
            Rust::Paren(inner) => self.root_array(&inner.expr),
            Rust::Group(inner) => self.root_array(&inner.expr),
            Rust::Reference(inner) => self.root_array(&inner.expr),
            Rust::Index(index) => self.root_array(&index.expr),
            Rust::Path(path) => {
                let Some(name) = path.path.get_ident() else { return Ok(None) };
                Ok(match self.find(name)? {
                    Meaning::Array(id) => Some((id, false)),
                    Meaning::ReadOnly(id) => Some((id, true)),
                    Meaning::View(number) => {
                        let view = &self.views[number];
                        Some((view.array, view.read_only))
                    }
                    _ => None,
                })
            }
            _ => Ok(None),
        }
    }

    fn keep_value(&mut self, name: &str, value: Expr) -> Expr {
        if matches!(value.kind, ExprKind::Literal(_) | ExprKind::Value(_)) {
            return value;
        }
        let (ty, at) = (value.ty, value.place);
        let variable = self.add_hidden(name, ty, at);
        self.before.push(Stmt::new(StmtKind::Set(variable, value), at));
        Expr::variable(variable, ty, at)
    }

    /// The extent of this length that belongs to an array, by whose name it is known.
    fn extent_of(&mut self, array: ArrayId, length: &Expr) -> ArrayId {
        let name = self.kernel.array(array).name.clone();
        let plain = without_places(length);
        let same = |other: &Array| match &other.space {
            Space::Extent(other_length) => other.name == name && without_places(other_length) == plain,
            _ => false,
        };
        let place_of_same = self.kernel.arrays.iter().position(same);
        let place = length.place;
        let position = place_of_same.unwrap_or_else(|| {
            let space = Space::Extent(length.clone());
            self.kernel.arrays.push(Array { name, element: Scalar::U64, space, place });
            self.kernel.arrays.len() - 1
        });
        ArrayId(position as u32)
    }
}
