//! Conditions in words.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::claim::{Bound, Condition};
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
            let (low, high) = balanced(low, high);
            format!("{} <= {}", number(&low, kernel, 0), number(&high, kernel, 0))
        }
        Condition::Distinct(..) => "items that have different indices".into(),
        Condition::Any(lists) => {
            let lists = lists.iter().map(|list| format!("({})", all(list, kernel)));
            lists.collect::<Vec<_>>().join(" or ")
        }
    }
}

/// Removes a constant that both sides add or subtract.
fn balanced(low: &Number, high: &Number) -> (Number, Number) {
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
