//! Type strings: `<f4`, `|V12`, `<M8[25ns]`.
//!
//! The strict grammar is NumPy's output: an order (`<`, `>`, `|`, `=`), a kind, a decimal size and,
//! for `m` and `M`, an optional bracket with a unit. [`Mode::Numpy`] adds the forms that NumPy was
//! measured to read.

use crate::dtype::{ByteOrder, Dtype, Extended, Kind, MAX_ITEMSIZE, Resolution, TimeUnit};
use crate::error::TypeError;
use crate::policy::Mode;

/// Longest accepted type string in bytes; the grammar's longest has 30.
pub const MAX_TYPESTR: usize = 64;

/// Parses one type string.
///
/// `hint` is the producer's name for a type that the string cannot name (`<V2`, `<f1`, `<W4`); it
/// must fit the string. A multi-byte type with order `|` is native in [`Mode::Numpy`] and refused
/// in [`Mode::Strict`]. (SYCL dictionaries are an exception, see [`crate::sycl`].)
///
/// # Errors
/// A [`TypeError`] that names the character, the size or the offset.
///
/// ```
/// use usm_interface::{typestr, Kind, Mode};
/// let dtype = typestr::parse("<M8[25ns]", Mode::Strict, None).unwrap();
/// assert_eq!((dtype.kind(), dtype.itemsize()), (Kind::Datetime, 8));
/// assert_eq!(dtype.to_string(), "<M8[25ns]");
/// ```
pub fn parse(text: &str, mode: Mode, hint: Option<Extended>) -> Result<Dtype, TypeError> {
    resolve(parse_unresolved(text.as_bytes(), mode, hint)?, mode == Mode::Numpy)
}

/// Resolves `|` on a multi-byte type: native order if `is_allowed`, otherwise a refusal.
pub(crate) const fn resolve(mut dtype: Dtype, is_allowed: bool) -> Result<Dtype, TypeError> {
    if matches!(dtype.order, ByteOrder::None) && has_order(dtype.kind, dtype.size) {
        if !is_allowed {
            return Err(TypeError::BadByteOrder { order: '|' });
        }
        dtype.order = ByteOrder::NATIVE;
    }
    Ok(dtype)
}

/// Whether elements of this kind and size have a byte order.
pub(crate) const fn has_order(kind: Kind, size: u32) -> bool {
    match kind {
        Kind::Int | Kind::Uint | Kind::Float => size > 1,
        Kind::Complex | Kind::Timedelta | Kind::Datetime | Kind::Unicode => true,
        _ => false,
    }
}

/// [`parse`] without [`resolve`]: `|` on a multi-byte type stays [`ByteOrder::None`].
#[inline]
pub(crate) fn parse_unresolved(text: &[u8], mode: Mode, hint: Option<Extended>) -> Result<Dtype, TypeError> {
    if let (None, &[order, kind, digit]) = (hint, text) {
        if let Some(dtype) = short(order, kind, digit) {
            return Ok(dtype);
        }
    }
    parse_general(text, mode, hint)
}

/// The common three-character forms of numbers.
#[inline]
pub(crate) fn short(order: u8, kind: u8, digit: u8) -> Option<Dtype> {
    // Bit n: the kind has n bytes, with `<` and `>` or with `|`. One byte has no order.
    let (kind, order_sizes, other) = match kind {
        b'f' => (Kind::Float, 1 << 2 | 1 << 4 | 1 << 8, 1 << 2 | 1 << 4 | 1 << 8),
        b'i' => (Kind::Int, 1 << 2 | 1 << 4 | 1 << 8, 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8),
        b'u' => (Kind::Uint, 1 << 2 | 1 << 4 | 1 << 8, 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8),
        b'c' => (Kind::Complex, 1 << 8, 1 << 8),
        b'b' => (Kind::Bool, 0, 1 << 1),
        _ => return None,
    };
    let (order, sizes) = match order {
        b'<' => (ByteOrder::Little, order_sizes),
        b'>' => (ByteOrder::Big, order_sizes),
        b'|' => (ByteOrder::None, other),
        _ => return None,
    };
    let size = u32::from(digit.wrapping_sub(b'0'));
    if 1u32.checked_shl(size).unwrap_or(0) & sizes == 0 {
        None
    } else {
        Some(Dtype::plain(kind, order, size))
    }
}

fn parse_general(text: &[u8], mode: Mode, hint: Option<Extended>) -> Result<Dtype, TypeError> {
    if let Some(hint) = hint {
        if text == hint.typestr().as_bytes() {
            return Ok(Dtype::extended(hint));
        }
        return Err(TypeError::HintMismatch { expected: hint.typestr() });
    }
    if text.len() > MAX_TYPESTR {
        return Err(TypeError::TypestrSyntax { offset: MAX_TYPESTR });
    }
    match mode {
        Mode::Strict => parse_parts(text, false),
        Mode::Numpy => match crate::loose::name(text) {
            Some(dtype) => Ok(dtype),
            None => parse_parts(text, true),
        },
    }
}

/// Reads order, kind, size and unit. `loose` allows forms that NumPy reads but does not write.
fn parse_parts(text: &[u8], loose: bool) -> Result<Dtype, TypeError> {
    let mut at = Cursor { text, pos: 0 };
    let order = match at.peek() {
        Some(order @ (b'<' | b'>' | b'|' | b'=')) => {
            at.bump();
            order
        }
        _ if loose => b'=',
        _ => return Err(at.unexpected()),
    };
    let Some(letter) = at.peek().filter(u8::is_ascii_alphabetic) else {
        return Err(at.unexpected());
    };
    at.bump();
    let kind = match letter {
        b'b' => Kind::Bool,
        b'i' => Kind::Int,
        b'u' => Kind::Uint,
        b'f' => Kind::Float,
        b'c' => Kind::Complex,
        b'm' => Kind::Timedelta,
        b'M' => Kind::Datetime,
        b'O' => Kind::Object,
        b'S' => Kind::Bytes,
        b'U' => Kind::Unicode,
        b'V' => Kind::Void,
        b't' => Kind::BitField,
        b'W' => return Err(TypeError::NeedsHint),
        other => {
            return Err(TypeError::UnknownKind { kind: char::from(other) });
        }
    };
    let has_unit = matches!(kind, Kind::Timedelta | Kind::Datetime);
    // A datetime with a unit needs its size.
    let loose_size = loose && !(has_unit && text.contains(&b'['));
    let before = at;
    if loose_size {
        // NumPy reads the size with strtol, which skips blanks and a sign.
        while at.peek().is_some_and(|b| matches!(b, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')) {
            at.bump();
        }
        if at.peek() == Some(b'+') {
            at.bump();
        }
    }
    if !at.peek().is_some_and(|b| b.is_ascii_digit()) {
        at = before;
    }
    let number = at.digits(loose_size)?;
    let number = match number {
        // NumPy reads the `O4` of 32-bit machines as its own pointer size.
        Some(4) if loose && kind == Kind::Object => None,
        number => number,
    };
    let size = size_in_bytes(kind, number, at)?;
    let resolution = if has_unit { at.resolution(loose)? } else { None };
    if at.peek().is_some() {
        return Err(at.unexpected());
    }
    let order = byte_order(order, kind, size, loose)?;
    Ok(Dtype::plain(kind, order, size).with_resolution(resolution))
}

fn size_in_bytes(kind: Kind, number: Option<u64>, at: Cursor<'_>) -> Result<u32, TypeError> {
    let pointer = u32::try_from(size_of::<usize>()).unwrap_or(8);
    let Some(number) = number else {
        return if kind == Kind::Object { Ok(pointer) } else { Err(at.unexpected()) };
    };
    let bad = || TypeError::BadItemsize { kind: kind.char(), size: number };
    let bytes = match kind {
        Kind::Unicode => number.checked_mul(4).ok_or_else(bad)?,
        Kind::BitField if number % 8 == 0 => number / 8,
        Kind::BitField => return Err(bad()),
        _ => number,
    };
    let codes = match kind {
        Kind::Bool => bytes == 1,
        Kind::Int | Kind::Uint => matches!(bytes, 1 | 2 | 4 | 8),
        Kind::Float if bytes == 1 => return Err(TypeError::NeedsHint),
        Kind::Float => matches!(bytes, 2 | 4 | 8 | 12 | 16),
        Kind::Complex => matches!(bytes, 8 | 16 | 24 | 32),
        Kind::Timedelta | Kind::Datetime => bytes == 8,
        Kind::Object => bytes == u64::from(pointer),
        _ => true,
    };
    if !codes {
        return Err(bad());
    }
    match u32::try_from(bytes) {
        Ok(size) if size <= MAX_ITEMSIZE => Ok(size),
        _ => Err(TypeError::ItemsizeLimit { size: bytes }),
    }
}

fn byte_order(order: u8, kind: Kind, size: u32, loose: bool) -> Result<ByteOrder, TypeError> {
    let bad = Err(TypeError::BadByteOrder { order: char::from(order) });
    if has_order(kind, size) {
        return Ok(match order {
            b'<' => ByteOrder::Little,
            b'>' => ByteOrder::Big,
            b'=' => ByteOrder::NATIVE,
            _ => ByteOrder::None,
        });
    }
    match (order, kind) {
        (b'|', _) => Ok(ByteOrder::None),
        // ml_dtypes and torch write `<V2`. The order is kept, so that it is written back unchanged.
        (b'<', Kind::Void) => Ok(ByteOrder::Little),
        (b'>', Kind::Void) => Ok(ByteOrder::Big),
        _ if loose => Ok(ByteOrder::None),
        _ => bad,
    }
}

#[derive(Clone, Copy)]
struct Cursor<'a> {
    text: &'a [u8],
    pos: usize,
}

impl<'a> Cursor<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    fn bump(&mut self) {
        self.pos = self.pos.saturating_add(1);
    }

    fn unexpected(self) -> TypeError {
        TypeError::TypestrSyntax { offset: self.pos }
    }

    /// Reads a decimal number, if there is one. Only the loose form allows a leading zero.
    fn digits(&mut self, loose: bool) -> Result<Option<u64>, TypeError> {
        let start = self.pos;
        let mut value = 0u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let digit = u64::from(digit.wrapping_sub(b'0'));
            value = value
                .checked_mul(10)
                .and_then(|v| v.checked_add(digit))
                .ok_or(TypeError::ItemsizeLimit { size: u64::MAX })?;
            self.bump();
        }
        let count = self.pos.saturating_sub(start);
        if !loose && count > 1 && self.text.get(start) == Some(&b'0') {
            return Err(TypeError::TypestrSyntax { offset: start });
        }
        Ok((count > 0).then_some(value))
    }

    fn resolution(&mut self, loose: bool) -> Result<Option<Resolution>, TypeError> {
        if self.peek() != Some(b'[') {
            return Ok(None);
        }
        self.bump();
        let count = match self.digits(loose).map_err(|_| TypeError::BadTimeUnit)? {
            None => 1,
            Some(count) if count <= u64::from(MAX_ITEMSIZE) => u32::try_from(count).unwrap_or(0),
            Some(_) => return Err(TypeError::BadTimeUnit),
        };
        let rest: &'a [u8] = self.text.get(self.pos..).unwrap_or_default();
        let Some((b']', name)) = rest.split_last() else {
            return Err(TypeError::BadTimeUnit);
        };
        self.pos = self.text.len();
        if loose && name == b"generic" {
            return Ok(None);
        }
        let unit = match TimeUnit::from_bytes(name) {
            Some(unit) => unit,
            None if loose && name == "μs".as_bytes() => TimeUnit::Microsecond,
            None => return Err(TypeError::BadTimeUnit),
        };
        Ok(Some(Resolution { count, unit }))
    }
}
