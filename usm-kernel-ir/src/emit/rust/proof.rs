//! The launch's conditions, as straight-line code.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::Writer;
use crate::kernel::Parameter;
use crate::proof::{Claims, Condition, Number};

impl Writer<'_> {
    pub(super) fn proof(&mut self, claims: &Claims) {
        let (kernel, path) = (self.kernel, self.path);
        let d = kernel.dimensions;
        self.line("#[inline]\n#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
        self.line(&format!(
            "fn proof(&self, __range: &{path}::NdRange<{d}>, __lengths: &[usize], __values: &{path}::Values<Self::Arguments>) -> {path}::Proof {{"
        ));
        if kernel.trusted || (claims.bounds.is_empty() && claims.races.is_empty()) {
            self.line(&format!("{path}::Proof::Proven\n}}"));
            return;
        }
        self.line(&format!("if __range.global().items() == 0 {{ return {path}::Proof::Proven; }}"));
        self.line("let (__global, __local, __groups) = (__range.global().sizes(), __range.local().sizes(), __range.groups().sizes());");
        for race in &claims.races {
            let condition =
                race.condition.as_ref().map_or("false".to_string(), |condition| self.condition(condition));
            let (array, write, other) =
                (&kernel.array(race.array).name, kernel.locate(race.write), kernel.locate(race.other));
            self.line(&format!(
                "if !{condition} {{ return {path}::Proof::Race {{ array: {array:?}, write: {write:?}, other: {other:?} }}; }}"
            ));
        }
        for bound in &claims.bounds {
            let conditions = match &bound.conditions {
                Some(conditions) => {
                    let all: Vec<String> =
                        conditions.iter().map(|condition| self.condition(condition)).collect();
                    if all.is_empty() { "true".to_string() } else { all.join(" && ") }
                }
                None => "false".to_string(),
            };
            let (index, why) = (kernel.locate(bound.place), bound.needs(kernel));
            self.line(&format!(
                "if !({conditions}) {{ return {path}::Proof::Unproven {{ index: {index:?}, why: {why:?} }}; }}"
            ));
        }
        self.line(&format!("{path}::Proof::Proven\n}}"));
    }

    pub(super) fn condition(&self, condition: &Condition) -> String {
        let inner = match condition {
            Condition::AtMost(low, high) => format!("{} <= {}", self.number(low), self.number(high)),
            Condition::Distinct(digits, shift) => {
                let digits = digits
                    .iter()
                    .map(|digit| format!("({}, {})", self.number(&digit.weight), self.number(&digit.extent)))
                    .collect::<Vec<_>>();
                format!("__range.distinct(&mut [{}], {})", digits.join(", "), self.number(shift))
            }
            Condition::Any(lists) => {
                let lists = lists.iter().map(|list| {
                    let all: Vec<String> = list.iter().map(|one| self.condition(one)).collect();
                    if all.is_empty() { "true".to_string() } else { format!("({})", all.join(" && ")) }
                });
                return format!("({})", lists.collect::<Vec<_>>().join(" || "));
            }
        };
        format!(
            "(|| -> ::core::option::Option<bool> {{ ::core::option::Option::Some({inner}) }})().unwrap_or(false)"
        )
    }

    /// A number as an `i64`, in a function that returns nothing if it does not fit.
    pub(super) fn number(&self, number: &Number) -> String {
        let two = |pair: &(Number, Number)| (self.number(&pair.0), self.number(&pair.1));
        let checked = |name: &str, pair: &(Number, Number)| {
            let (one, two) = two(pair);
            format!("i64::checked_{name}({one}, {two})?")
        };
        match number {
            Number::Constant(value) => format!("({value}_i64)"),
            // A range that an `isize` cannot count is refused when it is made.
            Number::GlobalSize(dimension) => format!("(__global[{dimension}] as i64)"),
            Number::LocalSize(dimension) => format!("(__local[{dimension}] as i64)"),
            Number::Groups(dimension) => format!("(__groups[{dimension}] as i64)"),
            Number::Len(id) => format!("(__lengths[{}] as i64)", self.position(*id)),
            Number::Value(id) => {
                let place =
                    self.kernel.parameters.iter().position(|parameter| *parameter == Parameter::Value(*id));
                let (place, ty) = (place.unwrap_or(0), self.kernel.value(*id).ty);
                // As for sizes: a length as `usize` always fits an `isize`.
                if ty.bits() == 64 && !ty.is_signed() {
                    format!("__range.signed(__values.{place} as u64)?")
                } else {
                    format!("(__values.{place} as i64)")
                }
            }
            Number::Add(pair) => checked("add", pair),
            Number::Sub(pair) => checked("sub", pair),
            Number::Mul(pair) => checked("mul", pair),
            Number::Div(pair) => {
                let (one, two) = two(pair);
                format!("__range.quotient({one}, {two})?")
            }
            Number::Min(pair) => {
                let (one, two) = two(pair);
                super::extreme(true, "i64", &one, &two)
            }
            Number::Max(pair) => {
                let (one, two) = two(pair);
                super::extreme(false, "i64", &one, &two)
            }
        }
    }
}
