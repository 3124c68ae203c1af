//! Lowers collective operations of a group to stores to local memory, barriers and loads, which
//! every target has.
//!
//! A device needs a number of steps that grows with the logarithm of the items. On the host one
//! item does it in a loop.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use crate::builtin::Math;
use crate::counters::with_own_counters;
use crate::inline::without_early_returns;
use crate::interpret::neutral;
use crate::kernel::{
    Array, ArrayId, Collection, Expr, ExprKind, Kernel, Place, Query, Space, Stmt, StmtKind, VarId, Variable,
};
use crate::lone_continue::without_lone_continues;
use crate::operator::{Binary, Unary};
use crate::scalar::{Literal, Scalar};
use crate::zero::with_zeros;

/// The items that collect.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// The first item.
    One,
    /// All items.
    All,
}

/// A verified kernel without [`StmtKind::Collect`] and [`StmtKind::Broadcast`]. It has an
/// additional array of local memory for each collected type. These arrays follow the others, in an
/// order that does not depend on `By`.
///
/// Local and private memory that nobody wrote is zero in it.
pub(crate) fn lower(kernel: &Kernel, by: By) -> Cow<'_, Kernel> {
    let mut kernel = with_zeros(kernel, by);
    if by == By::One {
        kernel = without_early_returns(without_lone_continues(with_own_counters(kernel)));
    }
    let mut collects = false;
    let mut note =
        |stmt: &Stmt| collects |= matches!(stmt.kind, StmtKind::Collect { .. } | StmtKind::Broadcast { .. });
    kernel.for_each(&mut note, &mut |_| ());
    if !collects {
        return kernel;
    }
    let mut result = kernel.into_owned();
    let body = core::mem::take(&mut result.body);
    let mut writer = Writer { own: result.arrays.len(), kernel: result, by };
    let body = writer.block(body);
    writer.kernel.body = body;
    Cow::Owned(writer.kernel)
}

/// A lowered kernel without negations of floating point numbers, for OpenCL.
///
/// Intel's CPU runtime 2026.2.0 loses such a value across a barrier, `x` in
/// `float x = -(float)get_local_id(0); barrier(CLK_LOCAL_MEM_FENCE); out[i] = x;`: every item
/// reads memory that nobody wrote. Its compiler negates also where the text multiplies by -1 or
/// subtracts from -0. A product and sum in one rounding has the same result, of zeros too.
pub(crate) fn without_negations(kernel: Cow<'_, Kernel>) -> Cow<'_, Kernel> {
    let mut negates = false;
    kernel.for_each(&mut |_| (), &mut |expr| negates |= negated(expr).is_some());
    if !negates || !kernel.body.iter().any(Stmt::has_barrier) {
        return kernel;
    }
    let mut kernel = kernel.into_owned();
    as_products(&mut kernel.body);
    Cow::Owned(kernel)
}

/// The number that an expression negates.
fn negated(expr: &Expr) -> Option<&Expr> {
    let is = |operand: &Expr, number: f64| match operand.kind {
        ExprKind::Literal(literal) => literal == float(expr.ty, number),
        _ => false,
    };
    match &expr.kind {
        _ if !expr.ty.is_float() => None,
        ExprKind::Unary(Unary::Neg, operand) => Some(operand),
        ExprKind::Binary { operator: Binary::Mul | Binary::Div, left: one, right: two } if is(two, -1.0) => {
            Some(one)
        }
        ExprKind::Binary { operator: Binary::Mul, left: one, right: two } if is(one, -1.0) => Some(two),
        ExprKind::Binary { operator: Binary::Sub, left: one, right: two } if is(one, -0.0) => Some(two),
        _ => None,
    }
}

fn float(ty: Scalar, number: f64) -> Literal {
    if ty == Scalar::F32 { Literal::f32(number as f32) } else { Literal::f64(number) }
}

fn as_products(body: &mut [Stmt]) {
    fn of(expr: &mut Expr) {
        if let Some(operand) = negated(expr) {
            let literal = |number| Expr::literal(float(expr.ty, number), expr.place);
            let parts = vec![operand.clone(), literal(-1.0), literal(-0.0)];
            expr.kind = ExprKind::Math(Math::MulAdd, parts);
        }
        expr.operands_mut().into_iter().for_each(of);
    }
    for stmt in body {
        stmt.for_each_expr_mut(&mut of);
        stmt.blocks_mut().into_iter().for_each(|block| as_products(block));
    }
}

/// A verified kernel without [`StmtKind::Collect`] and [`StmtKind::Broadcast`], for host code: the
/// first item of a group collects through local memory. The kernel's own arrays keep their
/// positions; additional ones follow.
#[must_use]
pub fn without_collections(kernel: &Kernel) -> Cow<'_, Kernel> {
    lower(kernel, By::One)
}

/// A kernel without loads from [`Space::Extent`], for code whose indices are known to be inside.
#[must_use]
pub fn without_extents(kernel: Cow<'_, Kernel>) -> Cow<'_, Kernel> {
    with_extents_at(kernel, &[])
}

/// A kernel whose loads from [`Space::Extent`] are those at these places, which code checks; all
/// other indices are known to be inside.
#[must_use]
pub fn with_extents_at<'k>(kernel: Cow<'k, Kernel>, places: &[(ArrayId, Place)]) -> Cow<'k, Kernel> {
    if !kernel.arrays.iter().any(|array| matches!(array.space, Space::Extent(_))) {
        return kernel;
    }
    let mut kernel = kernel.into_owned();
    let is_extent: Vec<bool> =
        kernel.arrays.iter().map(|array| matches!(array.space, Space::Extent(_))).collect();
    let goes = |array: ArrayId, place| is_extent[array.0 as usize] && !places.contains(&(array, place));
    replace_loads_by_indices(&mut kernel.body, &goes);
    Cow::Owned(kernel)
}

fn replace_loads_by_indices(body: &mut [Stmt], goes: &dyn Fn(ArrayId, Place) -> bool) {
    fn of(expr: &mut Expr, goes: &dyn Fn(ArrayId, Place) -> bool) {
        while let ExprKind::Load(array, index) = &mut expr.kind {
            if !goes(*array, expr.place) {
                break;
            }
            let zero = Expr::literal(Literal::integer(Scalar::U64, 0), index.place);
            *expr = core::mem::replace(&mut **index, zero);
        }
        expr.operands_mut().into_iter().for_each(|operand| of(operand, goes));
    }
    for stmt in body {
        stmt.for_each_expr_mut(&mut |expr| of(expr, goes));
        stmt.blocks_mut().into_iter().for_each(|block| replace_loads_by_indices(block, goes));
    }
}

struct Writer {
    kernel: Kernel,
    /// Number of the kernel's own arrays.
    own: usize,
    by: By,
}

impl Writer {
    fn block(&mut self, body: Vec<Stmt>) -> Vec<Stmt> {
        let mut out = Vec::new();
        for stmt in body {
            let place = stmt.place;
            let kind = match stmt.kind {
                StmtKind::If { condition, then, other } => {
                    StmtKind::If { condition, then: self.block(then), other: self.block(other) }
                }
                StmtKind::While(condition, body) => StmtKind::While(condition, self.block(body)),
                StmtKind::For { variable, start, end, step, body } => {
                    StmtKind::For { variable, start, end, step, body: self.block(body) }
                }
                StmtKind::Collect { collection, operator, variable, value } => {
                    let site = Site { place, scratch: self.scratch(value.ty, place), ty: value.ty };
                    self.put(&site, value, &mut out);
                    self.collect(&site, collection, operator, variable, &mut out);
                    continue;
                }
                StmtKind::Broadcast { variable, value, from } => {
                    let site = Site { place, scratch: self.scratch(value.ty, place), ty: value.ty };
                    // Its own value is evaluated before the barrier, as the others' are.
                    let known = self.fresh(Scalar::U64, place);
                    out.push(site.set(known, from));
                    self.put(&site, value, &mut out);
                    let last = Expr::binary(Binary::Sub, self.items(place), number(1, place), place);
                    let from = Expr::variable(known, Scalar::U64, place);
                    let from = Expr::binary(Binary::Min, from, last, place);
                    out.push(site.set(variable, site.load(from)));
                    continue;
                }
                other => other,
            };
            out.push(Stmt { kind, place });
        }
        out
    }

    /// Stores each item's value, after all items have read the previous result.
    fn put(&mut self, site: &Site, value: Expr, out: &mut Vec<Stmt>) {
        let variable = self.fresh(site.ty, site.place);
        out.push(site.set(variable, value));
        out.push(site.barrier());
        out.push(site.store(self.item(site.place), Expr::variable(variable, site.ty, site.place)));
        out.push(site.barrier());
    }

    /// The array for values of this type.
    fn scratch(&mut self, element: Scalar, place: Place) -> ArrayId {
        let position = self.kernel.arrays.iter().skip(self.own).position(|array| array.element == element);
        let index = position.map_or(self.kernel.arrays.len(), |place| self.own + place);
        if position.is_none() {
            let space = Space::Local(self.items(place));
            self.kernel.arrays.push(Array { name: "collected".into(), element, space, place });
        }
        ArrayId(index as u32)
    }

    fn fresh(&mut self, ty: Scalar, place: Place) -> VarId {
        self.kernel.variables.push(Variable { name: "collected".into(), ty, place });
        VarId(self.kernel.variables.len() as u32 - 1)
    }

    fn items(&self, place: Place) -> Expr {
        items(&self.kernel, place)
    }

    fn item(&self, place: Place) -> Expr {
        item(&self.kernel, place)
    }

    fn collect(
        &mut self,
        site: &Site,
        collection: Collection,
        operator: Binary,
        variable: VarId,
        out: &mut Vec<Stmt>,
    ) {
        let place = site.place;
        match (self.by, collection) {
            (By::One, _) => self.combine_by_one_item(site, collection == Collection::Reduce, operator, out),
            (By::All, Collection::Reduce) => self.tree(site, operator, out),
            (By::All, _) => self.rounds(site, operator, out),
        }
        let item = self.item(place);
        let value = match collection {
            Collection::Reduce => site.load(number(0, place)),
            Collection::Inclusive => site.load(item),
            Collection::Exclusive => {
                let before = Expr::binary(Binary::Sub, item.clone(), number(1, place), place);
                let has = Expr::binary(Binary::Gt, item, number(0, place), place);
                let none = Expr::literal(neutral(operator, site.ty), place);
                Expr {
                    kind: ExprKind::Select {
                        condition: Box::new(has),
                        then: Box::new(site.load(before)),
                        other: Box::new(none),
                    },
                    ty: site.ty,
                    place,
                }
            }
        };
        out.push(site.set(variable, value));
    }

    /// One item combines all values.
    fn combine_by_one_item(&mut self, site: &Site, reduces: bool, operator: Binary, out: &mut Vec<Stmt>) {
        let place = site.place;
        let (sum, count) = (self.fresh(site.ty, place), self.fresh(Scalar::U64, place));
        let so_far = || Expr::variable(sum, site.ty, place);
        let at = || Expr::variable(count, Scalar::U64, place);
        let next = Expr::binary(operator, so_far(), site.load(at()), place);
        let mut body = vec![site.set(sum, next)];
        let mut all = vec![site.set(sum, site.load(number(0, place)))];
        if !reduces {
            body.push(site.store(at(), so_far()));
        }
        let (start, end, step) = (number(1, place), self.items(place), number(1, place));
        all.push(Stmt::new(StmtKind::For { variable: count, start, end, step, body }, place));
        if reduces {
            all.push(site.store(number(0, place), so_far()));
        }
        let first = Expr::binary(Binary::Eq, self.item(place), number(0, place), place);
        out.push(Stmt::new(StmtKind::If { condition: first, then: all, other: Vec::new() }, place));
        out.push(site.barrier());
    }

    /// In each round the first half combines with the second half.
    fn tree(&mut self, site: &Site, operator: Binary, out: &mut Vec<Stmt>) {
        let place = site.place;
        let half = self.fresh(Scalar::U64, place);
        let step = || Expr::variable(half, Scalar::U64, place);
        let binary = |operator, one, two| Expr::binary(operator, one, two, place);
        // The greatest power of two below the number of items.
        out.push(site.set(half, number(1, place)));
        let twice_step = || binary(Binary::Mul, step(), number(2, place));
        let more = binary(Binary::Lt, twice_step(), self.items(place));
        out.push(Stmt::new(StmtKind::While(more, vec![site.set(half, twice_step())]), place));
        let item = self.item(place);
        let other = binary(Binary::Add, item.clone(), step());
        let both = binary(
            Binary::AndThen,
            binary(Binary::Lt, item.clone(), step()),
            binary(Binary::Lt, other.clone(), self.items(place)),
        );
        let sum = binary(operator, site.load(item.clone()), site.load(other));
        let selection = Stmt::new(
            StmtKind::If { condition: both, then: vec![site.store(item, sum)], other: Vec::new() },
            place,
        );
        let half_step = site.set(half, binary(Binary::Div, step(), number(2, place)));
        let left = binary(Binary::Gt, step(), number(0, place));
        out.push(Stmt::new(StmtKind::While(left, vec![selection, site.barrier(), half_step]), place));
    }

    /// In each round an item combines with one at twice the distance before it.
    fn rounds(&mut self, site: &Site, operator: Binary, out: &mut Vec<Stmt>) {
        let place = site.place;
        let (partner, sum) = (self.fresh(Scalar::U64, place), self.fresh(site.ty, place));
        let step = || Expr::variable(partner, Scalar::U64, place);
        let so_far = || Expr::variable(sum, site.ty, place);
        let binary = |operator, one, two| Expr::binary(operator, one, two, place);
        let item = self.item(place);
        let before = site.load(binary(Binary::Sub, item.clone(), step()));
        let has = binary(Binary::Ge, item.clone(), step());
        let sums = vec![site.set(sum, binary(operator, before, so_far()))];
        let body = vec![
            site.set(sum, site.load(item.clone())),
            Stmt::new(StmtKind::If { condition: has, then: sums, other: Vec::new() }, place),
            site.barrier(),
            site.store(item, so_far()),
            site.barrier(),
            site.set(partner, binary(Binary::Mul, step(), number(2, place))),
        ];
        out.push(site.set(partner, number(1, place)));
        let more = binary(Binary::Lt, step(), self.items(place));
        out.push(Stmt::new(StmtKind::While(more, body), place));
    }
}

/// The site of a collective operation, and its array.
struct Site {
    place: Place,
    scratch: ArrayId,
    ty: Scalar,
}

impl Site {
    fn load(&self, index: Expr) -> Expr {
        Expr::load(self.scratch, self.ty, index, self.place)
    }

    fn store(&self, index: Expr, value: Expr) -> Stmt {
        Stmt::new(StmtKind::Store { array: self.scratch, index, value }, self.place)
    }

    const fn set(&self, variable: VarId, value: Expr) -> Stmt {
        Stmt::new(StmtKind::Set(variable, value), self.place)
    }

    const fn barrier(&self) -> Stmt {
        Stmt::new(StmtKind::Barrier { local: true, global: false }, self.place)
    }
}

/// Number of items in a group.
pub(crate) fn items(kernel: &Kernel, place: Place) -> Expr {
    if let Some(group) = kernel.group.as_ref().filter(|group| !group.contains(&0)) {
        return number(group.iter().product(), place);
    }
    let sizes = (0..kernel.dimensions).map(|dimension| Expr::query(Query::LocalSize, dimension, place));
    let product = sizes.reduce(|all, size| Expr::binary(Binary::Mul, all, size, place));
    product.unwrap_or_else(|| number(1, place))
}

/// Linear local id.
pub(crate) fn item(kernel: &Kernel, place: Place) -> Expr {
    let mut linear = Expr::query(Query::LocalId, 0, place);
    for dimension in 1..kernel.dimensions {
        let said = kernel.group.as_ref().map_or(0, |group| group[usize::from(dimension)]);
        let size =
            if said == 0 { Expr::query(Query::LocalSize, dimension, place) } else { number(said, place) };
        linear = Expr::binary(Binary::Mul, linear, size, place);
        linear = Expr::binary(Binary::Add, linear, Expr::query(Query::LocalId, dimension, place), place);
    }
    linear
}

pub(crate) fn number(value: u64, place: Place) -> Expr {
    Expr::literal(Literal::integer(Scalar::U64, value), place)
}
