//! Loops whose counters bound each other, in a chain or a circle.

use usm_kernel_ir::Scalar;

use super::{Counter, Maker};
use crate::text::expression::cast;

impl Maker {
    /// The start and step of a counter that wraps within some hundred rounds: it starts near the
    /// end of its type, or grows in great steps.
    fn soon_wrapping(&mut self, ty: Scalar, is_first: bool) -> (u64, String) {
        let most = Self::most(ty);
        let step = match self.random.below(4) {
            _ if is_first => format!("1_{ty}"),
            0 | 1 => format!("{}_{ty}", most / 2 + self.random.below(2)),
            _ => self.step(ty),
        };
        // Bounds that rest on a great start are above all arrays' lengths.
        let is_near_end = is_first || most < 256 && self.random.percent(50);
        (
            if is_near_end {
                most - self.random.below(most.min(150))
            } else {
                self.random.below(most.min(250))
            },
            step,
        )
    }

    /// A kernel that reads by counters whose bounds name other counters, in a chain or a circle.
    pub(super) fn tangle(&mut self) -> String {
        let mut text = "let mut s = n;\nlet mut t = 0_u32;\n".to_owned();
        let types = [Scalar::U8, Scalar::U8, Scalar::U16, Scalar::U32, Scalar::I8, Scalar::I16, Scalar::I64];
        let wide = *self.random.pick(&[Scalar::U32, Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64]);
        let mut steps = Vec::new();
        for place in 0..*self.random.pick(&[2, 2, 2, 3, 4]) {
            let (name, ty) = (self.name(), *self.random.pick(&types));
            // The first one counts the rounds.
            let is_first = place == 0 && self.random.percent(90);
            let (at, step) = self.soon_wrapping(ty, is_first);
            steps.push(step);
            let start = format!("{at}_{ty}");
            text += &format!("let mut {name}: {ty} = {start};\n");
            self.counters.push(Counter { name, ty, start, at: Some(at) });
        }
        let own = self.counters.clone();
        let mut terms = Vec::new();
        for (place, counter) in own.iter().enumerate() {
            if place == 0 || self.random.percent(25) {
                let other = &own[(place + self.random.from(1, 2) as usize) % own.len()];
                self.terms(counter, other, wide, &mut terms);
            }
        }
        let mut body = Vec::new();
        for (counter, step) in own.iter().zip(&steps) {
            let (name, condition) =
                (&counter.name, self.word(&["n == 0", "s & 1 == 0", "t < 2", "t % 3 == 0", "p < 9"]));
            let is_first = *name == own[0].name;
            body.push(match self.random.below(if is_first { 4 } else { 8 }) {
                0..=3 => format!("{name} += {step};\n"),
                4 => self.update(counter),
                _ => format!("if {condition} {{ {name} += {step}; }}\n"),
            });
        }
        if self.random.percent(10) {
            let word = self.word(&["break", "continue"]);
            body.push(format!("if {} {{ {word}; }}\n", self.comparison()));
        }
        let mut round = String::new();
        while !body.is_empty() {
            round += &body.swap_remove(self.random.below(body.len() as u64) as usize);
        }
        let read = if self.random.percent(80) {
            let (counter, at) = (cast(&own[0].name, own[0].ty, Scalar::U64), own[0].at.unwrap_or(0));
            format!("s += a[{counter} - {at}];\n")
        } else {
            self.read()
        };
        round = if self.random.percent(80) { read + &round } else { round + &read };
        let most = *self.random.pick(&[40, 160, 160, 160, 300, 300]);
        text += &format!("while {} {{\n{round}t += 1;\n", terms.join(" && "));
        text + &format!("if t >= {most} {{ break; }}\n}}\nif g < o.len() {{ o[g] = s; }}\n")
    }

    /// Terms of a loop's condition that bound a counter by another one, perhaps bounded before.
    fn terms(&mut self, counter: &Counter, other: &Counter, wide: Scalar, terms: &mut Vec<String>) {
        let end = Self::most(wide);
        let (name, named) = (cast(&counter.name, counter.ty, wide), cast(&other.name, other.ty, wide));
        let (own, at) = (counter.at.unwrap_or(0), other.at.unwrap_or(0));
        // The counter's last number, as long as the other one is at its start.
        let last = own.saturating_add(self.random.from(1, 160)).min(Self::most(counter.ty));
        let sum = last.saturating_add(at).min(end);
        // Without a greatest number of the other counter the difference may wrap.
        let bounded = format!("min({named}, {}_{wide})", at.saturating_add(self.random.below(3)).min(end));
        if self.random.percent(25) {
            let most = Self::most(other.ty).saturating_add(self.random.below(50)).min(end);
            terms.push(format!("{named} <= {most}_{wide}"));
        }
        terms.push(match self.random.below(14) {
            0 => format!("{name} < {sum}_{wide} - {named}"),
            1 => format!("{name} + {named} < {sum}_{wide}"),
            2 => format!("{sum}_{wide} - {named} > {name}"),
            3 => format!("{name} + {bounded} < {sum}_{wide}"),
            4 => format!("{name} < max({}_{wide} - {named}, {last}_{wide})", sum.min(end)),
            _ => format!("{name} < {sum}_{wide} - {bounded}"),
        });
    }
}
