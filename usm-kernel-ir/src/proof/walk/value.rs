//! Expressions as sums.

use super::{Access, Facts, Guard, Info, Kind, NODES, Needs, State, Walker, hull};
use crate::kernel::{Expr, ExprKind, Query, Space};
use crate::operator::{Binary, Unary};
use crate::proof::claim::Condition;
use crate::proof::linear::{Atom, Linear};
use crate::proof::number::Number;
use crate::scalar::Scalar;

impl Walker<'_> {
    /// The facts about an integer; other types have none. Records the loads inside.
    pub(super) fn value(&mut self, expr: &Expr, state: &mut State) -> Facts {
        if !self.recording {
            // A condition in a condition is looked at for each way of the outer one.
            let Some(left) = self.left.checked_sub(1) else {
                return self.unknown_of(expr, None, None, Needs::none());
            };
            self.left = left;
        }
        let facts = self.value_of(expr, state);
        let mut left = NODES;
        let is_short = facts.sum.counts(&mut left) && facts.needs.counts(&mut left);
        if is_short { facts } else { self.unknown_of(expr, None, None, Needs::none()) }
    }

    fn value_of(&mut self, expr: &Expr, state: &mut State) -> Facts {
        let plain = |sum| Facts { sum, needs: Needs::none() };
        match &expr.kind {
            ExprKind::Literal(literal) => match literal.to_i64() {
                Some(value) => plain(Linear::number(Number::Constant(value))),
                None => self.unknown_of(expr, None, None, Needs::none()),
            },
            ExprKind::Variable(variable) => match &state.variables[variable.0 as usize] {
                Some(facts) if expr.ty.is_integer() => facts.clone(),
                _ => {
                    let facts = self.unknown_of(expr, None, None, Needs::none());
                    state.variables[variable.0 as usize] = Some(facts.clone());
                    facts
                }
            },
            ExprKind::Value(value) if expr.ty.is_integer() => {
                let number = Number::Value(*value);
                // An unsigned value is never below zero; its node does not state that.
                plain(Linear::number(if expr.ty.is_signed() { number } else { number.max(Number::ZERO) }))
            }
            ExprKind::Len(array) => match self.len(*array) {
                Some((len, needs)) => Facts { sum: Linear::number(len), needs },
                None => self.unknown_of(expr, None, None, Needs::none()),
            },
            ExprKind::Query(query, dimension) => {
                let dimension = *dimension;
                plain(match query {
                    Query::GlobalId => Linear::atom(Atom::Global(dimension)),
                    Query::LocalId => Linear::atom(Atom::Local(dimension)),
                    Query::GroupId => Linear::atom(Atom::Group(dimension)),
                    Query::GlobalSize => Linear::number(Number::GlobalSize(dimension)),
                    Query::LocalSize => Linear::number(self.local_size(dimension)),
                    Query::Groups => Linear::number(Number::Groups(dimension)),
                })
            }
            ExprKind::Load(array, index) => {
                let index = self.value(index, state);
                let kind =
                    if self.kernel.array(*array).space == Space::Atomic { Kind::Atomic } else { Kind::Read };
                if matches!(self.kernel.array(*array).space, Space::Extent(_)) {
                    self.access(*array, kind, index.clone(), expr.place, state);
                    return index;
                }
                self.access(*array, kind, index, expr.place, state);
                self.unknown_of(expr, None, None, Needs::none())
            }
            ExprKind::Unary(operator, operand) => {
                let facts = self.value(operand, state);
                match operator {
                    Unary::Neg if expr.ty.is_integer() => {
                        Facts { sum: facts.sum.scale(&Number::Constant(-1)), needs: facts.needs }
                    }
                    _ => self.unknown_of(expr, None, None, Needs::none()),
                }
            }
            ExprKind::Binary { operator, left, right } => {
                let one = self.value(left, state);
                let guards = state.guards.len();
                match operator {
                    Binary::AndThen => self.assume(left, true, state),
                    Binary::OrElse => self.assume(left, false, state),
                    _ => {}
                }
                let two = self.value(right, state);
                state.guards.truncate(guards);
                if !expr.ty.is_integer() || !left.ty.is_integer() {
                    return self.unknown_of(expr, None, None, Needs::none());
                }
                self.arithmetic(expr, *operator, (one, left.ty), (two, right.ty), state)
            }
            ExprKind::Cast(operand) => self.cast(expr, operand, state),
            ExprKind::Select { condition, then, other } => self.select(expr, condition, [then, other], state),
            ExprKind::Math(function, arguments) => {
                for argument in arguments {
                    let _ = self.value(argument, state);
                }
                let most = function.counts().then(|| Number::Constant(i64::from(expr.ty.bits())));
                self.unknown_of(expr, None, most, Needs::none())
            }
            ExprKind::Bits(operand) => {
                let _ = self.value(operand, state);
                self.unknown_of(expr, None, None, Needs::none())
            }
            ExprKind::Value(_) => self.unknown_of(expr, None, None, Needs::none()),
        }
    }

    fn cast(&mut self, expr: &Expr, operand: &Expr, state: &mut State) -> Facts {
        let facts = self.value(operand, state);
        if !operand.ty.is_integer() || !expr.ty.is_integer() {
            return self.unknown_of(expr, None, None, Needs::none());
        }
        if operand.ty.bits() >= expr.ty.bits() {
            return facts;
        }
        match self.exact(&facts, operand.ty, &state.guards) {
            Some(needs) => Facts { sum: facts.sum, needs },
            None => {
                let low = Number::Constant(operand.ty.min());
                let high = operand.ty.max().map(Number::Constant);
                // A negative number becomes a great one.
                if operand.ty.is_signed() && !expr.ty.is_signed() {
                    self.congruent(expr, Some(low).zip(high), Needs::none())
                } else {
                    self.unknown_of(expr, Some(low), high, Needs::none())
                }
            }
        }
    }

    fn select(
        &mut self,
        expr: &Expr,
        condition: &Expr,
        [then, other]: [&Expr; 2],
        state: &mut State,
    ) -> Facts {
        let _ = self.value(condition, state);
        let guards = state.guards.len();
        self.assume(condition, true, state);
        let then = self.value(then, state);
        let mut is_exact = self.is_exact(&then, expr.ty, &state.guards);
        let first = self.interval(&then.sum, &state.guards);
        state.guards.truncate(guards);
        self.assume(condition, false, state);
        let other = self.value(other, state);
        is_exact &= self.is_exact(&other, expr.ty, &state.guards);
        let second = self.interval(&other.sum, &state.guards);
        state.guards.truncate(guards);
        let mut needs = then.needs.and(&other.needs);
        let [low, high] = hull(first.ends(&mut needs), second.ends(&mut needs));
        if is_exact {
            self.unknown_of(expr, low, high, needs)
        } else {
            self.congruent(expr, low.zip(high), needs)
        }
    }

    /// A value with known limits only.
    pub(super) fn unknown_of(
        &mut self,
        expr: &Expr,
        low: Option<Number>,
        high: Option<Number>,
        needs: Needs,
    ) -> Facts {
        let shared = self.uniformity.varies(self.kernel, expr).is_none() && self.free == 0;
        let is_short = |number: &Number| number.counts(&mut NODES.clone());
        let low = low.filter(is_short).or(Some(Number::Constant(expr.ty.min())));
        let high = high.filter(is_short).or(expr.ty.max().map(Number::Constant));
        let atom = self.fresh(Info { ty: Some(expr.ty), low, high, shared, steps: None });
        Facts { sum: Linear::atom(atom), needs }
    }

    /// A value that equals, up to multiples of its type's range, a quantity with known limits.
    pub(super) fn congruent(&mut self, expr: &Expr, limits: Option<(Number, Number)>, needs: Needs) -> Facts {
        let is_short = |number: &Number| number.counts(&mut NODES.clone());
        let Some((low, high)) = limits.filter(|(low, high)| is_short(low) && is_short(high)) else {
            return self.unknown_of(expr, None, None, needs);
        };
        let shared = self.uniformity.varies(self.kernel, expr).is_none() && self.free == 0;
        let atom = self.fresh(Info { ty: None, low: Some(low), high: Some(high), shared, steps: None });
        Facts { sum: Linear::atom(atom), needs }
    }

    /// Whether a value of this type always equals its sum.
    pub(super) fn is_exact(&self, facts: &Facts, ty: Scalar, guards: &[Guard]) -> bool {
        let exact = self.exact(facts, ty, guards);
        exact.is_some_and(|all| all.are_in(&facts.needs))
    }

    /// The condition under which a value of this type equals its sum without wrapping; `None` if it
    /// cannot be expressed.
    pub(super) fn exact(&self, facts: &Facts, ty: Scalar, guards: &[Guard]) -> Option<Needs> {
        let mut needs = facts.needs.clone();
        if let ([(atom, Number::Constant(1))], Number::Constant(0)) =
            (&facts.sum.terms[..], &facts.sum.constant)
        {
            if self.fits(*atom, ty) {
                return Some(needs);
            }
        }
        let [low, high] = self.interval(&facts.sum, guards).ends(&mut needs);
        needs.push(Condition::AtMost(Number::Constant(ty.min()), low?));
        needs.push(Condition::AtMost(high?, Number::Constant(ty.max().unwrap_or(i64::MAX))));
        (!needs.is_impossible()).then(|| needs.unknown())
    }

    /// What the index of an access needs to be equal to its sum.
    pub(in crate::proof) fn exact_index(&self, access: &Access) -> Option<Needs> {
        let facts = Facts { sum: access.index.clone(), needs: Needs::none() };
        self.exact(&facts, Scalar::U64, &access.guards)
    }

    /// Whether each value of an atom is one of the type. No range has 2^63 items.
    fn fits(&self, atom: Atom, ty: Scalar) -> bool {
        let Atom::Other(number, _) = atom else { return ty.bits() == 64 };
        self.infos[number as usize].ty.is_some_and(|own| match (own.is_signed(), ty.is_signed()) {
            (false, true) => own.bits() < ty.bits(),
            (true, false) => false,
            _ => own.bits() <= ty.bits(),
        })
    }
}
