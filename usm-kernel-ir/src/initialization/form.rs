//! The form of an index, for an item whose ids are not known.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;

use super::Walker;
use super::state::State;
use crate::kernel::{ArrayId, Expr, ExprKind, Place, Query, Space, Stmt, StmtKind, VarId};
use crate::operator::Binary;
use crate::scalar::{Literal, Scalar};

/// Maximum number of nodes of a form.
const NODES: usize = 32;

fn node(kind: ExprKind) -> Expr {
    Expr { kind, ty: Scalar::U64, place: Place::default() }
}

fn number(value: u64) -> Expr {
    node(ExprKind::Literal(Literal::integer(Scalar::U64, value)))
}

/// The operands of a sum or product.
fn operands(operator: Binary, form: &Expr) -> Option<[&Expr; 2]> {
    match &form.kind {
        ExprKind::Binary { operator: other, left: one, right: two } if *other == operator => Some([one, two]),
        _ => None,
    }
}

const fn is_wide(ty: Scalar) -> bool {
    matches!(ty, Scalar::U64 | Scalar::I64)
}

/// An index without conversions that keep its 64 bits.
fn plain(mut expr: &Expr) -> &Expr {
    while let ExprKind::Cast(operand) = &expr.kind {
        if !is_wide(expr.ty) || !is_wide(operand.ty) {
            break;
        }
        expr = operand;
    }
    expr
}

/// Writes of a loop behind which an array is full.
pub(super) struct Cover {
    pub(super) array: usize,
    /// Each item wrote the whole array, and not only its part.
    pub(super) own: bool,
}

impl Walker<'_> {
    /// A value of 64 bits as sums and products of ids, sizes, scalars and literals, up to multiples
    /// of 2^64; `None` if it is not one.
    pub(super) fn form(&self, expr: &Expr, state: &State) -> Option<Rc<Expr>> {
        if self.ids.is_some() {
            return None;
        }
        let mut left = NODES;
        self.form_of(expr, state, &mut left).map(Rc::new)
    }

    fn form_of(&self, expr: &Expr, state: &State, left: &mut usize) -> Option<Expr> {
        let expr = plain(expr);
        *left = left.checked_sub(1)?;
        if !is_wide(expr.ty) {
            return None;
        }
        Some(match &expr.kind {
            ExprKind::Literal(literal) => number(literal.bits),
            ExprKind::Variable(variable) => match state.variable(*variable) {
                (word, _) if word.same().is_some() => number(word.same()?),
                (_, form) => {
                    let form = form.as_deref()?;
                    let mut nodes = 0;
                    form.for_each(&mut |_| nodes += 1);
                    *left = left.checked_sub(nodes)?;
                    form.clone()
                }
            },
            ExprKind::Value(value) => node(ExprKind::Value(*value)),
            ExprKind::Query(query, dimension) => match self.size(*query, *dimension) {
                Some(size) => number(size),
                None if matches!(query, Query::GlobalId | Query::GroupId) => return None,
                None => node(ExprKind::Query(*query, *dimension)),
            },
            ExprKind::Len(array) => match (&self.kernel.array(*array).space, self.lens[array.0 as usize]) {
                (_, Some(len)) => number(len),
                (Space::Local(len), None) => self.form_of(len, state, left)?,
                _ => return None,
            },
            ExprKind::Binary { operator: operator @ (Binary::Add | Binary::Mul), left: one, right: two } => {
                let (one, two) = (self.form_of(one, state, left)?, self.form_of(two, state, left)?);
                node(ExprKind::Binary { operator: *operator, left: Box::new(one), right: Box::new(two) })
            }
            _ => return None,
        })
    }

    /// The number of items in a dimension.
    fn along(&self, dimension: u8) -> Expr {
        let size = self.size(Query::LocalSize, dimension);
        size.map_or_else(|| node(ExprKind::Query(Query::LocalSize, dimension)), number)
    }

    /// Whether a form is the linear local id.
    fn is_item(&self, form: &Expr) -> bool {
        self.is_linear(form, self.kernel.dimensions - 1)
    }

    fn is_linear(&self, form: &Expr, dimension: u8) -> bool {
        let is_id = |form: &Expr| *form == node(ExprKind::Query(Query::LocalId, dimension));
        let Some(slower) = dimension.checked_sub(1) else { return is_id(form) };
        let is_row = |form: &Expr| {
            let size = self.along(dimension);
            operands(Binary::Mul, form).is_some_and(|[one, two]| {
                (*two == size && self.is_linear(one, slower)) || (*one == size && self.is_linear(two, slower))
            })
        };
        operands(Binary::Add, form)
            .is_some_and(|[one, two]| (is_row(one) && is_id(two)) || (is_row(two) && is_id(one)))
    }

    /// The number of items, if it is known.
    fn group(&self) -> Option<u64> {
        self.sizes.iter().copied().product()
    }

    /// Whether a form is the number of items.
    fn is_items(&self, form: &Expr) -> bool {
        if let ExprKind::Literal(literal) = form.kind {
            return self.group() == Some(literal.bits);
        }
        let mut sizes: Vec<Expr> =
            (0..self.kernel.dimensions).map(|dimension| self.along(dimension)).collect();
        self.takes_factors(form, &mut sizes) && sizes.is_empty()
    }

    fn takes_factors(&self, form: &Expr, sizes: &mut Vec<Expr>) -> bool {
        if let Some([one, two]) = operands(Binary::Mul, form) {
            return self.takes_factors(one, sizes) && self.takes_factors(two, sizes);
        }
        let position = sizes.iter().position(|size| size == form);
        position.map(|place| sizes.swap_remove(place)).is_some()
    }

    /// The form of a local array's length.
    fn length(&self, array: usize, state: &State) -> Option<Rc<Expr>> {
        match (&self.kernel.arrays[array].space, self.lens[array]) {
            (_, Some(len)) => Some(Rc::new(number(len))),
            (Space::Local(len), None) => self.form(len, state),
            _ => None,
        }
    }

    /// Whether an index is the linear local id in an array with at most one element for each item.
    pub(super) fn is_own_element(&self, array: ArrayId, index: &Expr, state: &State) -> bool {
        let at = array.0 as usize;
        if !matches!(self.kernel.arrays[at].space, Space::Local(_)) {
            return false;
        }
        let fits = match (self.lens[at], self.group()) {
            (Some(len), Some(items)) => len <= items,
            _ => self.length(at, state).is_some_and(|len| self.is_items(&len)),
        };
        fits && self.form(index, state).is_some_and(|form| self.is_item(&form))
    }

    /// Whether a condition is true for the first item, and for no other.
    pub(super) fn is_first(&self, condition: &Expr, state: &State) -> bool {
        let mut zeros = Vec::new();
        let all = (0..self.kernel.dimensions).map(|d| node(ExprKind::Query(Query::LocalId, d)));
        self.are_zero(condition, state, &mut zeros)
            && (zeros.iter().any(|form| self.is_item(form)) || all.into_iter().all(|id| zeros.contains(&id)))
    }

    /// Collects what a conjunction of comparisons with zero compares.
    fn are_zero(&self, condition: &Expr, state: &State, zeros: &mut Vec<Expr>) -> bool {
        match &condition.kind {
            ExprKind::Binary { operator: Binary::AndThen, left: one, right: two } => {
                self.are_zero(one, state, zeros) && self.are_zero(two, state, zeros)
            }
            ExprKind::Binary { operator: Binary::Eq, left: one, right: two } => {
                let (Some(one), Some(two)) = (self.form(one, state), self.form(two, state)) else {
                    return false;
                };
                let zero = number(0);
                if *one != zero && *two != zero {
                    return false;
                }
                zeros.push(if *one == zero { (*two).clone() } else { (*one).clone() });
                true
            }
            _ => false,
        }
    }

    /// The arrays that a counting loop fills.
    pub(super) fn covers(
        &self,
        variable: VarId,
        [start, end, step]: [&Expr; 3],
        body: &[Stmt],
        state: &State,
    ) -> Vec<Cover> {
        let ty = self.kernel.variable(variable).ty;
        let (Some(start), Some(end), Some(step)) =
            (self.form(start, state), self.form(end, state), self.form(step, state))
        else {
            return Vec::new();
        };
        let own = *start == number(0) && (*step == number(0) || *step == number(1));
        if !is_wide(ty)
            || super::loops::jumps(body)
            || !(own || (self.is_item(&start) && self.is_items(&step)))
        {
            return Vec::new();
        }
        let mut covers = Vec::new();
        for stmt in body {
            let StmtKind::Store { array, index, .. } = &stmt.kind else { continue };
            let at = array.0 as usize;
            let Some(len) = self.length(at, state).filter(|_| self.asked[at]) else { continue };
            let reaches = match (&len.kind, &end.kind) {
                (ExprKind::Literal(len), ExprKind::Literal(end)) => {
                    len.bits <= end.bits && end.bits <= i64::MAX as u64
                }
                _ => len == end,
            };
            if reaches && plain(index).kind == ExprKind::Variable(variable) {
                covers.push(Cover { array: at, own });
            }
        }
        covers
    }
}
