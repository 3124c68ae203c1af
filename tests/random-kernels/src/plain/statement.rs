//! Statements.

use usm_kernel_ir::Scalar;

use super::{NAMES, Place, TYPES, Variable, Writer};

impl Place {
    const fn inside(self, uniform: bool) -> Self {
        Self { depth: self.depth.saturating_sub(1), uniform: self.uniform && uniform }
    }
}

impl Writer {
    pub(super) fn statement(&mut self, place: Place) -> String {
        if self.left == 0 {
            return String::new();
        }
        self.left -= 1;
        match self.random.below(if place.depth == 0 { 11 } else { 20 }) {
            0 if self.random.percent(15) => {
                format!("assert!(({}) || true, \"a \\\"text\\\"\");\n", self.condition(1))
            }
            0..=2 => self.declaration(),
            3 => self.two(),
            4..=6 => self.assignment(),
            7 | 8 => self.store(),
            9 => self.jump(place),
            10 if place.uniform && !self.returned && self.result.is_none() => {
                format!("barrier({});\n", self.word(&["LOCAL", "GLOBAL", "LOCAL | GLOBAL"]))
            }
            10 => self.change(),
            11..=13 => self.branch_of(place),
            14..=16 => self.count(place),
            17 => self.repeat(place),
            18 => format!("{{\n{}}}\n", self.block(place.inside(true))),
            _ => self.endless(place),
        }
    }

    /// Statements, whose variables end with them.
    fn block(&mut self, place: Place) -> String {
        let outer = self.variables.len();
        let block = (0..self.random.from(1, 4)).map(|_| self.statement(place)).collect();
        self.variables.truncate(outer);
        block
    }

    fn declaration(&mut self) -> String {
        let (ty, name, mutable) = (*self.random.pick(TYPES), self.word(&NAMES), self.random.percent(60));
        let word = if mutable { "let mut" } else { "let" };
        let text = if self.random.percent(60) {
            format!("{word} {name}: {ty} = {};\n", self.value(ty))
        } else {
            let depth = self.random.below(3) as u32;
            format!("{word} {name} = {};\n", self.typed(ty, depth).0)
        };
        self.variables.push(Variable { name: name.into(), ty, mutable, uniform: false });
        text
    }

    fn two(&mut self) -> String {
        let types = [*self.random.pick(TYPES), *self.random.pick(TYPES)];
        let (one, two) = (self.typed(types[0], 1).0, self.typed(types[1], 2).0);
        let first = self.random.below(NAMES.len() as u64 - 1) as usize;
        let names = [NAMES[first], NAMES[first + 1]];
        for (name, ty) in names.into_iter().zip(types) {
            self.variables.push(Variable { name: name.into(), ty, mutable: false, uniform: false });
        }
        format!("let ({}, {}) = ({one}, {two});\n", names[0], names[1])
    }

    fn assignment(&mut self) -> String {
        let Some(variable) = self.variable(|variable| variable.mutable) else { return self.declaration() };
        let (operator, value) = self.change_of(variable.ty);
        format!("{} {operator} {value};\n", variable.name)
    }

    /// An assigning operator and its right side.
    fn change_of(&mut self, ty: Scalar) -> (&'static str, String) {
        let operators: &[&str] = match ty {
            Scalar::Bool => &["=", "=", "&=", "|=", "^="],
            _ if ty.is_float() => &["=", "=", "+=", "-=", "*="],
            _ => &["=", "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="],
        };
        let operator = self.word(operators);
        let value = match operator {
            "*=" if ty.is_float() => self.word(&["2.0", "0.5"]).into(),
            "/=" | "%=" => self.word(&["3", "5", "2"]).into(),
            "<<=" | ">>=" => {
                let other = *self.random.pick(&TYPES[1..9]);
                self.typed(other, 1).0
            }
            _ => self.value(ty),
        };
        (operator, value)
    }

    fn store(&mut self) -> String {
        let arrays: Vec<_> = self.arrays.iter().filter(|array| array.mutable).cloned().collect();
        if arrays.is_empty() {
            return self.assignment();
        }
        let array = self.random.pick(&arrays).clone();
        // What the value does, such as a call that writes, comes before the index is read.
        let (operator, value) = self.change_of(array.element);
        // Rust's `IndexMut` borrows the array before it reads the index.
        let all = self.arrays.clone();
        self.arrays.retain(|other| other.name != array.name);
        let index = self.index(array.index);
        self.arrays = all;
        format!("{}[{index}] {operator} {value};\n", array.name)
    }

    /// An atomic operation on the item's own element.
    fn change(&mut self) -> String {
        let Some(array) = self.arrays.iter().find(|array| array.atomic).cloned() else { return self.store() };
        let ty = array.element;
        let method = self.word(&[
            "fetch_add",
            "fetch_sub",
            "fetch_min",
            "fetch_max",
            "fetch_and",
            "fetch_or",
            "fetch_xor",
            "swap",
            "compare_exchange",
        ]);
        let mut given = self.value(ty);
        if method == "compare_exchange" {
            given = format!("c[i].load(), {given}");
        }
        let call = format!("c[i].{method}({given})");
        if self.random.percent(50) {
            return format!("{call};\n");
        }
        let name = self.word(&NAMES);
        self.variables.push(Variable { name: name.into(), ty, mutable: true, uniform: false });
        format!("let mut {name} = {call};\n")
    }

    /// Sometimes leaves a loop, its round, or the kernel.
    fn jump(&mut self, place: Place) -> String {
        let is_uniform = place.uniform && self.random.percent(60);
        if self.labels.is_empty() || self.random.percent(10) {
            if self.random.percent(60) {
                return self.assignment();
            }
            let condition = if is_uniform { self.uniform() } else { self.condition(1) };
            let value = match self.result {
                Some(ty) => format!(" {}", self.value(ty)),
                None => {
                    // All items of a group leave together, or no barrier may follow.
                    if !is_uniform && !self.may_diverge() {
                        return self.store();
                    }
                    self.returned |= !is_uniform;
                    String::new()
                }
            };
            return format!("if {condition} {{ return{value}; }}\n");
        }
        let depth = self.random.below(self.labels.len() as u64) as usize;
        // Every loop that is left must be one that some items may leave.
        let free = self.labels[depth..].iter().all(|(_, free)| *free);
        if !is_uniform && !free {
            return self.store();
        }
        let condition = if is_uniform { self.uniform() } else { self.condition(1) };
        let word = self.word(&["break", "continue"]);
        let label = if depth + 1 == self.labels.len() && self.random.percent(50) {
            String::new()
        } else {
            format!(" {}", self.labels[depth].0)
        };
        format!("if {condition} {{ {word}{label}; }}\n")
    }

    /// Whether items may leave the kernel here one by one: not inside a loop with barriers.
    fn may_diverge(&self) -> bool {
        self.labels.iter().all(|(_, free)| *free)
    }

    fn branch_of(&mut self, place: Place) -> String {
        let uniform = place.uniform && self.random.percent(50);
        let condition = if uniform { self.uniform() } else { self.condition(2) };
        let one = self.block(place.inside(uniform));
        if self.random.percent(50) {
            return format!("if {condition} {{\n{one}}}\n");
        }
        let middle = if self.random.percent(30) {
            let (condition, block) = (self.condition(1), self.block(place.inside(false)));
            format!("}} else if {condition} {{\n{block}")
        } else {
            String::new()
        };
        let other = self.block(place.inside(uniform && middle.is_empty()));
        format!("if {condition} {{\n{one}{middle}}} else {{\n{other}}}\n")
    }

    /// The body of a loop, and its label with a colon.
    fn body(&mut self, place: Place, uniform: bool) -> (String, String) {
        let label = self.label();
        // Barriers only where all items leave together.
        let barriers = place.uniform && uniform && self.random.percent(60);
        self.labels.push((label.clone(), !barriers));
        let body = self.block(place.inside(barriers));
        let _ = self.labels.pop();
        (format!("{label}: "), body)
    }

    fn count(&mut self, place: Place) -> String {
        let ty = *self.random.pick(&TYPES[1..9]);
        let high = ty.max().map_or(u64::MAX, |max| max as u64);
        let uniform = self.random.percent(60);
        let (start, end) = match self.random.below(4) {
            0 => (format!("{}_{ty}", high - self.random.from(1, 4)), format!("{high}")),
            1 if !uniform => {
                let limit = |value: (String, u32)| format!("({}).min(5)", value.0);
                (format!("{}_{ty}", self.random.below(4)), limit(self.typed(ty, 1)))
            }
            2 => ("4".into(), format!("{}_{ty}", self.random.below(5))),
            _ => (self.random.below(3).to_string(), format!("{}_{ty}", self.random.from(2, 6))),
        };
        let name = self.word(&["x", "kernel", "_count", "_", "y"]);
        let outer = self.variables.len();
        if name != "_" {
            self.variables.push(Variable {
                name: name.into(),
                ty,
                mutable: false,
                uniform: place.uniform && uniform,
            });
        }
        let (label, body) = self.body(place, uniform);
        self.variables.truncate(outer);
        let dots = self.word(&["..", "..", "..="]);
        let step = self.random.from(1, 9);
        // Rust turns the steps of few types.
        let turns = ty.bits() < 64 && dots == ".." || ty.bits() < 32;
        let range = match self.random.below(9) {
            0 | 1 => format!("({start}{dots}{end}).step_by({step})"),
            2 => format!("({start}{dots}{end}).rev()"),
            3 => format!("({start}{dots}{end}).rev().step_by({step})"),
            4 if turns => format!("({start}{dots}{end}).step_by({step}).rev()"),
            _ => format!("{start}{dots}{end}"),
        };
        format!("{label}for {name} in {range} {{\n{body}}}\n")
    }

    /// A loop with a condition, which ends after a few rounds.
    fn repeat(&mut self, place: Place) -> String {
        let (most, condition) = (self.random.from(1, 5), self.condition(1));
        self.count += 1;
        let rounds = format!("rounds_{}", self.count);
        let (label, body) = self.body(place, false);
        format!(
            "let mut {rounds} = 0_u8;\n{label}while {rounds} < {most} && ({condition}) {{\n{rounds} += 1;\n{body}}}\n"
        )
    }

    fn endless(&mut self, place: Place) -> String {
        let most = self.random.from(1, 5);
        self.count += 1;
        let rounds = format!("rounds_{}", self.count);
        let (label, body) = self.body(place, true);
        format!(
            "let mut {rounds} = 0_u32;\n{label}loop {{\nif {rounds} >= {most} {{ break; }}\n{rounds} += 1;\n{body}}}\n"
        )
    }
}
