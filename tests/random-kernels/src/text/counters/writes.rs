//! Loops that write, under guards whose numbers wrap.

use usm_kernel_ir::Scalar;

use super::{Counter, Maker};
use crate::text::expression::cast;

impl Maker {
    /// A guard of a write, whose numbers often wrap.
    fn guard(&mut self, counter: &Counter) -> String {
        let ty = if self.random.percent(60) { Scalar::U64 } else { self.ty() };
        let number = match self.random.below(6) {
            0 => self.literal(ty),
            1 => self.scalar(ty),
            _ => format!("({} - {})", self.scalar(ty), self.random.below(20)),
        };
        let left = match self.random.below(6) {
            0 => cast("g", Scalar::U64, ty),
            1 => format!("({} + {})", cast("g", Scalar::U64, ty), cast(&counter.name, counter.ty, ty)),
            _ => cast(&counter.name, counter.ty, ty),
        };
        format!("{left} {} {number}", self.word(&["<", "<", "<", "<=", ">=", "=="]))
    }

    fn element(&mut self, counter: &Counter) -> String {
        let inner = cast(&counter.name, counter.ty, Scalar::U64);
        let weight = *self.random.pick(&[1_u64, 2, 3, 4, 4, 8, 1 << 31, 1 << 60, 1 << 62]);
        match self.random.below(8) {
            0..=3 => format!("g * {weight} + {inner}"),
            4 => format!("{inner} * {weight} + g"),
            5 => inner,
            6 => format!("g * {weight}"),
            _ => format!("g * (n as u64 - {}) + {inner}", self.random.below(12)),
        }
    }

    /// A kernel that writes in a loop, under guards.
    pub(super) fn writes(&mut self) -> String {
        let ty = if self.random.percent(60) { Scalar::U64 } else { self.ty() };
        let counter = Counter { name: self.name(), ty, start: "0".into(), at: Some(0) };
        self.counters.push(counter.clone());
        let mut text = String::new();
        for _ in 0..self.random.from(1, 2) {
            let (array, index) = (self.word(&["o", "o", "r"]), self.element(&counter));
            let access = if self.random.percent(80) {
                format!("{array}[{index}] = 1;\n")
            } else {
                format!("let _read = {array}[{index}];\n")
            };
            text += &match self.random.below(6) {
                0 => access,
                1 => format!("if g % 4 == 0 {{ {access} }}\n"),
                2 => {
                    let (one, two) = (self.guard(&counter), self.guard(&counter));
                    format!("if {one} && {two} {{ {access} }}\n")
                }
                _ => format!("if {} {{ {access} }}\n", self.guard(&counter)),
            };
        }
        let (name, start) = (&counter.name, self.random.below(3));
        let end = match self.random.below(3) {
            0 => self.scalar(ty),
            1 => format!("({} - {})", self.scalar(ty), self.random.below(20)),
            _ => format!("{}_{ty}", self.random.below(10)),
        };
        match self.random.below(6) {
            0..=2 => format!("for {name} in {start}..{end} {{\n{text}}}\n"),
            3 => {
                let step = *self.random.pick(&["2", "3", "global_size(0)", "4"]);
                format!("for {name} in ({start}..{end}).step_by({step}) {{\n{text}}}\n")
            }
            4 => format!("for {name} in ({start}..{end}).rev() {{\n{text}}}\n"),
            _ => {
                let step = self.step(ty);
                format!(
                    "let mut {name}: {ty} = {start};\nwhile {name} < {end} {{\n{text}{name} += {step};\n}}\n"
                )
            }
        }
    }
}
