//! Format strings of Arrow's types.

use core::fmt::{self, Write};

use crate::dtype::{ByteOrder, Dtype, Kind, Resolution, TimeUnit};
use crate::error::{Key, Result, TypeError};

/// The meaning of a format string.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Elements of this type, one after the other.
    Values(Dtype),
    /// Lists of so many entries, which are the column's child.
    Lists(i64),
}

impl Format {
    /// Reads a format string.
    ///
    /// The time zone of a point in time is left out: the numbers count from 1970 in UTC.
    ///
    /// # Errors
    /// [`TypeError::NoArray`] for a type whose columns are no arrays, [`TypeError::UnknownFormat`]
    /// for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let number = |kind, size| {
            Dtype::number(kind, size)
                .map(Self::Values)
                .ok_or_else(|| Key::Format.error(TypeError::UnknownFormat))
        };
        match text {
            "c" => number(Kind::Int, 1),
            "C" => number(Kind::Uint, 1),
            "s" => number(Kind::Int, 2),
            "S" => number(Kind::Uint, 2),
            "i" => number(Kind::Int, 4),
            "I" => number(Kind::Uint, 4),
            "l" => number(Kind::Int, 8),
            "L" => number(Kind::Uint, 8),
            "e" => number(Kind::Float, 2),
            "f" => number(Kind::Float, 4),
            "g" => number(Kind::Float, 8),
            "tdm" => Ok(time(Kind::Datetime, TimeUnit::Millisecond)),
            _ => match no_array(text) {
                Some(columns) => Err(Key::Format.error(TypeError::NoArray { columns })),
                None => parametric(text).ok_or_else(|| Key::Format.error(TypeError::UnknownFormat)),
            },
        }
    }
}

const fn time(kind: Kind, unit: TimeUnit) -> Format {
    let dtype = Dtype::plain(kind, ByteOrder::NATIVE, 8);
    Format::Values(dtype.with_resolution(Some(Resolution { count: 1, unit })))
}

/// Formats with a unit or a size.
fn parametric(text: &str) -> Option<Format> {
    if let Some(size) = text.strip_prefix("w:") {
        return count(size)
            .and_then(|size| u32::try_from(size).ok())
            .and_then(Dtype::void)
            .map(Format::Values);
    }
    if let Some(size) = text.strip_prefix("+w:") {
        return count(size).map(Format::Lists);
    }
    if let Some(unit) = text.strip_prefix("tD") {
        return unit_of(unit).map(|unit| time(Kind::Timedelta, unit));
    }
    let (unit, _zone) = text.strip_prefix("ts")?.split_once(':')?;
    unit_of(unit).map(|unit| time(Kind::Datetime, unit))
}

/// A number of digits alone.
fn count(text: &str) -> Option<i64> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

fn unit_of(text: &str) -> Option<TimeUnit> {
    match text {
        "s" => Some(TimeUnit::Second),
        "m" => Some(TimeUnit::Millisecond),
        "u" => Some(TimeUnit::Microsecond),
        "n" => Some(TimeUnit::Nanosecond),
        _ => None,
    }
}

/// What a column of a type without an array contains.
fn no_array(text: &str) -> Option<&'static str> {
    Some(match text {
        "n" => "nulls",
        "b" => "booleans, which are packed bits,",
        "z" | "Z" | "vz" => "bytes of any length",
        "u" | "U" | "vu" => "texts",
        "tdD" => "days of 4 bytes",
        "tts" | "ttm" | "ttu" | "ttn" => "times of day",
        "tiM" | "tiD" | "tin" => "calendar intervals",
        "+l" | "+L" | "+vl" | "+vL" => "lists of any length",
        "+s" => "structures",
        "+m" => "maps",
        "+r" => "runs",
        _ if text.starts_with("d:") => "decimals",
        _ if text.starts_with("+ud:") || text.starts_with("+us:") => "unions",
        _ => return None,
    })
}

/// The format string of an element type, as a value that prints it; `None` if Arrow has none, or
/// another byte order.
#[must_use]
pub fn format_of(dtype: Dtype) -> Option<impl fmt::Display> {
    if !dtype.is_native() {
        return None;
    }
    let text_format = |text| Some(FormatText::Text(text));
    match (dtype.kind(), dtype.itemsize()) {
        (Kind::Int, 1) => text_format("c"),
        (Kind::Uint, 1) => text_format("C"),
        (Kind::Int, 2) => text_format("s"),
        (Kind::Uint, 2) => text_format("S"),
        (Kind::Int, 4) => text_format("i"),
        (Kind::Uint, 4) => text_format("I"),
        (Kind::Int, 8) => text_format("l"),
        (Kind::Uint, 8) => text_format("L"),
        (Kind::Float, 2) => text_format("e"),
        (Kind::Float, 4) => text_format("f"),
        (Kind::Float, 8) => text_format("g"),
        (Kind::Datetime, 8) => unit_char(dtype).map(|unit| FormatText::Unit("ts", unit, ":")),
        (Kind::Timedelta, 8) => unit_char(dtype).map(|unit| FormatText::Unit("tD", unit, "")),
        (Kind::Void, size) if size > 0 => Some(FormatText::Bytes(size)),
        _ => None,
    }
}

/// The letter of a resolution that Arrow has.
fn unit_char(dtype: Dtype) -> Option<char> {
    let Resolution { count: 1, unit } = dtype.resolution()? else { return None };
    match unit {
        TimeUnit::Second => Some('s'),
        TimeUnit::Millisecond => Some('m'),
        TimeUnit::Microsecond => Some('u'),
        TimeUnit::Nanosecond => Some('n'),
        _ => None,
    }
}

enum FormatText {
    Text(&'static str),
    Unit(&'static str, char, &'static str),
    Bytes(u32),
}

impl fmt::Display for FormatText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Unit(before, unit, after) => {
                f.write_str(before)?;
                f.write_char(*unit)?;
                f.write_str(after)
            }
            Self::Bytes(size) => write!(f, "w:{size}"),
        }
    }
}
