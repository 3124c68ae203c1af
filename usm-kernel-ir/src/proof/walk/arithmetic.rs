//! The sum for an operator on two integers.

use super::{Facts, Needs, State, Walker};
use crate::kernel::Expr;
use crate::operator::Binary;
use crate::proof::linear::Linear;
use crate::proof::number::Number;
use crate::scalar::Scalar;

impl Walker<'_> {
    pub(super) fn arithmetic(
        &mut self,
        expr: &Expr,
        operator: Binary,
        (one, one_ty): (Facts, Scalar),
        (two, two_ty): (Facts, Scalar),
        state: &State,
    ) -> Facts {
        let needs_of_both = || one.needs.clone().and(&two.needs);
        match operator {
            Binary::Add => return Facts { sum: one.sum.add(&two.sum), needs: needs_of_both() },
            Binary::Sub => return Facts { sum: one.sum.sub(&two.sum), needs: needs_of_both() },
            Binary::Mul => {
                if let Some(by) = two.sum.as_number() {
                    return Facts { sum: one.sum.scale(by), needs: needs_of_both() };
                }
                if let Some(by) = one.sum.as_number() {
                    return Facts { sum: two.sum.scale(by), needs: needs_of_both() };
                }
            }
            Binary::Shl => {
                if let Some(by) = power(expr, &two) {
                    return Facts { sum: one.sum.scale(&by), needs: needs_of_both() };
                }
            }
            _ => {}
        }
        self.exact_arithmetic(expr, operator, (one, one_ty), (two, two_ty), state)
    }

    /// The sum for an operator that needs the exact values, which have not wrapped.
    fn exact_arithmetic(
        &mut self,
        expr: &Expr,
        operator: Binary,
        (one, one_ty): (Facts, Scalar),
        (two, two_ty): (Facts, Scalar),
        state: &State,
    ) -> Facts {
        let exact = (self.exact(&one, one_ty, &state.guards), self.exact(&two, two_ty, &state.guards));
        let (Some(first), Some(second)) = exact else {
            return self.unknown_of(expr, None, None, Needs::none());
        };
        let mut needs = first.and(&second);
        let [left_low, left_high] = self.interval(&one.sum, &state.guards).ends(&mut needs);
        let [right_low, right_high] = self.interval(&two.sum, &state.guards).ends(&mut needs);
        let is_at_least = |low: &Option<Number>, number| {
            low.as_ref().and_then(Number::least).is_some_and(|least| least >= number)
        };
        let natural = |low: &Option<Number>| is_at_least(low, 0);
        let positive = |low: &Option<Number>| is_at_least(low, 1);
        // Numbers that differ by what a launch determines.
        if matches!(operator, Binary::Min | Binary::Max) && one.sum.terms == two.sum.terms {
            let (first, second) = (one.sum.constant, two.sum.constant);
            let constant = if operator == Binary::Min { first.min(second) } else { first.max(second) };
            return Facts { sum: Linear { terms: one.sum.terms, constant }, needs };
        }
        let (low, high) = match operator {
            Binary::Mul if natural(&left_low) && natural(&right_low) => {
                let low = left_low.zip(right_low).map(|(one, two)| one.mul(two));
                let high = left_high.zip(right_high).map(|(one, two)| one.mul(two));
                return self.congruent(expr, low.zip(high), needs);
            }
            Binary::Div if natural(&left_low) && natural(&right_low) => {
                if let (Some(value), Some(by)) = (one.sum.as_number(), two.sum.as_number()) {
                    if by.least().is_some_and(|least| least >= 1) {
                        return Facts { sum: Linear::number(value.clone().div(by.clone())), needs };
                    }
                }
                let by = if positive(&right_low) { right_low } else { None };
                (Some(Number::ZERO), left_high.map(|high| high.div(by.unwrap_or(Number::ONE))))
            }
            Binary::Shr if natural(&left_low) => {
                if let (Some(value), Some(by)) = (one.sum.as_number(), power(expr, &two)) {
                    return Facts { sum: Linear::number(value.clone().div(by)), needs };
                }
                (Some(Number::ZERO), left_high.map(|high| high.div(power(expr, &two).unwrap_or(Number::ONE))))
            }
            Binary::Rem if natural(&left_low) && natural(&right_low) => {
                let below = right_high.map(|high| high.sub(Number::ONE).max(Number::ZERO));
                (Some(Number::ZERO), either(left_high, below, Number::min))
            }
            Binary::And if natural(&left_low) || natural(&right_low) => {
                let high = match (natural(&left_low), natural(&right_low)) {
                    (true, true) => either(left_high, right_high, Number::min),
                    (true, false) => left_high,
                    _ => right_high,
                };
                (Some(Number::ZERO), high)
            }
            Binary::Min => {
                let high = either(left_high, right_high, Number::min);
                (left_low.zip(right_low).map(|(one, two)| one.min(two)), high)
            }
            Binary::Max => {
                let low = either(left_low, right_low, Number::max);
                (low, left_high.zip(right_high).map(|(one, two)| one.max(two)))
            }
            _ => return self.unknown_of(expr, None, None, Needs::none()),
        };
        self.unknown_of(expr, low, high, needs)
    }
}

/// The power of two that a shift by a known number multiplies by.
fn power(expr: &Expr, by: &Facts) -> Option<Number> {
    let bits = by.sum.as_number()?.constant()?;
    (0..i64::from(expr.ty.bits()).min(62)).contains(&bits).then(|| Number::Constant(1 << bits))
}

/// The limit that follows from two, of which one may be unknown.
fn either(
    one: Option<Number>,
    two: Option<Number>,
    join: impl FnOnce(Number, Number) -> Number,
) -> Option<Number> {
    match (one, two) {
        (Some(one), Some(two)) => Some(join(one, two)),
        (one, two) => one.or(two),
    }
}
