//! The launch's conditions, as straight-line code: each number is computed once.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::Writer;
use crate::kernel::{Kernel, Parameter, ValueId};
use crate::proof::{Claims, Condition, Number};
use crate::scalar::Scalar;

impl Writer<'_> {
    pub(super) fn proof(&mut self, claims: &Claims) {
        let (kernel, path) = (self.kernel, self.path);
        if kernel.trusted || (claims.bounds.is_empty() && claims.races.is_empty()) {
            self.function("proof", "Proof");
            self.line(&format!("{path}::Proof::PROVEN\n}}"));
            return;
        }
        self.function("proof", "Proof");
        self.claims(claims, "Proof", "Proof::PROVEN", &|index, why| {
            format!("Proof::checked({index}, {why})")
        });
        // What an inspection of a launch needs.
        let d = kernel.dimensions;
        self.line(&format!(
            "const NODES: ::core::option::Option<&'static str> = <Self as {path}::generated::Written<{d}>>::IR;"
        ));
        if !claims.races.is_empty() {
            self.function("bounds", "Bounds");
            if claims.bounds.is_empty() {
                self.line(&format!("{path}::Bounds::Proven\n}}"));
            } else {
                let bounds = Claims { bounds: claims.bounds.clone(), ..Claims::default() };
                self.claims(&bounds, "Bounds", "Bounds::Proven", &|index, why| {
                    format!("Bounds::Checked {{ index: {index}, why: {why} }}")
                });
            }
        }
        if kernel.values.is_empty() {
            return;
        }
        self.line("#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
        self.line(&format!(
            "fn scalars(&self, __values: &{path}::Values<Self::Arguments>, __each: &mut dyn ::core::ops::FnMut(u64)) {{"
        ));
        for parameter in &kernel.parameters {
            let Parameter::Value(id) = parameter else { continue };
            let value = value_of_launch(kernel, *id);
            self.line(&match kernel.value(*id).ty {
                Scalar::F32 | Scalar::F64 | Scalar::F16 | Scalar::Bf16 => {
                    format!("__each({value}.to_bits() as u64);")
                }
                _ => format!("__each({value} as u64);"),
            });
        }
        self.line("}");
    }

    /// The head of a function about a launch.
    fn function(&mut self, name: &str, result: &str) {
        let (d, path) = (self.kernel.dimensions, self.path);
        self.line("#[inline]\n#[allow(warnings, clippy::undocumented_unsafe_blocks)]");
        self.line(&format!(
            "fn {name}(&self, __range: &{path}::NdRange<{d}>, __lengths: &[usize], __values: &{path}::Values<Self::Arguments>) -> {path}::{result} {{"
        ));
    }

    /// The body of a function that evaluates claims and returns `proven`, or the first fault.
    fn claims(
        &mut self,
        claims: &Claims,
        result: &str,
        proven: &str,
        checked: &dyn Fn(String, String) -> String,
    ) {
        let (kernel, path) = (self.kernel, self.path);
        self.line(&format!("if __range.global().items() == 0 {{ return {path}::{proven}; }}"));
        self.line("let (__global, __local, __groups) = (__range.global().sizes(), __range.local().sizes(), __range.groups().sizes());");
        let mut numbers = Numbers::new(kernel);
        let mut faults = Vec::new();
        for (place, race) in claims.races.iter().enumerate() {
            // What one array needs, another may need too.
            if claims.races[..place].iter().any(|other| other.condition == race.condition) {
                continue;
            }
            numbers.begin(faults.len());
            let condition =
                race.condition.as_ref().map_or("false".to_string(), |condition| numbers.condition(condition));
            self.line(&numbers.claim(&condition));
            let (array, write, other) =
                (&kernel.array(race.array).name, kernel.locate(race.write), kernel.locate(race.other));
            let why = race.needs(kernel);
            faults.push(format!("Proof::undecided({array:?}, {write:?}, {other:?}, {why:?})"));
        }
        for bound in &claims.bounds {
            numbers.begin(faults.len());
            let condition = match &bound.conditions {
                Some(conditions) => numbers.all(conditions),
                None => "false".to_string(),
            };
            self.line(&numbers.claim(&condition));
            let (index, why) = (kernel.locate(bound.place), bound.needs(kernel));
            faults.push(checked(format!("{index:?}"), format!("{why:?}")));
        }
        self.line(&format!("return {path}::{proven};"));
        self.line(&format!("#[cold]\nfn __fault(claim: u32) -> {path}::{result} {{\nmatch claim {{"));
        for (claim, fault) in faults.iter().enumerate() {
            let claim = if claim + 1 == faults.len() { "_".to_string() } else { claim.to_string() };
            self.line(&format!("{claim} => {path}::{fault},"));
        }
        self.line("}\n}\n}");
    }
}

/// The numbers of a proof, each a variable `__n0`, `__n1`, ... of generated code. If one does not
/// fit, the claim that needs it first does not hold.
struct Numbers<'k> {
    kernel: &'k Kernel,
    /// Definitions that are not written yet.
    lines: String,
    /// The variable of each definition in scope.
    definitions: BTreeMap<String, usize>,
    /// The variable of each node in scope, by its address: nodes are shared.
    nodes: BTreeMap<*const (Number, Number), usize>,
    variables: usize,
    /// What generated code does if a number does not fit.
    exit: String,
    /// The number of blocks that code leaves in this way.
    blocks: usize,
}

impl<'k> Numbers<'k> {
    fn new(kernel: &'k Kernel) -> Self {
        let (definitions, nodes) = (BTreeMap::new(), BTreeMap::new());
        Self {
            kernel,
            lines: String::new(),
            definitions,
            nodes,
            variables: 0,
            exit: String::new(),
            blocks: 0,
        }
    }

    fn begin(&mut self, claim: usize) {
        self.exit = format!("return __fault({claim})");
    }

    /// Code that returns if the condition does not hold.
    fn claim(&mut self, condition: &str) -> String {
        format!("{}if !{condition} {{ {}; }}", core::mem::take(&mut self.lines), self.exit)
    }

    fn all(&mut self, conditions: &[Condition]) -> String {
        let mut all: Vec<String> = conditions.iter().map(|condition| self.condition(condition)).collect();
        all.retain(|condition| condition != "true");
        if all.is_empty() { "true".to_string() } else { format!("({})", all.join(" && ")) }
    }

    fn condition(&mut self, condition: &Condition) -> String {
        match condition {
            // It fits.
            Condition::AtMost(low, Number::Constant(i64::MAX)) => {
                self.number(low);
                "true".to_string()
            }
            Condition::AtMost(low, high) => {
                format!("(__n{} <= __n{})", self.number(low), self.number(high))
            }
            Condition::Distinct(digits, shift) => {
                let digits: Vec<String> = (digits.iter())
                    .map(|digit| {
                        format!("(__n{}, __n{})", self.number(&digit.weight), self.number(&digit.extent))
                    })
                    .collect();
                format!("__range.distinct([{}], __n{})", digits.join(", "), self.number(shift))
            }
            Condition::Any(lists) => {
                // The numbers of a list that does not hold may not fit.
                let any: Vec<String> = lists.iter().map(|list| self.scope(list)).collect();
                format!("({})", any.join(" || "))
            }
        }
    }

    /// Conditions whose numbers no other condition uses.
    fn scope(&mut self, conditions: &[Condition]) -> String {
        let block = self.blocks;
        self.blocks += 1;
        let exit = core::mem::replace(&mut self.exit, format!("break '__any_{block} false"));
        let scope = (core::mem::take(&mut self.lines), self.definitions.clone(), self.nodes.clone());
        let all = self.all(conditions);
        let text = format!("'__any_{block}: {{\n{}{all} }}", self.lines);
        (self.lines, self.definitions, self.nodes) = scope;
        self.exit = exit;
        text
    }

    /// The variable of a number.
    fn number(&mut self, number: &Number) -> usize {
        match number {
            Number::Constant(value) => self.define(format!("{value}_i64")),
            // A range that an `isize` cannot count is refused when it is made.
            Number::GlobalSize(dimension) => self.define(format!("__global[{dimension}] as i64")),
            Number::LocalSize(dimension) => self.define(format!("__local[{dimension}] as i64")),
            Number::Groups(dimension) => self.define(format!("__groups[{dimension}] as i64")),
            // As for sizes: a length as `usize` always fits an `isize`.
            Number::Len(id) => {
                match self.kernel.argument_of(*id) {
                    (position, 1) => self.define(format!("__lengths[{position}] as i64")),
                    // The elements of one type are no more than bytes.
                    (position, times) => self.define(format!("__lengths[{position}] as i64 * {times}")),
                }
            }
            Number::Value(id) => {
                let (value, ty) = (value_of_launch(self.kernel, *id), self.kernel.value(*id).ty);
                if ty.bits() == 64 && !ty.is_signed() {
                    self.define_fitting(format!("__range.signed({value} as u64)"))
                } else {
                    self.define(format!("{value} as i64"))
                }
            }
            Number::Add(pair) => self.node(pair, "i64::checked_add"),
            Number::Sub(pair) => self.node(pair, "i64::checked_sub"),
            Number::Mul(pair) => self.node(pair, "i64::checked_mul"),
            Number::Div(pair) => self.node(pair, "__range.quotient"),
            Number::Min(pair) => self.extreme(pair, true),
            Number::Max(pair) => self.extreme(pair, false),
        }
    }

    fn node(&mut self, pair: &Arc<(Number, Number)>, function: &str) -> usize {
        self.define_once(pair, |numbers, one, two| {
            numbers.define_fitting(format!("{function}(__n{one}, __n{two})"))
        })
    }

    fn extreme(&mut self, pair: &Arc<(Number, Number)>, is_least: bool) -> usize {
        self.define_once(pair, |numbers, one, two| {
            let sign = if is_least { "<" } else { ">" };
            numbers.define(format!("if __n{two} {sign} __n{one} {{ __n{two} }} else {{ __n{one} }}"))
        })
    }

    fn define_once(
        &mut self,
        pair: &Arc<(Number, Number)>,
        define: impl FnOnce(&mut Self, usize, usize) -> usize,
    ) -> usize {
        if let Some(variable) = self.nodes.get(&Arc::as_ptr(pair)) {
            return *variable;
        }
        let (one, two) = (self.number(&pair.0), self.number(&pair.1));
        let variable = define(self, one, two);
        self.nodes.insert(Arc::as_ptr(pair), variable);
        variable
    }

    fn define(&mut self, value: String) -> usize {
        self.variable(value, |variable, value, _| format!("let __n{variable} = {value};\n"))
    }

    /// A number that may not fit.
    fn define_fitting(&mut self, value: String) -> usize {
        self.variable(value, |variable, value, exit| {
            format!("let ::core::option::Option::Some(__n{variable}) = {value} else {{ {exit} }};\n")
        })
    }

    fn variable(&mut self, value: String, line: impl FnOnce(usize, &str, &str) -> String) -> usize {
        if let Some(variable) = self.definitions.get(&value) {
            return *variable;
        }
        let variable = self.variables;
        self.variables += 1;
        self.lines += &line(variable, &value, &self.exit);
        self.definitions.insert(value, variable);
        variable
    }
}

/// A value among those of a launch.
fn value_of_launch(kernel: &Kernel, id: ValueId) -> String {
    let (first, field) = match kernel.field_of(id) {
        Some((first, field)) => (first, format!(".{field}")),
        None => (id, String::new()),
    };
    let place = kernel.arguments().iter().position(|other| *other == Parameter::Value(first));
    format!("__values.{}{field}", place.unwrap_or(0))
}
