//! Conditions in words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::claim::{Bound, Condition, Digit, Race, Shape};
use super::number::Number;
use crate::kernel::Kernel;

impl Bound {
    /// The condition on a launch for the index to be inside, in the words of the kernel's source.
    #[must_use]
    pub fn needs(&self, kernel: &Kernel) -> String {
        match &self.conditions {
            Some(conditions) => all(conditions, kernel),
            None => "nothing that is known before the launch bounds it".into(),
        }
    }

    /// The conditions that this launch lacks, in the words of the kernel's source.
    #[must_use]
    pub fn lacks(&self, kernel: &Kernel, shape: &Shape<'_>) -> Option<String> {
        let conditions = self.conditions.as_ref()?.iter().filter(|one| !one.holds(shape));
        let lacks: Vec<Condition> = conditions.cloned().collect();
        (!lacks.is_empty()).then(|| all(&lacks, kernel))
    }

    /// The end of the array in the words of the kernel's source, if nothing but the type of its
    /// numbers keeps the index below it: no condition on a launch helps then.
    #[must_use]
    pub fn open_end(&self, kernel: &Kernel, shape: &Shape<'_>) -> Option<String> {
        let open = |one: &Condition| match one {
            Condition::AtMost(high, last) if high.is_far() && !last.is_far() && !one.holds(shape) => {
                Some(number(&last.clone().add(Number::ONE), kernel, 0))
            }
            _ => None,
        };
        self.conditions.iter().flatten().find_map(open)
    }

    /// The least value that the index may have, if it is below 0 for every launch.
    #[must_use]
    pub fn least_below_zero(&self) -> Option<i64> {
        let least = |one: &Condition| match one {
            Condition::AtMost(zero, low) if *zero == Number::ZERO => low.most().filter(|low| *low < 0),
            _ => None,
        };
        self.conditions.iter().flatten().filter_map(least).min()
    }
}

impl Race {
    /// The condition on a launch under which the two accesses do not meet, in the words of the
    /// kernel's source.
    #[must_use]
    pub fn needs(&self, kernel: &Kernel) -> String {
        match &self.condition {
            Some(Condition::Any(lists)) => match &lists[..] {
                [list] => all(list, kernel),
                _ => self.condition.as_ref().map_or_else(String::new, |condition| say(condition, kernel)),
            },
            Some(condition) => say(condition, kernel),
            None => "no condition is known that suffices: only an inspection of the launch can tell".into(),
        }
    }

    /// The shortest condition that this launch lacks, in the words of the kernel's source; the
    /// conditions of one way that it fulfils are left out.
    #[must_use]
    pub fn lacks(&self, kernel: &Kernel, shape: &Shape<'_>) -> Option<String> {
        let lists = match self.condition.as_ref()? {
            Condition::Any(lists) => lists.clone(),
            condition => alloc::vec![alloc::vec![condition.clone()]],
        };
        let texts = lists.iter().map(|list| {
            let mut parts: Vec<String> = Vec::new();
            for one in list.iter().filter(|one| !one.holds(shape)) {
                let part = match one {
                    Condition::Distinct(digits, shift) => find_lacking(digits, shift, kernel, shape),
                    _ => None,
                };
                let part = part.unwrap_or_else(|| say(one, kernel));
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            parts.join(" and ")
        });
        texts.filter(|text| !text.is_empty()).min_by_key(String::len)
    }
}

/// The first weight of an index, in ascending order, that does not exceed what is below it.
fn find_lacking(digits: &[Digit], shift: &Number, kernel: &Kernel, shape: &Shape<'_>) -> Option<String> {
    let mut weights: Vec<(i64, &Digit)> = Vec::new();
    for digit in digits {
        if digit.extent.of(shape)? > 1 {
            weights.push((digit.weight.of(shape)?, digit));
        }
    }
    weights.sort_by_key(|(weight, _)| weight.unsigned_abs());
    let mut below = shift.clone();
    for (weight, digit) in weights {
        if weight.checked_abs()? <= below.of(shape)? {
            let (low, high) = (number(&below, kernel, 0), number(&digit.weight, kernel, 0));
            return Some(format!("{low} < {high}"));
        }
        below = below.add(digit.weight.clone().mul(digit.extent.clone().sub(Number::ONE)));
    }
    None
}

fn all(conditions: &[Condition], kernel: &Kernel) -> String {
    let mut parts = Vec::new();
    for condition in conditions {
        let part = say(condition, kernel);
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(" and ")
}

fn say(condition: &Condition, kernel: &Kernel) -> String {
    match condition {
        Condition::AtMost(low, high) => {
            let (low, high) = balance(low, high);
            format!("{} <= {}", number(&low, kernel, 0), number(&high, kernel, 0))
        }
        Condition::Distinct(digits, _) => {
            let weights = digits.iter().map(|digit| format!("`{}`", number(&digit.weight, kernel, 0)));
            let weights = weights.collect::<Vec<_>>().join(", ");
            format!("items that have different indices (weights {weights})")
        }
        Condition::Any(lists) => {
            let lists = lists.iter().map(|list| format!("({})", all(list, kernel)));
            lists.collect::<Vec<_>>().join(" or ")
        }
    }
}

/// Removes a constant that both sides add or subtract.
fn balance(low: &Number, high: &Number) -> (Number, Number) {
    let (one, two) = (addend(low), addend(high));
    match (one, two) {
        (Some(one), Some(two)) => {
            let both = if one < 0 { one.max(two) } else { one.min(two) };
            if (one < 0) == (two < 0) {
                return (low.clone().sub(Number::Constant(both)), high.clone().sub(Number::Constant(both)));
            }
            (low.clone(), high.clone())
        }
        _ => (low.clone(), high.clone()),
    }
}

fn addend(sum: &Number) -> Option<i64> {
    match sum {
        Number::Constant(value) => Some(*value),
        Number::Add(pair) => pair.1.constant(),
        _ => None,
    }
}

/// A sum in a product, or on the right of a minus, in parentheses.
fn number(value: &Number, kernel: &Kernel, binds: u8) -> String {
    let infix = |sign: &str, pair: &(Number, Number), own: u8| {
        let text = format!("{} {sign} {}", number(&pair.0, kernel, own), number(&pair.1, kernel, own + 1));
        if own < binds { format!("({text})") } else { text }
    };
    let call = |name: &str, pair: &(Number, Number)| {
        format!("{name}({}, {})", number(&pair.0, kernel, 0), number(&pair.1, kernel, 0))
    };
    match value {
        Number::Constant(value) => value.to_string(),
        Number::GlobalSize(dimension) => format!("global_size({dimension})"),
        Number::LocalSize(dimension) => format!("local_size({dimension})"),
        Number::Groups(dimension) => format!("groups({dimension})"),
        Number::Len(array) => format!("{}.len()", kernel.array(*array).name),
        Number::Value(value) => kernel.value(*value).name.clone(),
        Number::Add(pair) => match pair.1.constant() {
            Some(less @ ..=-1) => infix("-", &(pair.0.clone(), Number::Constant(less.saturating_neg())), 0),
            _ => infix("+", pair, 0),
        },
        Number::Sub(pair) => infix("-", pair, 0),
        Number::Mul(pair) => infix("*", pair, 1),
        Number::Div(pair) => infix("/", pair, 1),
        Number::Min(pair) => call("min", pair),
        // An unsigned value is never below zero.
        Number::Max(pair) if pair.1 == Number::ZERO => number(&pair.0, kernel, binds),
        Number::Max(pair) => call("max", pair),
    }
}
