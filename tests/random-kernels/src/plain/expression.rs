//! Values.

use usm_kernel_ir::Scalar;

use super::{TYPES, Writer};

/// How tightly an operator binds, as in Rust.
mod binds {
    pub(super) const OR_ELSE: u32 = 1;
    pub(super) const AND_THEN: u32 = 2;
    pub(super) const COMPARES: u32 = 3;
    pub(super) const OR: u32 = 4;
    pub(super) const XOR: u32 = 5;
    pub(super) const AND: u32 = 6;
    pub(super) const SHIFTS: u32 = 7;
    pub(super) const ADDS: u32 = 8;
    pub(super) const MULTIPLIES: u32 = 9;
    pub(super) const CASTS: u32 = 10;
    pub(super) const NEGATES: u32 = 11;
    pub(super) const ALONE: u32 = 12;
}
use binds::{ADDS, ALONE, AND, AND_THEN, CASTS, COMPARES, MULTIPLIES, NEGATES, OR, OR_ELSE, SHIFTS, XOR};

type Bound = (String, u32);

fn within((text, binds): Bound, least: u32) -> String {
    if binds < least { format!("({text})") } else { text }
}

impl Writer {
    /// A value of this type that the context says too.
    pub(super) fn value(&mut self, ty: Scalar) -> String {
        let depth = self.random.below(4) as u32;
        self.expr(ty, depth, true).0
    }

    /// A value that names its type.
    pub(super) fn typed(&mut self, ty: Scalar, depth: u32) -> Bound {
        self.expr(ty, depth, false)
    }

    pub(super) fn constant(&mut self, ty: Scalar) -> String {
        if ty.is_integer() && self.random.percent(40) {
            let (one, two) = (self.random.below(9), self.random.below(9));
            return format!("{one} * 3 + {two}");
        }
        self.number(ty)
    }

    /// The digits of a number.
    fn number(&mut self, ty: Scalar) -> String {
        if ty.is_float() {
            return (*self.random.pick(&[
                "0.0",
                "1.0",
                "2.5",
                "0.5",
                "3.",
                "1e3",
                "127.5",
                "4294967296.0",
                "1_0.25",
            ]))
            .into();
        }
        let high = ty.max().map_or(u64::MAX, |max| max as u64);
        let value = match self.random.below(8) {
            0 => 0,
            1 | 2 => self.random.below(4),
            3 | 4 => self.random.below(12),
            5 => self.random.below(128),
            6 => high - self.random.below(3),
            _ => self.random.word() % high,
        };
        match self.random.below(6) {
            0 => format!("0x{value:x}"),
            1 => format!("0b{value:b}"),
            _ => value.to_string(),
        }
    }

    fn literal(&mut self, ty: Scalar, open: bool) -> Bound {
        if ty == Scalar::Bool {
            return (self.word(&["true", "false"]).into(), ALONE);
        }
        if self.random.percent(12) {
            let name = if ty.is_float() {
                self.word(&["INFINITY", "NAN", "MAX", "EPSILON", "NEG_INFINITY"])
            } else {
                self.word(&["MAX", "MIN"])
            };
            return (format!("{ty}::{name}"), ALONE);
        }
        let number = self.number(ty);
        if open && self.random.percent(60) {
            return (number, ALONE);
        }
        // `3.` takes no name of a type, and `0x1_f32` is an integer.
        let number = if number.ends_with('.') { format!("{number}0") } else { number };
        (format!("{number}_{ty}"), ALONE)
    }

    pub(super) fn expr(&mut self, ty: Scalar, depth: u32, open: bool) -> Bound {
        if depth == 0 {
            return match self.random.below(6) {
                0 => self.literal(ty, open),
                1 | 2 => self.element(ty),
                _ => match self.variable(|variable| variable.ty == ty) {
                    Some(variable) => (variable.name, ALONE),
                    None => self.literal(ty, open),
                },
            };
        }
        let depth = depth - 1;
        let bound = match self.random.below(12) {
            0 => self.expr(ty, 0, open),
            1..=4 => self.binary(ty, depth, open),
            5 if ty == Scalar::Bool => (format!("!{}", within(self.typed(ty, depth), NEGATES)), NEGATES),
            5 if ty.is_float() || ty.is_signed() && self.random.percent(50) => {
                (format!("-{}", within(self.expr(ty, depth, open), NEGATES)), NEGATES)
            }
            5 => (format!("!{}", within(self.expr(ty, depth, open), NEGATES)), NEGATES),
            6 | 7 => self.cast(ty, depth),
            8 => self.branch(ty, depth, open),
            9 => self.method(ty, depth),
            10 => self.call(ty),
            _ => self.element(ty),
        };
        if self.random.percent(15) { (format!("({})", bound.0), ALONE) } else { bound }
    }

    /// The left side names its type, or the context says it.
    fn binary(&mut self, ty: Scalar, depth: u32, open: bool) -> Bound {
        if ty == Scalar::Bool {
            return self.truth(depth);
        }
        let (operator, binds) = if ty.is_float() {
            *self.random.pick(&[
                ("+", ADDS),
                ("-", ADDS),
                ("*", MULTIPLIES),
                ("/", MULTIPLIES),
                ("%", MULTIPLIES),
            ])
        } else {
            *self.random.pick(&[
                ("+", ADDS),
                ("-", ADDS),
                ("*", MULTIPLIES),
                ("/", MULTIPLIES),
                ("%", MULTIPLIES),
                ("&", AND),
                ("|", OR),
                ("^", XOR),
                ("<<", SHIFTS),
                (">>", SHIFTS),
            ])
        };
        let turned = !open
            && self.random.percent(30)
            && !matches!(operator, "/" | "%" | "<<" | ">>")
            && !ty.is_float();
        let left = within(self.expr(ty, depth, open || turned), binds);
        let right = match operator {
            "/" | "%" | "*" if ty.is_float() => (self.word(&["2.0", "0.5", "4.0", "8.0"]).into(), ALONE),
            // Rust ends where a divisor is 0, and below the least value where it is -1.
            "/" | "%" if self.random.percent(40) && !ty.is_signed() => {
                (format!("({} | 1)", within(self.typed(ty, depth), OR)), ALONE)
            }
            "/" | "%" => (self.word(&["3", "7", "1", "100", "2"]).into(), ALONE),
            "<<" | ">>" => {
                let other = *self.random.pick(&TYPES[1..9]);
                if self.random.percent(40) {
                    (self.random.below(70).to_string(), ALONE)
                } else {
                    self.typed(other, depth)
                }
            }
            _ => {
                // In comparison with an open left side the right one names the type.
                let right_open = open || !turned;
                self.expr(ty, depth, right_open)
            }
        };
        (format!("{left} {operator} {}", within(right, binds + 1)), binds)
    }

    fn truth(&mut self, depth: u32) -> Bound {
        let (operator, binds) = *self.random.pick(&[
            ("&&", AND_THEN),
            ("||", OR_ELSE),
            ("&", AND),
            ("|", OR),
            ("^", XOR),
            ("<", COMPARES),
            ("<=", COMPARES),
            ("==", COMPARES),
            ("!=", COMPARES),
            (">", COMPARES),
            (">=", COMPARES),
        ]);
        let ty = match binds {
            COMPARES => *self.random.pick(TYPES),
            _ => Scalar::Bool,
        };
        let turned = binds == COMPARES && self.random.percent(20) && ty != Scalar::Bool;
        let left = within(self.expr(ty, depth, turned), binds + u32::from(binds == COMPARES));
        // `x as u8 < y` would be a list of types.
        let left = if operator == "<" && left.contains(" as ") { format!("({left})") } else { left };
        let right = within(self.expr(ty, depth, binds == COMPARES && !turned), binds + 1);
        (format!("{left} {operator} {right}"), binds)
    }

    fn cast(&mut self, ty: Scalar, depth: u32) -> Bound {
        if ty == Scalar::Bool {
            return self.truth(depth);
        }
        if ty == Scalar::F32 && self.random.percent(20) {
            let (half, value) = (self.word(&["F16", "Bf16"]), self.typed(ty, depth).0);
            return (format!("{half}::from_f32({value}).to_f32()"), ALONE);
        }
        let from = *self.random.pick(TYPES);
        let from = if from == Scalar::Bool && ty.is_float() { Scalar::U8 } else { from };
        (format!("({} as {ty})", within(self.typed(from, depth), CASTS)), ALONE)
    }

    fn branch(&mut self, ty: Scalar, depth: u32, open: bool) -> Bound {
        let condition = self.condition(depth.min(2));
        let (one, two) = (self.expr(ty, depth, open).0, self.expr(ty, depth, true).0);
        let middle = if self.random.percent(30) {
            let (condition, value) = (self.condition(1), self.expr(ty, depth, true).0);
            format!("}} else if {condition} {{ {value} ")
        } else {
            String::new()
        };
        (format!("(if {condition} {{ {one} {middle}}} else {{ {two} }})"), ALONE)
    }

    pub(super) fn condition(&mut self, depth: u32) -> String {
        self.typed(Scalar::Bool, depth + 1).0
    }

    /// A condition that is equal for all items of a group.
    pub(super) fn uniform(&mut self) -> String {
        let variable = self.variable(|variable| variable.uniform && variable.ty.is_integer());
        let (name, ty) = variable.map_or(("group_id(0)".into(), Scalar::U64), |found| (found.name, found.ty));
        let (operator, number) = (self.word(&["<", ">", "==", "!="]), self.number(ty));
        format!("{name} {operator} {number}")
    }

    fn method(&mut self, ty: Scalar, depth: u32) -> Bound {
        if ty == Scalar::Bool {
            let float = *self.random.pick(&[Scalar::F32, Scalar::F64]);
            let name = self.word(&["is_nan", "is_finite", "is_infinite"]);
            return (format!("{}.{name}()", within(self.typed(float, depth), ALONE)), ALONE);
        }
        if ty == Scalar::U32 && self.random.percent(30) {
            let of = *self.random.pick(&TYPES[1..9]);
            let name = self.word(&["count_ones", "count_zeros", "leading_zeros", "trailing_zeros"]);
            return (format!("{}.{name}()", within(self.typed(of, depth), ALONE)), ALONE);
        }
        let receiver = self.typed(ty, depth);
        if self.random.percent(25) {
            let name = self.word(&["smaller", "larger"]);
            let real = if name == "smaller" { "min" } else { "max" };
            let name = if self.plain { name } else { real };
            let other = self.expr(ty, depth, true).0;
            // A variable may be called `min`, which hides the function.
            return (format!("{name}({}, {other})", receiver.0), ALONE);
        }
        let receiver = within(receiver, ALONE);
        let methods: &[&str] = match ty {
            _ if ty.is_float() => &["min", "max", "abs", "floor", "ceil", "trunc", "round"],
            _ if ty.is_signed() => &["min", "max", "wrapping_add", "wrapping_sub", "wrapping_mul", "abs"],
            _ => &["min", "max", "wrapping_add", "wrapping_sub", "wrapping_mul"],
        };
        let name = *self.random.pick(methods);
        let given = match name {
            "min" | "max" | "wrapping_add" | "wrapping_sub" | "wrapping_mul" => self.expr(ty, depth, true).0,
            _ => String::new(),
        };
        (format!("{receiver}.{name}({given})"), ALONE)
    }

    /// A call of a function of the module.
    pub(super) fn call(&mut self, ty: Scalar) -> Bound {
        if self.result.is_some() {
            return self.expr(ty, 0, false);
        }
        let found: Vec<_> = self.functions.iter().filter(|one| one.result == ty).cloned().collect();
        if found.is_empty() {
            return self.expr(ty, 0, false);
        }
        let function = self.random.pick(&found).clone();
        let mut given: Vec<String> = function.scalars.iter().map(|ty| self.expr(*ty, 1, true).0).collect();
        if let Some((element, written)) = function.array {
            let fits = |array: &&super::Array| {
                array.index == Ok(4) && array.element == element && (array.mutable || !written)
            };
            let Some(array) = self.arrays.iter().find(fits) else { return self.expr(ty, 0, false) };
            // The compiler does not lend an array that is lent already, so nobody reads it before.
            let reference = if written { "&mut " } else { "&" };
            given.push(format!("{reference}{}", array.name));
        }
        (format!("{}({})", function.name, given.join(", ")), ALONE)
    }

    /// The index of an array.
    pub(super) fn index(&mut self, index: Result<u64, &'static str>) -> String {
        let len = match index {
            Ok(len) => len,
            Err(own) => return own.into(),
        };
        if self.random.percent(50) {
            return self.random.below(len).to_string();
        }
        let ty = *self.random.pick(&TYPES[1..9]);
        let value = within(self.typed(ty, 1), CASTS);
        format!("({value} as u64) % {len}")
    }

    fn element(&mut self, ty: Scalar) -> Bound {
        let found: Vec<_> = self.arrays.iter().filter(|array| array.element == ty).cloned().collect();
        if found.is_empty() {
            return match self.variable(|variable| variable.ty == ty) {
                Some(variable) => (variable.name, ALONE),
                None => self.literal(ty, false),
            };
        }
        let array = self.random.pick(&found).clone();
        // Rust's `Index` borrows the array before it reads the index.
        let all = self.arrays.clone();
        self.arrays.retain(|other| other.name != array.name);
        let index = self.index(array.index);
        self.arrays = all;
        let end = if array.atomic { ".load()" } else { "" };
        (format!("{}[{index}]{end}", array.name), ALONE)
    }
}
