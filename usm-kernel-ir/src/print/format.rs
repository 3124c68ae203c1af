//! Formats of values, by the rules of Rust.

use alloc::format;
use alloc::string::{String, ToString};

use crate::scalar::Scalar;

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
        if let (Some(fill), Some(alignment)) = (first, align(second)) {
            (format.fill, format.align) = (fill, Some(alignment));
            rest = characters.as_str();
        } else if let Some(alignment) = align(first) {
            format.align = Some(alignment);
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
    pub(super) fn write(&self, ty: Scalar, bits: u64) -> String {
        match ty {
            Scalar::Bool => {
                let text = if bits != 0 { "true" } else { "false" };
                let length = self.precision.unwrap_or(text.len()).min(text.len());
                self.pad(&text[..length], Align::Left)
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
            let padding = self.width.saturating_sub(3) * usize::from(self.zeros);
            return self.pad(&format!("{}NaN", "0".repeat(padding)), Align::Right);
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
        let padding = self.width.saturating_sub(sign.len() + prefix.len() + digits.len());
        if self.zeros {
            return format!("{sign}{prefix}{}{digits}", "0".repeat(padding));
        }
        self.pad(&format!("{sign}{prefix}{digits}"), Align::Right)
    }

    fn pad(&self, text: &str, default_align: Align) -> String {
        let padding = self.width.saturating_sub(text.len());
        let before = match self.align.unwrap_or(default_align) {
            Align::Left => 0,
            Align::Centre => padding / 2,
            Align::Right => padding,
        };
        let fill = |count| core::iter::repeat_n(self.fill, count);
        fill(before).chain(text.chars()).chain(fill(padding - before)).collect()
    }
}

impl core::fmt::Display for Format {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.text)
    }
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
