//! Fits expressions to numbers that depend on dimensions, so that they are right for all values
//! read.

use crate::ranged::NamedDimension;

/// Number of divisors that are tried.
const DIVISORS: i128 = 256;

/// The values of every dimension at each point. The first point is the base; the next ones differ
/// from it in one dimension.
pub(super) struct Points<'a> {
    pub(super) dims: &'a [NamedDimension],
    pub(super) values: Vec<Vec<u64>>,
}

impl Points<'_> {
    /// An expression with these numbers at the points, or `None`.
    pub(super) fn fit(&self, numbers: &[u64]) -> Option<String> {
        let base = *numbers.first()?;
        if numbers.iter().all(|&number| number == base) {
            return Some(base.to_string());
        }
        let alone: Vec<Option<String>> =
            (0..self.dims.len()).map(|dim| self.fit_one_dimension(dim, numbers)).collect();
        let alone: Vec<String> = alone.into_iter().collect::<Option<_>>()?;
        let varies: Vec<&String> = alone.iter().filter(|text| **text != base.to_string()).collect();
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
        candidates.into_iter().find(|text| self.is_right(text, numbers))
    }

    /// Whether an expression has these numbers at the points.
    pub(super) fn is_right(&self, text: &str, numbers: &[u64]) -> bool {
        let amount = crate::ranged::Amount::Text(text.to_owned());
        let Ok(terms) = amount.to_terms(self.dims) else { return false };
        let mut points = self.values.iter().zip(numbers);
        points.all(|(values, number)| usm_pool::range::evaluate(&terms, values) == Ok(*number))
    }

    /// An expression of one dimension, with the others at the base.
    fn fit_one_dimension(&self, dim: usize, numbers: &[u64]) -> Option<String> {
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
        fit_points(&self.dims[dim].name, &points)
    }
}

/// An expression of one dimension through all points, in ascending order.
fn fit_points(name: &str, points: &[(i128, i128)]) -> Option<String> {
    let (&(_, first), &(_, last)) = (points.first()?, points.last()?);
    if points.iter().all(|&(_, number)| number == first) {
        return Some(first.to_string());
    }
    if last < first {
        return square(name, points);
    }
    // Repeated operators give multiples: m times a quotient plus a remainder.
    let multiple = points.iter().map(|&(_, number)| number - first).fold(0, greatest_divisor);
    let linear = |multiple: i128, rest: i128| {
        let points: Vec<(i128, i128)> =
            points.iter().map(|&(value, number)| (value, (number - rest) / multiple)).collect();
        let text = quotient(name, &points)?;
        Some(match (multiple, rest) {
            (1, 0) => text,
            (multiple, 0) => format!("{multiple}*({text})"),
            (1, rest) => format!("{text}+{rest}"),
            (multiple, rest) => format!("{multiple}*({text})+{rest}"),
        })
    };
    linear(1, 0)
        .or_else(|| if multiple > 1 { linear(multiple, first.rem_euclid(multiple)) } else { None })
        .or_else(|| square(name, points))
}

/// `(p*name + r) // q`: the form of extents that are cut, strided, padded and repeated.
fn quotient(name: &str, points: &[(i128, i128)]) -> Option<String> {
    let (&(low, first), &(high, last)) = (points.first()?, points.last()?);
    let (rise, run) = (last - first, high - low);
    for q in 1..=DIVISORS {
        let nearest = rise.checked_mul(q)? / run.max(1);
        for p in [nearest, nearest + 1] {
            // q * number <= p * value + r < q * (number + 1), at each point.
            let floor = points.iter().map(|&(value, number)| q * number - p * value).max()?;
            let ceiling = points.iter().map(|&(value, number)| q * (number + 1) - 1 - p * value).min()?;
            if p > 0 && floor <= ceiling {
                return Some(linear_text(name, p, 0.clamp(floor, ceiling), q));
            }
        }
    }
    None
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
    let d = (y - x) * (z - x) * (z - y);
    let slope = (fy - fx) * (z - x) * (z - y);
    let bend = (fz - fy) * (y - x) - (fy - fx) * (z - y);
    let (a, b, c) = (bend, slope - bend * (x + y), fx * d - slope * x + bend * x * y);
    let common = [a, b, c, d].into_iter().fold(0, greatest_divisor);
    let (a, b, c, d) = (a / common, b / common, c / common, d / common);
    let through = |&(v, f): &(i128, i128)| a * v * v + b * v + c == d * f;
    if !points.iter().all(through) {
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
        let text = points.fit(&numbers).unwrap_or_default();
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
            assert!(points.fit(&numbers).is_some_and(|text| points.is_right(&text, &numbers)));
        }
        assert_eq!(points.fit(&numbers(&|n, w| n.pow(3) ^ w)), None);
    }
}
