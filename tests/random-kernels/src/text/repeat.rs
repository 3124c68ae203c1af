//! Random loops. Many end, and some only because their counter wraps.

use usm_kernel_ir::Scalar;

use super::expression::cast;
use super::statement::Place;
use super::{Variable, Writer};

impl Writer {
    /// A loop over a range.
    pub(super) fn count(&mut self, outer: Place) -> String {
        let uniform = outer.uniform && self.random.percent(60);
        let ty = self.scalar();
        let (start, end) = if uniform {
            ("0".to_owned(), self.uniform_end(ty))
        } else {
            (self.expr(ty, 1), self.expr(ty, 1))
        };
        let range = self.range(&start, &end, |writer| writer.step(ty, uniform));
        let (name, body) = self.body(outer, ty, false, uniform);
        format!("for {name} in {range} {{\n{body}}}\n")
    }

    /// A range, mostly in steps, and sometimes with its end or backwards.
    fn range(&mut self, start: &str, end: &str, step: impl FnOnce(&mut Self) -> String) -> String {
        let dots = self.word(&["..", "..", "..", "..="]);
        let range = format!("({start}{dots}{end})");
        match self.random.below(10) {
            0..=4 => format!("{range}.step_by({})", step(self)),
            5 => format!("{range}.rev().step_by({})", step(self)),
            6 => format!("{range}.step_by({}).rev()", step(self)),
            7 => format!("{range}.rev()"),
            _ => format!("{start}{dots}{end}"),
        }
    }

    /// A loop with a condition, and code that changes its counter, at its end or start.
    pub(super) fn repeat(&mut self, outer: Place) -> String {
        let uniform = outer.uniform && self.random.percent(60);
        let ty = self.scalar();
        let (start, end) = if uniform {
            (self.literal(ty), self.uniform_end(ty))
        } else {
            (self.expr(ty, 1), self.expr(ty, 1))
        };
        let step = self.step(ty, uniform);
        let mutable = !uniform && self.random.percent(20);
        let (name, body) = self.body(outer, ty, mutable, uniform);
        let next = self.next(&name, &step, uniform);
        let body = if self.random.percent(80) { body + &next } else { next + &body };
        let comparison = self.word(&["<", "<", "<", "<=", "!=", ">"]);
        // Local memory in the condition: items read it again in each round.
        let more = if uniform && self.grouped && self.random.percent(15) { " && l[0] < 5" } else { "" };
        format!("let mut {name}: {ty} = {start};\nwhile {name} {comparison} {end}{more} {{\n{body}}}\n")
    }

    /// A loop in which each item writes every so many elements, from its own number on.
    pub(super) fn stride(&mut self) -> String {
        let (ty, name) = (self.scalar(), self.name());
        let (start, end) = (cast(&self.linear(), Scalar::U64, ty), self.uniform_end(ty));
        let step =
            if self.random.percent(30) { format!("(global_size(0) as {ty})") } else { self.step(ty, true) };
        let output = self.output();
        let range = self.range(&start, &end, |_| step);
        format!("for {name} in {range} {{\n{output}[{name} as u64] = 1;\n}}\n")
    }

    /// The name of a counter, and the loop's body, which knows it.
    fn body(&mut self, outer: Place, ty: Scalar, mutable: bool, uniform: bool) -> (String, String) {
        let name = self.name();
        self.variables.push(Variable { name: name.clone(), ty, mutable, uniform });
        let body = self.block(Place { in_loop: true, ..outer.inside(uniform) });
        self.variables.pop();
        (name, body)
    }

    /// An end that all items have in common.
    fn uniform_end(&mut self, ty: Scalar) -> String {
        match self.random.below(3) {
            0 => format!("(n as {ty})"),
            1 => format!("(m as {ty})"),
            _ => self.literal(ty),
        }
    }

    /// A step of the counter; all items have it in common if `uniform`.
    fn step(&mut self, ty: Scalar, uniform: bool) -> String {
        match self.random.below(if uniform { 3 } else { 5 }) {
            0 => format!("((n as {ty}) * {} + 1)", self.literal(ty)),
            1 if self.grouped => format!("(local_size(0) as {ty})"),
            3 => format!("(global_size(0) as {ty})"),
            4 => self.expr(ty, 1),
            _ => self.literal(ty),
        }
    }

    /// Code that changes a loop's counter.
    fn next(&mut self, name: &str, step: &str, uniform: bool) -> String {
        match self.random.below(10) {
            0 => format!("{name} /= 2;\n"),
            1 => format!("for _round in 0..3_u32 {{ {name} += {step}; }}\n"),
            2 if !uniform => {
                let condition = self.condition(1);
                format!("if {condition} {{ {name} += {step}; }} else {{ {name} += 1; }}\n")
            }
            _ => format!("{name} += {step};\n"),
        }
    }
}
