//! What a kernel prints: items store values in lines of hidden arrays, which a launch reads at its
//! end.
//!
//! No target has a form of its own for it. An atomic operation gives an item the number of a line,
//! and the item stores its values in columns: integers, and floats of each type. The arrays are the
//! last parameters of the kernel, and their names say that each line has one writer.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::kernel::{Array, ArrayId, Atomic, Expr, ExprKind, Kernel, Parameter, Stmt, StmtKind, VarId};
use crate::operator::Binary;
use crate::scalar::Scalar;

/// The most lines of a launch that are kept.
pub const LINES: u64 = 1 << 14;
/// The columns of integers that each line has: the number of its print, and the item.
pub const HEADS: u32 = 2;
/// The number of lines from which on a kernel stops to count them.
pub const COUNTED: u32 = 1 << 31;
/// The start of the names of such arrays.
const LOG: &str = "print ";

/// What one `print!` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Print {
    /// Texts and values, in their order.
    pub parts: Vec<Part>,
}

/// A part of what a `print!` prints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A text.
    Text(String),
    /// The value in a column.
    Value {
        /// Its type.
        ty: Scalar,
        /// The number of its column among those of [`column_type`].
        column: u32,
        /// How it is written.
        format: Format,
    },
}

/// How a value is written: what stands behind the `:` in `{:>8.3}`, by the rules of Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    text: String,
    fill: char,
    align: Option<Align>,
    plus: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Align {
    Left,
    Centre,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Display,
    Debug,
    LowerHex,
    UpperHex,
    Octal,
    Binary,
    LowerExp,
    UpperExp,
}

/// The largest width and precision of a format.
const WIDEST: usize = 1000;

impl Format {
    /// Reads a format for a value of this type.
    ///
    /// # Errors
    /// The reason, without a place.
    pub fn parse(text: &str, ty: Scalar) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("`{{:{text}}}`: {why}"));
        let mut rest = text;
        let align = |c: Option<char>| match c {
            Some('<') => Some(Align::Left),
            Some('^') => Some(Align::Centre),
            Some('>') => Some(Align::Right),
            _ => None,
        };
        let mut format = Self {
            text: text.into(),
            fill: ' ',
            align: None,
            plus: false,
            alternate: false,
            zeros: false,
            width: 0,
            precision: None,
            kind: Kind::Display,
        };
        let mut characters = rest.chars();
        let (first, second) = (characters.next(), characters.next());
        if let (Some(fill), Some(found)) = (first, align(second)) {
            (format.fill, format.align) = (fill, Some(found));
            rest = characters.as_str();
        } else if let Some(found) = align(first) {
            format.align = Some(found);
            rest = &rest[1..];
        }
        let takes = |rest: &mut &str, sign| {
            let after = rest.strip_prefix(sign);
            *rest = after.unwrap_or(rest);
            after.is_some()
        };
        format.plus = takes(&mut rest, '+');
        format.alternate = takes(&mut rest, '#');
        format.zeros = takes(&mut rest, '0');
        let number = |rest: &mut &str| {
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, after) = rest.split_at(digits);
            *rest = after;
            number.parse::<usize>().ok()
        };
        format.width = number(&mut rest).unwrap_or(0);
        if takes(&mut rest, '.') {
            format.precision = number(&mut rest);
            if format.precision.is_none() {
                return wrong("a precision in a kernel is a number");
            }
        }
        if format.width.max(format.precision.unwrap_or(0)) > WIDEST {
            return wrong(&format!("more than {WIDEST} places"));
        }
        format.kind = match rest {
            "" => Kind::Display,
            "?" => Kind::Debug,
            "x" => Kind::LowerHex,
            "X" => Kind::UpperHex,
            "o" => Kind::Octal,
            "b" => Kind::Binary,
            "e" => Kind::LowerExp,
            "E" => Kind::UpperExp,
            _ => return wrong("not for values of kernels, whose widths and precisions are literals too"),
        };
        let fits = match format.kind {
            Kind::Display | Kind::Debug => true,
            Kind::LowerExp | Kind::UpperExp => ty.is_float(),
            _ => ty.is_integer(),
        };
        if !fits || ty.is_half() {
            return wrong(&format!("not for {ty}"));
        }
        Ok(format)
    }

    /// The text of a value of a type: its bits as they are in a column.
    fn write(&self, ty: Scalar, bits: u64) -> String {
        match ty {
            Scalar::Bool => {
                let text = if bits != 0 { "true" } else { "false" };
                let kept = self.precision.unwrap_or(text.len()).min(text.len());
                self.pad(&text[..kept], Align::Left)
            }
            Scalar::F32 => {
                let value = f32::from_bits(bits as u32);
                self.float(value.is_sign_negative(), value.is_nan(), &value.abs())
            }
            Scalar::F64 => {
                let value = f64::from_bits(bits);
                self.float(value.is_sign_negative(), value.is_nan(), &value.abs())
            }
            _ => self.integer(ty, bits),
        }
    }

    fn integer(&self, ty: Scalar, bits: u64) -> String {
        let (mask, value) = (u64::MAX >> (64 - ty.bits()), bits as i64);
        let (prefix, digits) = match self.kind {
            Kind::LowerHex => ("0x", format!("{:x}", bits & mask)),
            Kind::UpperHex => ("0x", format!("{:X}", bits & mask)),
            Kind::Octal => ("0o", format!("{:o}", bits & mask)),
            Kind::Binary => ("0b", format!("{:b}", bits & mask)),
            _ if ty.is_signed() => {
                return self.number(value < 0, "", &value.unsigned_abs().to_string());
            }
            _ => return self.number(false, "", &(bits & mask).to_string()),
        };
        self.number(false, if self.alternate { prefix } else { "" }, &digits)
    }

    fn float<T>(&self, negative: bool, nan: bool, magnitude: &T) -> String
    where
        T: core::fmt::Display + core::fmt::Debug + core::fmt::LowerExp + core::fmt::UpperExp,
    {
        if nan {
            let missing = self.width.saturating_sub(3) * usize::from(self.zeros);
            return self.pad(&format!("{}NaN", "0".repeat(missing)), Align::Right);
        }
        let digits = match (self.kind, self.precision) {
            (Kind::LowerExp, Some(precision)) => format!("{magnitude:.precision$e}"),
            (Kind::LowerExp, None) => format!("{magnitude:e}"),
            (Kind::UpperExp, Some(precision)) => format!("{magnitude:.precision$E}"),
            (Kind::UpperExp, None) => format!("{magnitude:E}"),
            (Kind::Debug, None) => format!("{magnitude:?}"),
            (_, Some(precision)) => format!("{magnitude:.precision$}"),
            (_, None) => magnitude.to_string(),
        };
        self.number(negative, "", &digits)
    }

    /// A number with its sign, filled with zeros where the format says so.
    fn number(&self, negative: bool, prefix: &str, digits: &str) -> String {
        let sign = if negative {
            "-"
        } else if self.plus {
            "+"
        } else {
            ""
        };
        let missing = self.width.saturating_sub(sign.len() + prefix.len() + digits.len());
        if self.zeros {
            return format!("{sign}{prefix}{}{digits}", "0".repeat(missing));
        }
        self.pad(&format!("{sign}{prefix}{digits}"), Align::Right)
    }

    fn pad(&self, text: &str, otherwise: Align) -> String {
        let missing = self.width.saturating_sub(text.len());
        let before = match self.align.unwrap_or(otherwise) {
            Align::Left => 0,
            Align::Centre => missing / 2,
            Align::Right => missing,
        };
        let fill = |count| core::iter::repeat_n(self.fill, count);
        fill(before).chain(text.chars()).chain(fill(missing - before)).collect()
    }
}

impl core::fmt::Display for Format {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
}

/// The type of the column for values of a type.
#[must_use]
pub const fn column_type(ty: Scalar) -> Scalar {
    match ty {
        Scalar::F32 | Scalar::F64 => ty,
        _ => Scalar::I64,
    }
}

/// The name of the array with columns of a type, or with the number of lines: `u32`.
#[must_use]
pub fn array_name(ty: Scalar) -> String {
    format!("{LOG}{ty}")
}

impl Array {
    /// Whether items store what they print in it, so that no two of them store in one element.
    #[must_use]
    pub fn is_log(&self) -> bool {
        self.name.starts_with(LOG)
    }
}

impl Kernel {
    /// The arrays of what it prints, in the order of the parameters, and their numbers of elements.
    /// Those of Python's kernels have their lengths from Python.
    #[must_use]
    pub fn logs(&self) -> Vec<(ArrayId, u64)> {
        let ids = self.parameters.iter().filter_map(|parameter| match parameter {
            Parameter::Array(id) if self.array(*id).is_log() => Some(*id),
            _ => None,
        });
        ids.map(|id| (id, self.log_length(self.array(id).element))).collect()
    }

    fn log_length(&self, ty: Scalar) -> u64 {
        if ty == Scalar::U32 {
            return 1;
        }
        let mut columns = if ty == Scalar::I64 { HEADS } else { 0 };
        for part in self.prints.iter().flat_map(|print| &print.parts) {
            if let Part::Value { ty: of, column, .. } = part
                && column_type(*of) == ty
            {
                columns = columns.max(column.saturating_add(1));
            }
        }
        u64::from(columns).saturating_mul(LINES)
    }

    /// What the items printed, those of an item together and in their order. `contents` are the
    /// bytes of [`logs`](Self::logs).
    #[must_use]
    pub fn printed(&self, contents: &[Vec<u8>]) -> String {
        let logs = self.logs();
        let cell = |ty: Scalar, at: u64| {
            let array = logs.iter().position(|(id, _)| self.array(*id).element == ty);
            let size = ty.bytes() as usize;
            let bytes = array.and_then(|array| contents.get(array)?.get(at as usize * size..)?.get(..size));
            let mut word = [0; 8];
            let from = if cfg!(target_endian = "big") { 8 - size } else { 0 };
            word[from..from + size].copy_from_slice(bytes.unwrap_or(&[0; 8][..size]));
            u64::from_ne_bytes(word)
        };
        let total = cell(Scalar::U32, 0);
        let mut lines: Vec<(u64, u64)> =
            (0..total.min(LINES)).map(|line| (cell(Scalar::I64, LINES + line), line)).collect();
        lines.sort_unstable();
        let mut text = String::new();
        for (_, line) in lines {
            let print = self.prints.get(cell(Scalar::I64, line) as usize);
            for part in print.iter().flat_map(|print| &print.parts) {
                match part {
                    Part::Text(part) => text += part,
                    Part::Value { ty, column, format } => {
                        text += &format.write(*ty, cell(column_type(*ty), u64::from(*column) * LINES + line));
                    }
                }
            }
        }
        if total > LINES {
            let (name, lost) = (&self.name, total - LINES);
            let least = if total >= u64::from(COUNTED) { "at least " } else { "" };
            text += &format!("kernel {name}: {least}{lost} more lines are lost: a launch keeps {LINES}\n");
        }
        text
    }
}

/// Whether each line has one writer, as proofs trust: an item stores in a line only directly after
/// it got the number of it, and the counter never returns to 0. Nodes of a front end are such.
#[must_use]
pub fn has_sound_lines(kernel: &Kernel) -> bool {
    if !kernel.arrays.iter().any(Array::is_log) {
        return true;
    }
    let is_log = |id: ArrayId| kernel.arrays.get(id.0 as usize).is_some_and(Array::is_log);
    let mut reads = false;
    let (mut touches, mut slots) = (0_usize, Vec::new());
    kernel.for_each(
        &mut |stmt| match &stmt.kind {
            StmtKind::Store(id, ..) | StmtKind::Atomic(_, id, ..) | StmtKind::CompareExchange(id, ..) => {
                touches += usize::from(is_log(*id));
            }
            _ => {}
        },
        &mut |expr| reads |= matches!(expr.kind, ExprKind::Load(id, _) if is_log(id)),
    );
    let prints = known_prints(&kernel.body, &is_log, &mut slots);
    let mut sets = 0;
    kernel.for_each(
        &mut |stmt| sets += usize::from(stmt.sets().is_some_and(|id| slots.contains(&id))),
        &mut |_| (),
    );
    !reads && prints == touches && sets == slots.len()
}

/// The number of accesses to hidden arrays in whole prints, and the variables of their lines.
fn known_prints(body: &[Stmt], is_log: &dyn Fn(ArrayId) -> bool, slots: &mut Vec<VarId>) -> usize {
    let mut count = 0;
    for (place, stmt) in body.iter().enumerate() {
        if let StmtKind::Atomic(Atomic::Add, array, index, one, Some(slot)) = &stmt.kind
            && is_log(*array)
            && is_number(index, 0)
            && is_number(one, 1)
            && let Some(accesses) =
                body.get(place + 1).and_then(|next| stores_of(next, *array, *slot, is_log))
        {
            slots.push(*slot);
            count += 1 + accesses;
        }
        count += stmt.blocks().into_iter().map(|block| known_prints(block, is_log, slots)).sum::<usize>();
    }
    count
}

fn is_number(expr: &Expr, number: u64) -> bool {
    matches!(expr.kind, ExprKind::Literal(literal) if literal.bits == number)
}

/// The accesses of the statement after the one that gives an item its line, if it is the right one.
fn stores_of(stmt: &Stmt, counter: ArrayId, slot: VarId, is_log: &dyn Fn(ArrayId) -> bool) -> Option<usize> {
    let is_slot = |expr: &Expr| matches!(expr.kind, ExprKind::Variable(id) if id == slot);
    let is_line = |expr: &Expr| matches!(&expr.kind, ExprKind::Cast(inner) if is_slot(inner));
    let StmtKind::If(fits, stores, full) = &stmt.kind else { return None };
    let ExprKind::Binary(Binary::Lt, line, most) = &fits.kind else { return None };
    let is_store = |stmt: &Stmt| {
        let StmtKind::Store(array, index, _) = &stmt.kind else { return false };
        let ExprKind::Binary(Binary::Add, start, line) = &index.kind else { return false };
        let column = matches!(start.kind, ExprKind::Literal(literal) if literal.bits % LINES == 0);
        is_log(*array) && *array != counter && column && is_line(line)
    };
    let [Stmt { kind: StmtKind::If(is_full, back, none), .. }] = &full[..] else { return None };
    let ExprKind::Binary(Binary::Ge, counted, limit) = &is_full.kind else { return None };
    let [Stmt { kind: StmtKind::Atomic(Atomic::Sub, array, index, one, None), .. }] = &back[..] else {
        return None;
    };
    let is_back = *array == counter && is_number(index, 0) && is_number(one, 1);
    let is_limit = is_slot(counted) && is_number(limit, COUNTED.into()) && none.is_empty();
    let is_right =
        is_line(line) && is_number(most, LINES) && stores.iter().all(is_store) && is_back && is_limit;
    is_right.then_some(stores.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, ty: Scalar, bits: u64) -> String {
        Format::parse(text, ty).expect("a format of Rust").write(ty, bits)
    }

    #[test]
    fn values_are_written_as_by_rust() {
        macro_rules! same {
            ($ty:ident, $variant:ident, [$($value:expr),+], $bits:expr, [$($format:literal),+]) => {
                for value in [$($value),+] {
                    let bits: fn($ty) -> u64 = $bits;
                    $(assert_eq!(
                        written($format, Scalar::$variant, bits(value)),
                        format!(concat!("{:", $format, "}"), value),
                        "{value:?} as {{:{}}}", $format
                    );)+
                }
            };
        }
        same!(
            i8,
            I8,
            [0, -1, 100, i8::MIN],
            |v| v as i64 as u64,
            [
                "", "?", "x", "#x", "X", "b", "#010b", "o", "#o", "+", "5", "<5", "^6", "*^7", "05", "+05",
                "#X", "#06x"
            ]
        );
        same!(u64, U64, [0, 7, u64::MAX], |v| v, ["", "x", "30", "030", "+", "b"]);
        same!(i64, I64, [0, i64::MIN], |v| v as u64, ["", "x", "+25", "-<30"]);
        same!(u16, U16, [65535], |v| v.into(), ["", "b", "#b", "09"]);
        same!(bool, Bool, [true, false], |v| v.into(), ["", "?", "7", ">7", "^7", "x<8", ".2", "08"]);
        same!(
            f32,
            F32,
            [0.0, -0.0, 0.1, 3.4e38, 1e-45, -2.5, f32::INFINITY, f32::NEG_INFINITY, f32::NAN],
            |v| u64::from(v.to_bits()),
            ["", "?", ".3", "+", "08.2", "e", ".2E", "9", "<9.1", "+010", "012e", "E", "?<60", ".0"]
        );
        same!(
            f64,
            F64,
            [0.1, 1e300, -1.5e-7, f64::NAN, 1e16],
            |v| v.to_bits(),
            ["", "?", ".3e", "+", "020", "e"]
        );
    }

    #[test]
    fn other_formats_are_refused() {
        for (text, ty) in [
            ("x", Scalar::F32),
            ("e", Scalar::I32),
            ("b", Scalar::Bool),
            ("5$", Scalar::I32),
            (".*", Scalar::F32),
            ("1001", Scalar::I32),
            ("p", Scalar::U64),
            ("", Scalar::F16),
        ] {
            assert!(Format::parse(text, ty).is_err(), "{text}");
        }
    }
}
