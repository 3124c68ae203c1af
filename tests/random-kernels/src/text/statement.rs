//! Random statements.

use usm_kernel_ir::Scalar;

use super::expression::cast;
use super::{Variable, Writer};

/// Where a statement stands.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Levels of blocks that may be inside.
    pub(super) depth: u32,
    pub(super) in_loop: bool,
    /// Whether all items of a group come here together, so that a barrier is right.
    pub(super) uniform: bool,
}

impl Place {
    /// A block inside.
    pub(super) const fn inside(self, uniform: bool) -> Self {
        Self { depth: self.depth.saturating_sub(1), uniform, ..self }
    }
}

impl Writer {
    pub(super) fn statement(&mut self, place: Place) -> String {
        if self.left == 0 {
            return String::new();
        }
        self.left -= 1;
        match self.random.below(if place.depth == 0 { 9 } else { 22 }) {
            0 | 1 => self.declaration(),
            2 => self.assignment(),
            3 => self.exchange(),
            4 => self.part(),
            6 if self.grouped => self.local_access(),
            7 if self.grouped && place.uniform => self.barrier(),
            8 => self.jump(place),
            9..=11 => self.branch(place),
            12 | 13 => self.count(place),
            14..=17 => self.repeat(place),
            18 | 19 => self.stride(),
            20.. => self.guarded(),
            _ => self.store(),
        }
    }

    /// Statements, whose variables end with them.
    pub(super) fn block(&mut self, place: Place) -> String {
        let outer = self.variables.len();
        let block = (0..self.random.from(1, 3)).map(|_| self.statement(place)).collect();
        self.variables.truncate(outer);
        block
    }

    fn declaration(&mut self) -> String {
        let ty = self.scalar();
        let (value, name, mutable) = (self.expr(ty, 2), self.name(), self.random.percent(60));
        let word = if mutable { "let mut" } else { "let" };
        let text = format!("{word} {name}: {ty} = {value};\n");
        self.variables.push(Variable { name, ty, mutable, uniform: false });
        text
    }

    fn assignment(&mut self) -> String {
        let Some(variable) = self.variable(|variable| variable.mutable) else { return String::new() };
        let operator = self.word(&["=", "+=", "+=", "-=", "*="]);
        format!("{} {operator} {};\n", variable.name, self.expr(variable.ty, 2))
    }

    /// Sets two variables at once, or one by a part of a tuple.
    fn exchange(&mut self) -> String {
        let Some(one) = self.variable(|variable| variable.mutable) else { return self.store() };
        let other = self.variable(|variable| variable.mutable && variable.name != one.name);
        if let Some(other) = other {
            let (first, second) = (cast(&other.name, other.ty, one.ty), self.expr(other.ty, 1));
            return format!("({}, {}) = ({first}, {second});\n", one.name, other.name);
        }
        let (name, value) = (self.name(), self.expr(one.ty, 1));
        format!("let {name} = ({value}, {0});\n{0} = {name}.0 + {name}.1;\n", one.name)
    }

    /// Writes or reads a slice, or the row of an own array.
    fn part(&mut self) -> String {
        let (name, output, start) = (self.name(), self.output(), self.expr(Scalar::U64, 1));
        let length = if self.random.percent(50) { self.literal(Scalar::U64) } else { "m".to_owned() };
        let index =
            if self.random.percent(50) { self.literal(Scalar::U64) } else { self.expr(Scalar::U64, 1) };
        match self.random.below(4) {
            0 => format!(
                "let {name} = &mut {output}[{start} * {length}..({start} + 1) * {length}];\n{name}[{index}] = 1;\n"
            ),
            1 => format!("let {name} = &mut {output}[{start}..];\n{name}[{index}] = {name}.len() as u32;\n"),
            2 => format!(
                "let {name} = &a[{start}..{}];\n{output}[{}] = {name}[{index}];\n",
                self.expr(Scalar::U64, 1),
                self.index()
            ),
            _ => format!(
                "let mut {name} = [[1_u32; 3]; 2];\n{name}[{index}][{}] = 2;\nlet {name} = &{name}[1];\n{output}[{}] = {name}[2];\n",
                self.literal(Scalar::U64),
                self.index()
            ),
        }
    }

    pub(super) fn store(&mut self) -> String {
        format!("{}[{}] = 1;\n", self.output(), self.index())
    }

    /// One of two arrays, so that not every two writes may conflict.
    pub(super) fn output(&mut self) -> &'static str {
        self.word(&["o", "r"])
    }

    fn local_access(&mut self) -> String {
        let local = self.local_index();
        if self.random.percent(60) {
            format!("l[{local}] = 2;\n")
        } else {
            format!("{}[{}] = l[{local}];\n", self.output(), self.index())
        }
    }

    /// Uses a number as an index if it passes a test.
    fn guarded(&mut self) -> String {
        let (ty, name) = (self.scalar(), self.name());
        let (value, comparison) = (self.expr(ty, 2), self.word(&["<", "<", "<=", ">="]));
        let (end, output, index) = (self.literal(ty), self.output(), self.linear());
        let store = format!("{output}[{index}] = a[{name} as u64];");
        format!("let {name}: {ty} = {value};\nif {name} {comparison} {end} {{\n{store}\n}}\n")
    }

    fn barrier(&mut self) -> String {
        let spaces = self.word(&["LOCAL", "LOCAL", "LOCAL", "GLOBAL"]);
        format!("barrier({spaces});\n")
    }

    /// Sometimes leaves the loop, its round, or the kernel.
    fn jump(&mut self, place: Place) -> String {
        let word = if place.in_loop && self.random.percent(50) {
            self.word(&["break", "continue", "return"])
        } else if self.random.percent(30) {
            "return"
        } else {
            return String::new();
        };
        let (condition, _) = self.choice(place.uniform, 100, 1);
        format!("if {condition} {{ {word}; }}\n")
    }

    fn branch(&mut self, place: Place) -> String {
        let (condition, uniform) = self.choice(place.uniform, 40, 2);
        let one = self.block(place.inside(uniform));
        if !self.random.percent(30) {
            return format!("if {condition} {{\n{one}}}\n");
        }
        let other = self.block(place.inside(uniform));
        format!("if {condition} {{\n{one}}} else {{\n{other}}}\n")
    }
}
