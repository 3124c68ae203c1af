//! The facts about integers that a true condition implies.

use super::{Facts, Guard, State, Walker};
use crate::kernel::{Expr, ExprKind};
use crate::operator::{Binary, Unary};
use crate::proof::linear::Linear;
use crate::proof::number::Number;

impl Walker<'_> {
    /// Assumes that a condition is true, or false, and adds the facts about integers.
    pub(super) fn assume(&mut self, condition: &Expr, truth: bool, state: &mut State) {
        let was_recording = core::mem::replace(&mut self.recording, false);
        self.assume_all(condition, truth, state);
        self.recording = was_recording;
    }

    fn assume_all(&mut self, condition: &Expr, truth: bool, state: &mut State) {
        match &condition.kind {
            ExprKind::Unary(Unary::Not, inner) => self.assume_all(inner, !truth, state),
            ExprKind::Binary { operator: Binary::AndThen | Binary::And, left, right } if truth => {
                self.assume_all(left, true, state);
                self.assume_all(right, true, state);
            }
            ExprKind::Binary { operator: Binary::OrElse | Binary::Or, left, right } if !truth => {
                self.assume_all(left, false, state);
                self.assume_all(right, false, state);
            }
            ExprKind::Binary { operator, left, right } if left.ty.is_integer() && operator.compares() => {
                let (one, two) = (self.value(left, state), self.value(right, state));
                let exact =
                    (self.exact(&one, left.ty, &state.guards), self.exact(&two, left.ty, &state.guards));
                let (Some(first), Some(second)) = exact else { return };
                let needs = first.and(&second);
                let mut below = |low: &Facts, high: &Facts, by: i64| {
                    let sum = high.sum.sub(&low.sum).add(&Linear::number(Number::Constant(-by)));
                    state.guards.push(Guard { sum, needs: needs.clone() });
                };
                match (operator, truth) {
                    (Binary::Lt, true) | (Binary::Ge, false) => below(&one, &two, 1),
                    (Binary::Le, true) | (Binary::Gt, false) => below(&one, &two, 0),
                    (Binary::Gt, true) | (Binary::Le, false) => below(&two, &one, 1),
                    (Binary::Ge, true) | (Binary::Lt, false) => below(&two, &one, 0),
                    (Binary::Eq, true) | (Binary::Ne, false) => {
                        below(&one, &two, 0);
                        below(&two, &one, 0);
                    }
                    (Binary::Ne, true) | (Binary::Eq, false) => {
                        // For unsigned numbers, unequal to zero means above zero.
                        let zero = |facts: &Facts| facts.sum.as_number() == Some(&Number::ZERO);
                        if !left.ty.is_signed() && zero(&two) {
                            below(&two, &one, 1);
                        } else if !left.ty.is_signed() && zero(&one) {
                            below(&one, &two, 1);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
}
