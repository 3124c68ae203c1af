//! Whether an expression is a multiple of an alignment for every value of the dimensions.

use usm_pool::range::{Dimension, Term, evaluate};

/// Up to this many combinations of values are all evaluated.
const EVERY: u64 = 1 << 12;

/// Whether the expression has a multiple of `unit` for every value. A "no" may be wrong where the
/// values are too many to look at each.
pub(super) fn is_multiple(terms: &[Term], dims: &[Dimension], unit: u64) -> bool {
    divisor(terms, dims).is_some_and(|divisor| divisor % u128::from(unit.max(1)) == 0)
        || is_multiple_each(terms, dims, unit)
}

fn is_multiple_each(terms: &[Term], dims: &[Dimension], unit: u64) -> bool {
    let steps = |dim: &Dimension| (dim.high - dim.low) / dim.step;
    let count = dims.iter().try_fold(1_u64, |all, dim| all.checked_mul(steps(dim).checked_add(1)?));
    let Some(count) = count.filter(|&count| count <= EVERY) else { return false };
    let mut values = vec![0; dims.len()];
    (0..count).all(|mut at| {
        for (value, dim) in values.iter_mut().zip(dims) {
            let count = steps(dim) + 1;
            *value = dim.low + at % count * dim.step;
            at /= count;
        }
        evaluate(terms, &values).is_ok_and(|number| number % unit.max(1) == 0)
    })
}

/// A number that divides the expression for every value; 0 for one that is always 0.
fn divisor(terms: &[Term], dims: &[Dimension]) -> Option<u128> {
    let mut stack: Vec<(u128, Option<u64>)> = Vec::new();
    for term in terms {
        let divisor = match *term {
            Term::Number(number) => (number.into(), Some(number)),
            Term::Dimension(at) => {
                let dim = dims.get(at as usize)?;
                let step = if dim.low == dim.high { 0 } else { dim.step };
                (greatest_common(dim.low.into(), step.into()), None)
            }
            step => {
                let ((b, by), (a, _)) = (stack.pop()?, stack.pop()?);
                let divisor = match step {
                    Term::Multiply => a.checked_mul(b).unwrap_or(a),
                    // An exact division; of another one nothing is known.
                    Term::Divide => match by.map(u128::from) {
                        Some(by) if by > 0 && a % by == 0 => a / by,
                        _ => 1,
                    },
                    _ => greatest_common(a, b),
                };
                (divisor, None)
            }
        };
        stack.push(divisor);
    }
    stack.pop().map(|(divisor, _)| divisor)
}

fn greatest_common(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranged::{Amount, NamedDimension};

    /// Beside all values of two dimensions, small and large.
    #[test]
    fn a_multiple_is_one_for_every_value() {
        let texts =
            ["64*h", "4*h*w", "(4*h)*(4*w)//16", "16*((h+1)//2)", "64*h+32*w", "64*min(h,w)", "h*w*h", "96"];
        let (mut yes, mut no) = (0, 0);
        for (low, step) in [(1, 1), (2, 2), (4, 4), (32, 32), (0, 16), (3, 1)] {
            for steps in [0, 3, 100] {
                let values = Dimension { low, high: low + steps * step, step };
                let named = ["h", "w"].map(|name| NamedDimension { name: name.to_owned(), of: None, values });
                for text in texts {
                    let terms = Amount::Text(text.to_owned()).to_terms(&named).unwrap();
                    let all = || (0..=steps).map(|at| low + at * step);
                    let each = all().all(|h| all().all(|w| evaluate(&terms, &[h, w]).unwrap() % 64 == 0));
                    let found = is_multiple(&terms, &[values, values], 64);
                    assert!(each || !found, "{text} from {low} by {step}, {steps} steps");
                    assert!(found || !each || steps > 63, "{text} from {low} by {step}, {steps} steps");
                    if found { yes += 1 } else { no += 1 }
                }
            }
        }
        assert!(yes > 20 && no > 20, "{yes} and {no}");
    }
}
