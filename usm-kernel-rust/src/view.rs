//! Parts of arrays: elements, rows of arrays in several dimensions, and slices.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprRange, RangeLimits, Result};
use usm_kernel_ir::{
    Array, ArrayId, Binary, Expr, ExprKind, Literal, Place, Query, Scalar, Space, Stmt, StmtKind,
};

use crate::column;
use crate::expression::typed;
use crate::scope::{Meaning, Scope, refuse};
use crate::signature::place_of;

/// A part of an array; without dimensions it is an element.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) array: ArrayId,
    /// Whether it was taken as `&[T]`.
    pub(crate) read_only: bool,
    start: Option<Expr>,
    dimensions: Vec<Dimension>,
}

#[derive(Clone, Debug)]
struct Dimension {
    length: Expr,
    guard: Guard,
    /// Elements from one index to the next.
    stride: u64,
}

/// What refuses an index outside of a dimension.
#[derive(Clone, Copy, Debug)]
enum Guard {
    /// The access, because the dimension is the array.
    Array,
    /// The extent, whose length the launch knows.
    Extent(ArrayId),
    /// A comparison: the length is the item's own.
    Item,
}

impl View {
    /// A whole array.
    pub(crate) fn of(array: ArrayId, read_only: bool, at: Place, scope: &mut Scope) -> Self {
        if let Some(structure) = scope.structures.get(&array) {
            let fields = scope.neighbours.structures[*structure].fields.len() as u64;
            let count = column::count(array, scope);
            let first = Dimension {
                guard: Guard::Extent(extent(array, &count, scope)),
                length: count,
                // Its start is a number of structures.
                stride: 1,
            };
            let second = Dimension { length: number(fields, at), guard: Guard::Array, stride: 1 };
            return Self { array, read_only, start: None, dimensions: vec![first, second] };
        }
        let shape = scope.shapes.get(&array).cloned().unwrap_or_default();
        if shape.is_empty() {
            let length = Expr { kind: ExprKind::Len(array), ty: Scalar::U64, place: at };
            let dimensions = vec![Dimension { length, guard: Guard::Array, stride: 1 }];
            return Self { array, read_only, start: None, dimensions };
        }
        let dimension = |place: usize| {
            let length = number(shape[place], at);
            let guard = Guard::Extent(extent(array, &length, scope));
            Dimension { length, guard, stride: shape[place + 1..].iter().product() }
        };
        let dimensions = (0..shape.len()).map(dimension).collect();
        Self { array, read_only, start: None, dimensions }
    }

    /// Whether it is all of an array with one dimension.
    pub(crate) fn is_whole(&self) -> bool {
        self.start.is_none() && matches!(&self.dimensions[..], [Dimension { guard: Guard::Array, .. }])
    }

    /// Whether it is one structure.
    pub(crate) fn is_structure(&self, scope: &Scope) -> bool {
        self.dimensions.len() == 1 && scope.structures.contains_key(&self.array)
    }

    /// The array and the position of a field of one structure.
    pub(crate) fn field(&self, field: usize, at: Place, scope: &Scope) -> Option<(ArrayId, Expr)> {
        column::place(self.array, field, self.start.as_ref(), at, scope)
    }

    /// The number of its dimensions.
    pub(crate) fn depth(&self) -> usize {
        self.dimensions.len()
    }

    /// The number of its elements or rows.
    pub(crate) fn length(&self) -> Option<Expr> {
        self.dimensions.first().map(|first| first.length.clone())
    }

    /// The numbers of elements of all dimensions but the first, if the text has them.
    pub(crate) fn inner_lengths(&self) -> Vec<Option<u64>> {
        self.dimensions.iter().skip(1).map(|dimension| literal(&dimension.length)).collect()
    }

    /// The position of an element in the array.
    pub(crate) fn position(&self, at: Place) -> Expr {
        self.start.clone().unwrap_or_else(|| number(0, at))
    }

    /// Keeps its start in a variable, so that it stays what it is now.
    pub(crate) fn keep(&mut self, scope: &mut Scope) {
        if let Some(start) = &mut self.start {
            if literal(start).is_none() {
                *start = kept("start", start.clone(), scope);
            }
        }
    }

    fn moved(&mut self, by: Expr) {
        let start = self.start.take();
        self.start = Some(match start {
            Some(start) => {
                let at = by.place;
                Expr::binary(Binary::Add, start, by, at)
            }
            None => by,
        });
    }

    /// Takes one index off.
    fn index(mut self, index: Expr, scope: &mut Scope) -> Self {
        let first = self.dimensions.remove(0);
        let at = index.place;
        let index = match first.guard {
            Guard::Array => index,
            Guard::Extent(extent) => Expr::load(extent, Scalar::U64, index, at),
            Guard::Item => {
                // No array has an element at the greatest index.
                let index = kept("index", index, scope);
                let inside = Expr::binary(Binary::Lt, index.clone(), first.length, at);
                self.moved(index);
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
        self.moved(scaled(index, first.stride));
        self
    }

    /// Takes a part of the first dimension.
    fn slice(mut self, range: &ExprRange, scope: &mut Scope) -> Result<Self> {
        let at = place_of(range.span());
        let Some(first) = self.dimensions.first().cloned() else {
            return refuse(range.span(), "an element has no parts");
        };
        let mut start = match &range.start {
            Some(start) => typed(start, Scalar::U64, scope)?,
            None => number(0, at),
        };
        let end = match &range.end {
            Some(end) => scope.read_after(&mut [&mut start], |scope| typed(end, Scalar::U64, scope))?,
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
        let is_of_structures = self.start.is_none() && scope.structures.contains_key(&self.array);
        let is_inside = matches!(first.guard, Guard::Array)
            || is_of_structures
            || (literal(&end).is_some() && literal(&first.length).is_some());
        let length = difference(&end, &start).filter(|length| is_inside && is_of_launch(length));
        let (length, guard) = match length {
            Some(length) => {
                if is_of_structures && literal(&start).is_none_or(|start| start > u64::from(u32::MAX)) {
                    // A start beyond the array could wrap around when it is multiplied by the
                    // fields.
                    let from = kept("start", start, scope);
                    let is_right = Expr::binary(Binary::Le, from.clone(), first.length.clone(), at);
                    let kind = ExprKind::Select {
                        condition: Box::new(is_right),
                        then: Box::new(from),
                        other: Box::new(first.length.clone()),
                    };
                    start = Expr { kind, ty: Scalar::U64, place: at };
                }
                let guard = Guard::Extent(extent(self.array, &length, scope));
                (length, guard)
            }
            None => {
                let (from, to) = (kept("start", start.clone(), scope), kept("end", end, scope));
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
                (kept("length", Expr { kind, ty: Scalar::U64, place: at }, scope), Guard::Item)
            }
        };
        if matches!(guard, Guard::Item) && (first.stride != 1 || self.dimensions.len() > 1) {
            return refuse(range.span(), "a slice of rows needs a length that the launch knows");
        }
        self.dimensions[0] = Dimension { length, guard, ..first };
        self.moved(scaled(start, first.stride));
        Ok(self)
    }
}

/// Reads a part of an array; `None` if the text is none.
pub(crate) fn view(value: &Rust, scope: &mut Scope) -> Result<Option<View>> {
    match value {
        Rust::Paren(inner) => view(&inner.expr, scope),
        Rust::Group(inner) => view(&inner.expr, scope),
        Rust::Reference(reference) => {
            let found = view(&reference.expr, scope)?;
            Ok(found.map(|mut found| {
                found.read_only |= reference.mutability.is_none();
                found
            }))
        }
        Rust::Path(path) => {
            let Some(name) = path.path.get_ident() else { return Ok(None) };
            let at = place_of(name.span());
            Ok(match scope.find(name)? {
                Meaning::Array(id) => Some(View::of(id, false, at, scope)),
                Meaning::ReadOnly(id) => Some(View::of(id, true, at, scope)),
                Meaning::View(number) => Some(scope.views[number].clone()),
                Meaning::Table(number) => {
                    let id = scope.table(number)?;
                    Some(View::of(id, true, at, scope))
                }
                _ => None,
            })
        }
        Rust::Index(index) => indexed(index, scope),
        _ => Ok(None),
    }
}

/// As [`view`].
pub(crate) fn indexed(index: &syn::ExprIndex, scope: &mut Scope) -> Result<Option<View>> {
    let Some(mut of) = view(&index.expr, scope)? else { return Ok(None) };
    if let Rust::Range(range) = &*index.index {
        return of.slice(range, scope).map(Some);
    }
    if of.is_structure(scope) {
        return refuse(index.span(), "a structure has no elements: name a field, such as `p.x`");
    }
    if of.dimensions.is_empty() {
        return Ok(None);
    }
    let place = match &mut of.start {
        Some(start) => scope.read_after(&mut [start], |scope| typed(&index.index, Scalar::U64, scope))?,
        None => typed(&index.index, Scalar::U64, scope)?,
    };
    Ok(Some(of.index(place, scope)))
}

/// The dimensions of the part of an array that a text names, before its indices are read.
pub(crate) fn depth(value: &Rust, scope: &Scope) -> Option<usize> {
    match value {
        Rust::Paren(inner) => depth(&inner.expr, scope),
        Rust::Group(inner) => depth(&inner.expr, scope),
        Rust::Reference(inner) => depth(&inner.expr, scope),
        Rust::Index(index) => {
            let of = depth(&index.expr, scope)?;
            if matches!(&*index.index, Rust::Range(_)) { Some(of) } else { of.checked_sub(1) }
        }
        Rust::Path(path) => match scope.find(path.path.get_ident()?).ok()? {
            Meaning::Array(id) | Meaning::ReadOnly(id) if scope.structures.contains_key(&id) => Some(2),
            Meaning::Array(id) | Meaning::ReadOnly(id) => Some(scope.shapes.get(&id).map_or(1, Vec::len)),
            Meaning::View(number) => Some(scope.views[number].depth()),
            Meaning::Table(number) => {
                let (mut ty, mut depth) = (&*scope.neighbours.tables[number].ty, 0);
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
pub(crate) fn root(value: &Rust, scope: &Scope) -> Result<Option<(ArrayId, bool)>> {
    match value {
        Rust::Paren(inner) => root(&inner.expr, scope),
        Rust::Group(inner) => root(&inner.expr, scope),
        Rust::Reference(inner) => root(&inner.expr, scope),
        Rust::Index(index) => root(&index.expr, scope),
        Rust::Path(path) => {
            let Some(name) = path.path.get_ident() else { return Ok(None) };
            Ok(match scope.find(name)? {
                Meaning::Array(id) => Some((id, false)),
                Meaning::ReadOnly(id) => Some((id, true)),
                Meaning::View(number) => {
                    let view = &scope.views[number];
                    Some((view.array, view.read_only))
                }
                _ => None,
            })
        }
        _ => Ok(None),
    }
}

fn number(value: u64, at: Place) -> Expr {
    Expr::literal(Literal::integer(Scalar::U64, value), at)
}

fn literal(value: &Expr) -> Option<u64> {
    match value.kind {
        ExprKind::Literal(literal) => Some(literal.bits),
        _ => None,
    }
}

fn scaled(index: Expr, stride: u64) -> Expr {
    let at = index.place;
    if stride == 1 { index } else { Expr::binary(Binary::Mul, index, number(stride, at), at) }
}

fn kept(name: &str, value: Expr, scope: &mut Scope) -> Expr {
    if matches!(value.kind, ExprKind::Literal(_) | ExprKind::Value(_)) {
        return value;
    }
    let (ty, at) = (value.ty, value.place);
    let variable = scope.hidden(name, ty, at);
    scope.before.push(Stmt::new(StmtKind::Set(variable, value), at));
    Expr::variable(variable, ty, at)
}

/// The extent of this length that belongs to an array, by whose name it is known.
fn extent(array: ArrayId, length: &Expr, scope: &mut Scope) -> ArrayId {
    let name = scope.kernel.array(array).name.clone();
    let plain = without_places(length);
    let same = |other: &Array| match &other.space {
        Space::Extent(known) => other.name == name && without_places(known) == plain,
        _ => false,
    };
    let known = scope.kernel.arrays.iter().position(same);
    let place = length.place;
    let position = known.unwrap_or_else(|| {
        let space = Space::Extent(length.clone());
        scope.kernel.arrays.push(Array { name, element: Scalar::U64, space, place });
        scope.kernel.arrays.len() - 1
    });
    ArrayId(position as u32)
}

fn without_places(value: &Expr) -> Expr {
    let mut plain = value.clone();
    plain.place = Place::default();
    match &mut plain.kind {
        ExprKind::Cast(operand) | ExprKind::Unary(_, operand) | ExprKind::Load(_, operand) => {
            **operand = without_places(operand);
        }
        ExprKind::Binary { left: one, right: two, .. } => {
            **one = without_places(one);
            **two = without_places(two);
        }
        _ => {}
    }
    plain
}

/// Whether a launch knows the value before any item runs.
fn is_of_launch(value: &Expr) -> bool {
    let mut known = true;
    value.for_each(&mut |expr| {
        known &= match expr.kind {
            ExprKind::Literal(_) | ExprKind::Value(_) | ExprKind::Cast(_) | ExprKind::Binary { .. } => true,
            ExprKind::Query(query, _) => {
                matches!(query, Query::GlobalSize | Query::LocalSize | Query::Groups)
            }
            _ => false,
        };
    });
    known
}

/// The difference of two numbers as a sum of products, without what both contain.
fn difference(end: &Expr, start: &Expr) -> Option<Expr> {
    let mut terms = Terms::default();
    terms.add(end, &[], 1)?;
    terms.add(start, &[], u64::MAX)?;
    terms.0.retain(|(_, factor)| *factor != 0);
    let at = end.place;
    let mut sum: Option<Expr> = None;
    // What is subtracted comes last.
    terms.0.sort_by_key(|(_, factor)| *factor >> 63);
    for (atoms, factor) in terms.0 {
        let is_below = factor >> 63 == 1;
        let size = if is_below { factor.wrapping_neg() } else { factor };
        let mut product = (size != 1 || atoms.is_empty()).then(|| number(size, at));
        for atom in atoms {
            product = Some(match product {
                Some(product) => Expr::binary(Binary::Mul, product, atom, at),
                None => atom,
            });
        }
        let product = product?;
        sum = Some(match sum {
            Some(sum) if is_below => Expr::binary(Binary::Sub, sum, product, at),
            Some(sum) => Expr::binary(Binary::Add, sum, product, at),
            None if is_below => return None,
            None => product,
        });
    }
    Some(sum.unwrap_or_else(|| number(0, at)))
}

/// Products of values, each with a factor.
#[derive(Default)]
struct Terms(Vec<(Vec<Expr>, u64)>);

impl Terms {
    /// Adds a value times a product. `None` if there are too many terms.
    fn add(&mut self, value: &Expr, times: &[Expr], factor: u64) -> Option<()> {
        match &value.kind {
            ExprKind::Literal(literal) => self.add_product(times.to_vec(), factor.wrapping_mul(literal.bits)),
            ExprKind::Binary { operator: Binary::Add, left: one, right: two } => {
                self.add(one, times, factor)?;
                self.add(two, times, factor)
            }
            ExprKind::Binary { operator: Binary::Sub, left: one, right: two } => {
                self.add(one, times, factor)?;
                self.add(two, times, factor.wrapping_neg())
            }
            ExprKind::Binary { operator: Binary::Mul, left: one, right: two } => {
                let mut inner = Self::default();
                inner.add(one, &[], 1)?;
                for (atoms, by) in inner.0 {
                    let all: Vec<Expr> = times.iter().cloned().chain(atoms).collect();
                    self.add(two, &all, factor.wrapping_mul(by))?;
                }
                Some(())
            }
            _ => {
                let mut all = times.to_vec();
                all.push(without_places(value));
                self.add_product(all, factor)
            }
        }
    }

    fn add_product(&mut self, mut atoms: Vec<Expr>, factor: u64) -> Option<()> {
        atoms.sort_by_cached_key(|atom| format!("{atom:?}"));
        if let Some((_, known)) = self.0.iter_mut().find(|(known, _)| *known == atoms) {
            *known = known.wrapping_add(factor);
            return Some(());
        }
        self.0.push((atoms, factor));
        (self.0.len() <= 16).then_some(())
    }
}
