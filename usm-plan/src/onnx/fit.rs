//! Fits expressions to numbers that depend on dimensions, so that they are right for all values
//! read.

use usm_pool::range::Dimension;

use crate::ranged::NamedDimension;

/// Number of divisors that are tried.
const DIVISORS: i128 = 256;

/// The values of every dimension at each point. The first point is the base; the next ones differ
/// from it in one dimension.
pub(super) struct Points<'a> {
    pub(super) dims: &'a [NamedDimension],
    pub(super) values: Vec<Vec<u64>>,
}

/// An expression with given numbers at all points.
pub(super) struct Fit {
    pub(super) text: String,
    /// Values of dimensions, by index, at which an expression of the same form has the same numbers
    /// at all points and another one here: the number here says which is right.
    pub(super) doubts: Vec<(usize, u64)>,
}

impl Points<'_> {
    /// An expression with these numbers at the points, or `None`.
    pub(super) fn fit(&self, numbers: &[u64]) -> Option<Fit> {
        let base = *numbers.first()?;
        if numbers.iter().all(|&number| number == base) {
            return Some(Fit { text: base.to_string(), doubts: Vec::new() });
        }
        let single_fits = (0..self.dims.len()).map(|dim| self.fit_one_dimension(dim, numbers));
        let single_fits: Vec<(String, Vec<u64>)> = single_fits.collect::<Option<_>>()?;
        let doubts = single_fits.iter().enumerate();
        let doubts = doubts.flat_map(|(dim, (_, values))| values.iter().map(move |&value| (dim, value)));
        let doubts = doubts.collect();
        let texts: Vec<String> = single_fits.into_iter().map(|(text, _)| text).collect();
        let varies: Vec<&String> = texts.iter().filter(|text| **text != base.to_string()).collect();
        let candidates = match varies[..] {
            [] => return None,
            [one] => vec![one.clone()],
            _ => {
                let base = u128::from(base);
                let others = varies.len() as u32 - 1;
                let product = varies.iter().map(|text| format!("({text})")).collect::<Vec<_>>().join("*");
                let product = match base.checked_pow(others)? {
                    0 | 1 => product,
                    divisor => format!("({product})//{divisor}"),
                };
                let sum = varies.iter().map(|text| format!("({text})")).collect::<Vec<_>>().join("+");
                vec![product, format!("{sum}-{}", base * u128::from(others))]
            }
        };
        let text = candidates.into_iter().find(|text| self.is_right(text, numbers))?;
        Some(Fit { text, doubts })
    }

    /// Whether an expression has these numbers at the points.
    pub(super) fn is_right(&self, text: &str, numbers: &[u64]) -> bool {
        let amount = crate::ranged::Amount::Text(text.to_owned());
        let Ok(terms) = amount.to_terms(self.dims) else { return false };
        let mut points = self.values.iter().zip(numbers);
        points.all(|(values, number)| usm_pool::range::evaluate(&terms, values) == Ok(*number))
    }

    /// An expression of one dimension, with the others at the base, and values in doubt.
    fn fit_one_dimension(&self, dim: usize, numbers: &[u64]) -> Option<(String, Vec<u64>)> {
        let base = self.values.first()?;
        let others =
            |values: &[u64]| (0..base.len()).all(|other| other == dim || values[other] == base[other]);
        let mut points: Vec<(i128, i128)> = self
            .values
            .iter()
            .zip(numbers)
            .filter(|(values, _)| others(values))
            .map(|(values, &number)| (i128::from(values[dim]), i128::from(number)))
            .collect();
        points.sort_unstable();
        points.dedup();
        fit_points(&self.dims[dim], &points)
    }
}

/// An expression of one dimension through all points, in ascending order, and values in doubt.
fn fit_points(dim: &NamedDimension, points: &[(i128, i128)]) -> Option<(String, Vec<u64>)> {
    let (&(_, first), &(_, last)) = (points.first()?, points.last()?);
    if points.iter().all(|&(_, number)| number == first) {
        return Some((first.to_string(), Vec::new()));
    }
    let square = || Some((square(&dim.name, points)?, Vec::new()));
    if last < first {
        return square();
    }
    // Repeated operators give multiples: m times a quotient plus a remainder.
    let multiple = points.iter().map(|&(_, number)| number - first).fold(0, greatest_divisor);
    let linear = |multiple: i128, rest: i128| {
        let points: Vec<(i128, i128)> =
            points.iter().map(|&(value, number)| (value, (number - rest) / multiple)).collect();
        let (text, doubts) = quotient(dim, &points)?;
        let text = match (multiple, rest) {
            (1, 0) => text,
            (multiple, 0) => format!("{multiple}*({text})"),
            (1, rest) => format!("{text}+{rest}"),
            (multiple, rest) => format!("{multiple}*({text})+{rest}"),
        };
        Some((text, doubts))
    };
    linear(1, 0)
        .or_else(|| if multiple > 1 { linear(multiple, first.rem_euclid(multiple)) } else { None })
        .or_else(square)
}

/// `(p*name + r) // q`: the form of extents that are cut, strided, padded and repeated.
fn quotient(dim: &NamedDimension, points: &[(i128, i128)]) -> Option<(String, Vec<u64>)> {
    let (&(low, first), &(high, last)) = (points.first()?, points.last()?);
    let (rise, run) = (last - first, high - low);
    let mut solution: Option<(i128, i128, i128)> = None;
    let mut doubts = Vec::new();
    for q in 1..=DIVISORS {
        let nearest = rise.checked_mul(q)? / run.max(1);
        for p in [nearest, nearest + 1].into_iter().filter(|&p| p > 0) {
            // q * number <= p * value + r < q * (number + 1), at each point.
            let floors =
                points.iter().map(|&(value, number)| (q * number).checked_sub(p.checked_mul(value)?));
            let floors: Vec<i128> = floors.collect::<Option<_>>()?;
            let floor = floors.iter().copied().max()?;
            let ceiling = floors.iter().copied().min()? + q - 1;
            if floor > ceiling {
                continue;
            }
            let r = 0.clamp(floor, ceiling);
            match solution {
                None => {
                    solution = Some((p, q, r));
                    doubts.extend(in_doubt(dim.values, p, q, floor, ceiling));
                }
                // Of the same slope, it differs where the first one is in doubt.
                Some((first_p, first_q, _)) if first_p * q == p * first_q => {}
                Some(first) => doubts.extend(difference(dim.values, first, (p, q, r))),
            }
        }
    }
    let (p, q, r) = solution?;
    Some((linear_text(&dim.name, p, r, q), doubts))
}

/// A value at which two quotients differ. Looks at both ends and at values between.
fn difference(values: Dimension, one: (i128, i128, i128), other: (i128, i128, i128)) -> Option<u64> {
    const NEAR: u64 = 512;
    let steps = (values.high - values.low) / values.step;
    let wide_steps = (0..=NEAR).map(|k| (u128::from(steps) * u128::from(k) / u128::from(NEAR)) as u64);
    let end_steps = (0..=NEAR.min(steps)).flat_map(|k| [steps - k, k]);
    let at = |(p, q, r): (i128, i128, i128), value: u64| {
        Some(p.checked_mul(i128::from(value))?.checked_add(r)?.div_euclid(q))
    };
    end_steps
        .chain(wide_steps)
        .map(|step| values.low + step * values.step)
        .find(|&value| at(one, value) != at(other, value))
}

/// A value at which `(p*value + r) // q` differs between the least and the greatest `r`, and parts
/// the numbers between them in two halves, as far as the values allow.
fn in_doubt(values: Dimension, p: i128, q: i128, floor: i128, ceiling: i128) -> Option<u64> {
    let middle = floor + (ceiling - floor + 1) / 2;
    let steps = (values.high - values.low) / values.step;
    // The remainders repeat after q steps.
    let nearby = (0..=steps.min(q as u64)).map(|step| values.low + step * values.step);
    let candidates = nearby.filter_map(|value| {
        let product = p.checked_mul(i128::from(value))?;
        // The least r of the greater number.
        let from = (product + ceiling).div_euclid(q) * q - product;
        (from > floor).then_some(((from - middle).abs(), value))
    });
    candidates.min().map(|(_, value)| value)
}

fn linear_text(name: &str, p: i128, r: i128, q: i128) -> String {
    let product = if p == 1 { name.to_owned() } else { format!("{p}*{name}") };
    let sum = match r {
        0 => product,
        1.. => format!("{product}+{r}"),
        _ => format!("{product}-{}", -r),
    };
    match (q, r) {
        (1, _) => sum,
        (_, 0) => format!("{sum}//{q}"),
        _ => format!("({sum})//{q}"),
    }
}

/// `(a*name*name + b*name + c) // d` through three points, if it passes through all.
fn square(name: &str, points: &[(i128, i128)]) -> Option<String> {
    let (&(x, fx), &(z, fz)) = (points.first()?, points.last()?);
    let &(y, fy) = points.get(points.len() / 2).filter(|&&(y, _)| y != x && y != z)?;
    // Newton's divided differences, all over the same denominator.
    let times =
        |factors: &[i128]| factors.iter().try_fold(1_i128, |product, &next| product.checked_mul(next));
    let d = times(&[y - x, z - x, z - y])?;
    let slope = times(&[fy - fx, z - x, z - y])?;
    let bend = times(&[fz - fy, y - x])?.checked_sub(times(&[fy - fx, z - y])?)?;
    let b = slope.checked_sub(times(&[bend, x + y])?)?;
    let c = times(&[fx, d])?.checked_sub(times(&[slope, x])?)?.checked_add(times(&[bend, x, y])?)?;
    let a = bend;
    let common = [a, b, c, d].into_iter().fold(0, greatest_divisor);
    let (a, b, c, d) = (a / common, b / common, c / common, d / common);
    let through = |&(v, f): &(i128, i128)| {
        let sum = times(&[a, v, v])?.checked_add(times(&[b, v])?)?.checked_add(c)?;
        Some(sum == times(&[d, f])?)
    };
    if !points.iter().all(|point| through(point) == Some(true)) {
        return None;
    }
    let terms = [(a, format!("*{name}*{name}")), (b, format!("*{name}")), (c, String::new())];
    // Subtractions come last, because no intermediate value may be negative.
    let sign = |want: bool| terms.iter().filter(move |(factor, _)| *factor != 0 && (*factor > 0) == want);
    let plus: Vec<String> = sign(true).map(|(factor, rest)| format!("{factor}{rest}")).collect();
    let minus: String = sign(false).map(|(factor, rest)| format!("-{}{rest}", -factor)).collect();
    Some(format!("({}{minus})//{d}", plus.join("+")))
}

fn greatest_divisor(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.abs(), b.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use usm_pool::range::Dimension;

    fn dims(names: &[&str]) -> Vec<NamedDimension> {
        let values = Dimension { low: 1, high: 4096, step: 1 };
        names.iter().map(|name| NamedDimension { name: (*name).to_owned(), of: None, values }).collect()
    }

    /// The expression, if it is right at all points.
    fn expression_of(function: impl Fn(u64) -> u64) -> String {
        let dims = dims(&["w"]);
        let points = Points { dims: &dims, values: (16..80).map(|w| vec![w]).collect() };
        let numbers: Vec<u64> = (16..80).map(function).collect();
        let text = points.fit(&numbers).map(|fit| fit.text).unwrap_or_default();
        assert!(points.is_right(&text, &numbers), "{text}");
        text
    }

    #[test]
    fn extents_of_operators_are_found() {
        assert_eq!(expression_of(|_| 7), "7");
        assert_eq!(expression_of(|w| w), "w");
        assert_eq!(expression_of(|w| 3 * w + 4), "3*w+4");
        assert_eq!(expression_of(|w| w - 9), "w-9");
        assert_eq!(expression_of(|w| w.div_ceil(8)), "(w+7)//8");
        assert_eq!(expression_of(|w| 2 * (w / 4)), "2*(w//4)");
        assert_eq!(expression_of(|w| 5 * ((w - 2) / 3) + 3), "5*((w-2)//3)+3");
        assert_eq!(expression_of(|w| w * w), "(1*w*w)//1");
        assert_eq!(expression_of(|w| w * (w - 1) / 2), "(1*w*w-1*w)//2");
    }

    #[test]
    fn two_dimensions_multiply_or_add() {
        let dims = dims(&["n", "w"]);
        let mut values = vec![vec![2, 64]];
        values.extend((1..9).map(|n| vec![n, 64]));
        values.extend((32..90).map(|w| vec![2, w]));
        values.extend((1..9).map(|n| vec![n, 40 + 7 * n]));
        let points = Points { dims: &dims, values };
        let numbers = |of: &dyn Fn(u64, u64) -> u64| -> Vec<u64> {
            points.values.iter().map(|at| of(at[0], at[1])).collect()
        };
        for of in
            [&(|n: u64, w: u64| 3 * n * (w / 8)) as &dyn Fn(u64, u64) -> u64, &|n, w| n + w + 5, &|n, _| n]
        {
            let numbers = numbers(of);
            assert!(points.fit(&numbers).is_some_and(|fit| points.is_right(&fit.text, &numbers)));
        }
        assert!(points.fit(&numbers(&|n, w| n.pow(3) ^ w)).is_none());
    }

    /// Numbers at far points leave a remainder open until the values in doubt are looked at.
    #[test]
    fn values_in_doubt_lead_to_the_right_expression() {
        let function = |p: u64, r: u64, q: u64| move |w: u64| (p * w + r) / q;
        for (step, low, p, r, q) in
            [(1, 64, 1, 1, 2), (1, 0, 1, 159, 160), (1, 512, 3, 5, 7), (4, 64, 1, 7, 8), (32, 320, 1, 31, 64)]
        {
            let values = Dimension { low, high: low + 63 * 64 * step, step };
            let dims = [NamedDimension { name: "w".to_owned(), of: None, values }];
            let (of, mut read): (_, Vec<u64>) =
                (function(p, r, q), (0..64).rev().map(|k| low + k * 64 * step).collect());
            for round in 0.. {
                let points = Points { dims: &dims, values: read.iter().map(|&w| vec![w]).collect() };
                let fit = points.fit(&read.iter().map(|&w| of(w)).collect::<Vec<_>>()).unwrap();
                if fit.doubts.is_empty() {
                    let every: Vec<u64> = (0..=63 * 64).map(|k| low + k * step).collect();
                    let points = Points { dims: &dims, values: every.iter().map(|&w| vec![w]).collect() };
                    assert!(
                        points.is_right(&fit.text, &every.iter().map(|&w| of(w)).collect::<Vec<_>>()),
                        "{} for ({p}*w+{r})//{q}, {values}",
                        fit.text
                    );
                    break;
                }
                for (_, doubt) in fit.doubts {
                    assert!(values.contains(doubt) && round < 12, "{doubt}");
                    read.push(doubt);
                }
            }
        }
    }

    #[test]
    fn numbers_of_any_size_are_survived() {
        for (low, high) in [(1 << 30, (1 << 31) - 1), (1 << 61, (1 << 61) + 9), (0, u64::MAX)] {
            let values = Dimension { low, high, step: 1 };
            let dims = [NamedDimension { name: "w".to_owned(), of: None, values }];
            let at = [low, low + (high - low) / 3, low + (high - low) / 3 * 2, high];
            let points = Points { dims: &dims, values: at.iter().map(|&w| vec![w]).collect() };
            for of in [|w: u64| w.saturating_mul(w), |w: u64| u64::MAX - w, |w: u64| w ^ 0x5555, |w: u64| w] {
                let numbers = at.map(of);
                if let Some(fit) = points.fit(&numbers) {
                    assert!(
                        points.is_right(&fit.text, &numbers) || fit.text.starts_with('('),
                        "{}",
                        fit.text
                    );
                }
            }
        }
    }
}
