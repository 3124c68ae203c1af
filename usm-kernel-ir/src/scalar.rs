//! Types of values, and values.

use core::fmt;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// `false` or `true`.
    Bool,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits: ids, sizes and indices.
    U64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// IEEE 754 binary16. It has no operator but casts from and to `f32`, and copies.
    F16,
    /// The upper half of a binary32, with the operators of [`F16`](Self::F16).
    Bf16,
}

impl Scalar {
    /// All types.
    pub const ALL: [Self; 13] = [
        Self::Bool,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::F32,
        Self::F64,
        Self::F16,
        Self::Bf16,
    ];

    /// Its name, which is Rust's.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
        }
    }

    /// The type of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// Size of a value in bits; an element of an array of `bool` has 8.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 8,
            Self::I16 | Self::U16 | Self::F16 | Self::Bf16 => 16,
            Self::I32 | Self::U32 | Self::F32 => 32,
            Self::I64 | Self::U64 | Self::F64 => 64,
        }
    }

    /// Size of an element in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bits() as u64 / 8
    }

    /// Whether it is a signed integer.
    #[must_use]
    pub const fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    /// Whether it is an integer.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        !matches!(self, Self::Bool | Self::F32 | Self::F64 | Self::F16 | Self::Bf16)
    }

    /// Whether it is a floating point number with arithmetic.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F64)
    }

    /// Whether it is a floating point number of 16 bits, which has no arithmetic.
    #[must_use]
    pub const fn is_half(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16)
    }

    /// The unsigned integer of the same width.
    #[must_use]
    pub const fn unsigned(self) -> Self {
        match self.bits() {
            8 => Self::U8,
            16 => Self::U16,
            32 => Self::U32,
            _ => Self::U64,
        }
    }

    /// The least value of an integer, if `i64` can hold it.
    #[must_use]
    pub const fn min(self) -> i64 {
        match self {
            Self::I8 => i8::MIN as i64,
            Self::I16 => i16::MIN as i64,
            Self::I32 => i32::MIN as i64,
            Self::I64 => i64::MIN,
            _ => 0,
        }
    }

    /// The greatest value of an integer; `None` for `u64`, whose greatest value exceeds `i64`.
    #[must_use]
    pub const fn max(self) -> Option<i64> {
        match self {
            Self::Bool => Some(1),
            Self::I8 => Some(i8::MAX as i64),
            Self::I16 => Some(i16::MAX as i64),
            Self::I32 => Some(i32::MAX as i64),
            Self::I64 => Some(i64::MAX),
            Self::U8 => Some(u8::MAX as i64),
            Self::U16 => Some(u16::MAX as i64),
            Self::U32 => Some(u32::MAX as i64),
            _ => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value: its bits, in the low end of a word. Signed integers are sign-extended, unsigned ones
/// zero-extended, so that equal values have equal words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Literal {
    /// The type.
    pub ty: Scalar,
    /// The bits.
    pub bits: u64,
}

impl Literal {
    /// An integer or `bool`, cut to the width of its type.
    #[must_use]
    pub const fn integer(ty: Scalar, value: u64) -> Self {
        let bits = match ty {
            Scalar::Bool => (value != 0) as u64,
            Scalar::I8 => value as i8 as u64,
            Scalar::I16 => value as i16 as u64,
            Scalar::I32 => value as i32 as u64,
            Scalar::U8 => value as u8 as u64,
            Scalar::U16 | Scalar::F16 | Scalar::Bf16 => value as u16 as u64,
            Scalar::U32 | Scalar::F32 => value as u32 as u64,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => value,
        };
        Self { ty, bits }
    }

    /// A `f32`.
    #[must_use]
    pub const fn f32(value: f32) -> Self {
        Self { ty: Scalar::F32, bits: value.to_bits() as u64 }
    }

    /// A `f64`.
    #[must_use]
    pub const fn f64(value: f64) -> Self {
        Self { ty: Scalar::F64, bits: value.to_bits() }
    }

    /// A `bool`.
    #[must_use]
    pub const fn bool(value: bool) -> Self {
        Self { ty: Scalar::Bool, bits: value as u64 }
    }

    /// The value of these bytes in the byte order of this machine. Missing bytes are zero. For
    /// `bool` every byte except zero is true.
    #[must_use]
    pub fn from_ne_bytes(ty: Scalar, bytes: &[u8]) -> Self {
        let mut word = [0; 8];
        let width = ty.bytes() as usize;
        let start = if cfg!(target_endian = "big") { 8 - width } else { 0 };
        for (to, from) in word.iter_mut().skip(start).zip(bytes.iter().take(width)) {
            *to = *from;
        }
        Self::integer(ty, u64::from_ne_bytes(word))
    }

    /// The value's bytes in the byte order of this machine: the first field has them, the second is
    /// their number.
    #[must_use]
    pub fn to_ne_bytes(self) -> ([u8; 8], usize) {
        let width = self.ty.bytes() as usize;
        let mut word = self.bits.to_ne_bytes();
        if cfg!(target_endian = "big") {
            word.rotate_left(8 - width);
        }
        (word, width)
    }

    /// The value of a `f32`.
    #[must_use]
    pub const fn to_f32(self) -> f32 {
        f32::from_bits(self.bits as u32)
    }

    /// The value of a `f64`.
    #[must_use]
    pub const fn to_f64(self) -> f64 {
        f64::from_bits(self.bits)
    }

    /// The value of an integer, if `i64` can hold it.
    #[must_use]
    pub fn to_i64(self) -> Option<i64> {
        match self.ty {
            Scalar::F32 | Scalar::F64 | Scalar::F16 | Scalar::Bf16 => None,
            Scalar::U64 => i64::try_from(self.bits).ok(),
            _ => Some(self.bits as i64),
        }
    }
}
