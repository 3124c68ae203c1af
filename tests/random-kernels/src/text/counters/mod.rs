//! Random kernels whose loops have counters that bound each other.
//!
//! The kernels of [`super::text`] seldom have such loops. Here two to four counters of all
//! widths start near the ends of their types, grow in great steps, some under conditions, and name
//! each other in the loop's condition, in guards and in indices. Some kernels write in loops, under
//! guards whose numbers wrap.

mod tangle;
mod writes;

use usm_kernel_ir::Scalar;

use super::expression::cast;
use crate::random::Random;

const TYPES: [Scalar; 8] =
    [Scalar::U8, Scalar::I8, Scalar::U16, Scalar::I16, Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64];
const COMPARISONS: [&str; 9] = ["<", "<", "<", "<", "<=", "<=", "!=", ">", ">="];

#[derive(Clone)]
struct Counter {
    name: String,
    ty: Scalar,
    start: String,
    /// The number of a start that is a literal and not negative.
    at: Option<u64>,
}

struct Maker {
    random: Random,
    counters: Vec<Counter>,
    names: u32,
}

/// The text of a file with one kernel, an `unsafe fn` as those of [`super::text`].
#[must_use]
pub fn counters(seed: u64) -> String {
    let mut maker = Maker { random: Random::new(seed), counters: Vec::new(), names: 0 };
    let body = match maker.random.below(10) {
        0..=2 => maker.reads(),
        3..=6 => maker.tangle(),
        _ => maker.writes(),
    };
    format!("#[kernel]\nunsafe fn f({}) {{\nlet g = global_id(0);\n{body}}}\n", super::PARAMETERS)
}

impl Maker {
    fn word(&mut self, words: &[&'static str]) -> &'static str {
        self.random.pick::<&'static str>(words)
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("c{}", self.names)
    }

    /// A type, mostly a narrow one: its counters wrap soon.
    fn ty(&mut self) -> Scalar {
        if self.random.percent(45) { *self.random.pick(&TYPES[..3]) } else { *self.random.pick(&TYPES) }
    }

    /// A wide type, in which sums of counters do not wrap.
    fn wide(&mut self) -> Scalar {
        *self.random.pick(&[Scalar::U32, Scalar::U32, Scalar::I32, Scalar::U64, Scalar::I64])
    }

    /// The largest value of a type.
    fn most(ty: Scalar) -> u64 {
        ty.max().map_or(u64::MAX, |most| most as u64)
    }

    /// A literal: small, of the size of the arrays, or near the end of its type.
    fn literal(&mut self, ty: Scalar) -> String {
        let most = Self::most(ty);
        let value = match self.random.below(8) {
            0 => 0,
            1 => self.random.below(12),
            2 => 100,
            3 => *self.random.pick(&[50, 150, 200, 250, 400, 600]),
            4 => most - self.random.below(8),
            5 => most / 2 + self.random.below(3),
            6 if ty.is_signed() => return format!("(-{}_{ty})", self.random.from(1, 100)),
            _ => self.random.below(300),
        };
        format!("{}_{ty}", value.min(most))
    }

    /// A step: mostly one, or so great that the counter wraps in a few rounds.
    fn step(&mut self, ty: Scalar) -> String {
        let most = Self::most(ty);
        match self.random.below(9) {
            0..=3 => format!("1_{ty}"),
            4 => format!("{}_{ty}", self.random.from(2, 9)),
            5 => format!("{}_{ty}", (most / 3).max(1) + self.random.below(2)),
            6 => format!("{}_{ty}", most / 2 + self.random.below(2)),
            7 => format!("{}_{ty}", self.random.from(60, 120)),
            _ => format!("((p as {ty} & 3) + 1)"),
        }
    }

    fn scalar(&mut self, ty: Scalar) -> String {
        let (name, from) = *self.random.pick(&[
            ("n", Scalar::U32),
            ("m", Scalar::U64),
            ("k", Scalar::I32),
            ("p", Scalar::U8),
        ]);
        cast(name, from, ty)
    }

    /// A counter, as this type.
    fn counter(&mut self, ty: Scalar) -> String {
        if self.counters.is_empty() {
            return self.literal(ty);
        }
        let Counter { name, ty: from, .. } = self.random.pick(&self.counters).clone();
        let value = match self.random.below(8) {
            0 => format!("min({name}, {})", self.literal(from)),
            1 => format!("max({name}, {})", self.literal(from)),
            _ => name,
        };
        if self.random.percent(15) {
            let between = self.ty();
            return cast(&cast(&value, from, between), between, ty);
        }
        cast(&value, from, ty)
    }

    /// A number that may bound a counter: it often depends on another one.
    fn bound(&mut self, ty: Scalar) -> String {
        match self.random.below(16) {
            0 | 1 => self.literal(ty),
            2 => format!("({} - {})", self.literal(ty), self.counter(ty)),
            3..=5 | 14 | 15 => self.bound_by_start(ty),
            6 => format!("({} + {})", self.literal(ty), self.counter(ty)),
            7 => self.counter(ty),
            8 => self.scalar(ty),
            9 => format!("({} - {})", self.scalar(ty), self.counter(ty)),
            10 => format!("({} - {})", self.scalar(ty), self.literal(ty)),
            11 => {
                let (function, one) = (self.word(&["min", "max"]), self.literal(ty));
                format!("{function}({}, {one})", self.counter(ty))
            }
            12 => {
                let (condition, one, two) = (self.comparison(), self.literal(ty), self.counter(ty));
                format!("(if {condition} {{ {one} }} else {{ {two} }})")
            }
            _ => cast("a.len()", Scalar::U64, ty),
        }
    }

    /// A number that is near the arrays' lengths as long as another counter is at its start.
    fn bound_by_start(&mut self, ty: Scalar) -> String {
        if self.counters.is_empty() {
            return self.literal(ty);
        }
        let other = self.random.pick(&self.counters).clone();
        let Some(start) = other.at else { return self.scalar(ty) };
        let room = if self.random.percent(80) { self.random.below(300) } else { self.random.word() >> 32 };
        let least = start.saturating_add(room).min(Self::most(ty));
        let name = match self.random.below(4) {
            0 => format!("min({}, {start}_{})", other.name, other.ty),
            _ => other.name,
        };
        let other = cast(&name, other.ty, ty);
        if self.random.percent(90) {
            format!("({least}_{ty} - {other})")
        } else {
            format!("({other} - {}_{ty})", start.saturating_sub(room))
        }
    }

    fn comparison(&mut self) -> String {
        let ty = if self.random.percent(60) { self.wide() } else { self.ty() };
        let left = self.counter(ty);
        let left = match self.random.below(10) {
            0 => format!("{left} + {}", self.counter(ty)),
            1 => format!("{left} - {}", self.counter(ty)),
            2 => format!("{left} + {}", self.literal(ty)),
            _ => left,
        };
        format!("({left}) {} ({})", self.word(&COMPARISONS), self.bound(ty))
    }

    /// The condition of a loop, mostly one that may bound a counter by the others.
    fn condition(&mut self) -> String {
        let mut text = self.comparison();
        if self.random.percent(75) {
            let counter = self.counters[0].clone();
            let ty = if self.random.percent(70) { self.wide() } else { counter.ty };
            let (comparison, bound) = (self.word(&["<", "<", "<="]), self.bound(ty));
            text = format!("{} {comparison} {bound}", cast(&counter.name, counter.ty, ty));
        }
        for _ in 0..[0, 0, 0, 1, 1, 2][self.random.below(6) as usize] {
            let operator = self.word(&["&&", "&&", "&&", "||"]);
            text = format!("({text} {operator} {})", self.comparison());
        }
        text
    }

    fn declaration(&mut self) -> String {
        let (name, ty) = (self.name(), self.ty());
        let start = match self.random.below(10) {
            0 => self.scalar(ty),
            1 => cast("g", Scalar::U64, ty),
            2 => self.counter(ty),
            _ => self.literal(ty),
        };
        let text = format!("let mut {name}: {ty} = {start};\n");
        let at = start.split('_').next().and_then(|number| number.parse().ok());
        self.counters.push(Counter { name, ty, start, at });
        text
    }

    /// Code that changes a counter, mostly by a step in each round.
    fn update(&mut self, Counter { name, ty, .. }: &Counter) -> String {
        let step = self.step(*ty);
        match self.random.below(20) {
            0..=10 => format!("{name} += {step};\n"),
            11..=15 => {
                let condition = if self.random.percent(50) { "s & 1 == 0".into() } else { self.comparison() };
                format!("if {condition} {{ {name} += {step}; }}\n")
            }
            16 => format!("{name} -= {step};\n"),
            17 => format!("for _round in 0..3_u32 {{ {name} += {step}; }}\n"),
            18 => format!("{name} /= 2;\n"),
            _ => format!("{name} = {};\n", self.bound(*ty)),
        }
    }

    fn index(&mut self) -> String {
        let any = self.random.pick(&self.counters).clone();
        let counter = if self.random.percent(60) { self.counters[0].clone() } else { any };
        let plain = cast(&counter.name, counter.ty, Scalar::U64);
        let start = cast(&counter.start, counter.ty, Scalar::U64);
        match self.random.below(15) {
            0..=2 => plain,
            3..=9 => format!("{plain} - {start}"),
            10 => format!("{plain} - {}", self.literal(Scalar::U64)),
            11 => format!("{plain} + {}", self.counter(Scalar::U64)),
            12 => format!("{plain} - {}", self.counter(Scalar::U64)),
            13 => {
                let ty = self.wide();
                cast(&format!("({} - {})", self.counter(ty), self.literal(ty)), ty, Scalar::U64)
            }
            _ => format!("{} - {plain}", self.literal(Scalar::U64)),
        }
    }

    fn read(&mut self) -> String {
        let read = format!("s += a[{}];\n", self.index());
        if self.random.percent(25) { format!("if {} {{ {read} }}\n", self.comparison()) } else { read }
    }

    /// A loop, whose counters are declared.
    fn rounds(&mut self, depth: u32) -> String {
        let mut parts: Vec<String> = Vec::new();
        let own = self.counters.clone();
        for counter in &own {
            // An inner loop changes only some of the outer loop's counters.
            if depth == 0 || self.random.percent(25) || counter.name == own[own.len() - 1].name {
                parts.push(self.update(counter));
            }
        }
        for _ in 0..*self.random.pick(&[1, 1, 2]) {
            parts.push(self.read());
        }
        if depth == 0 && self.random.percent(25) {
            let declared = self.declaration();
            let inner = self.rounds(1);
            self.counters.pop();
            parts.push(declared + &inner);
        }
        if self.random.percent(8) {
            let word = self.word(&["break", "continue"]);
            parts.push(format!("if {} {{ {word}; }}\n", self.comparison()));
        }
        let mut body = String::new();
        while !parts.is_empty() {
            body += &parts.swap_remove(self.random.below(parts.len() as u64) as usize);
        }
        // Also loops that only a break ends are run.
        if self.random.percent(60) {
            body += &format!("t += 1;\nif t >= {} {{ break; }}\n", self.random.pick(&[20, 160, 300]));
        }
        if self.random.percent(8) {
            let (name, end) = (self.name(), self.bound(Scalar::U64));
            return format!("for {name} in 0..{end} {{\n{body}s += a[{name}];\n}}\n");
        }
        format!("while {} {{\n{body}}}\n", self.condition())
    }

    /// A kernel that reads by counters.
    fn reads(&mut self) -> String {
        let mut text = "let mut s = n;\nlet mut t = 0_u32;\n".to_owned();
        for _ in 0..*self.random.pick(&[1, 2, 2, 3, 3, 4]) {
            text += &self.declaration();
        }
        text += &self.rounds(0);
        if self.random.percent(10) {
            text += &self.read();
        }
        text + "if g < o.len() { o[g] = s; }\n"
    }
}
