//! Types of numbers.

/// A type of numbers that conversions know, in the machine's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Number {
    /// A byte; every value but 0 is true, and 1 is written.
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
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Complex: two of binary32, the real part first.
    C64,
    /// Complex: two of binary64, the real part first.
    C128,
}

impl Number {
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
        Self::C64,
        Self::C128,
    ];

    /// Bytes of a number.
    #[must_use]
    pub const fn size(self) -> usize {
        self.part().1 * if self.is_complex() { 2 } else { 1 }
    }

    /// Whether it has an imaginary part.
    #[must_use]
    pub const fn is_complex(self) -> bool {
        matches!(self, Self::C64 | Self::C128)
    }

    /// Rust's name and the bytes of the type of the number, or of its parts if it is complex. A
    /// truth value is a `u8`.
    #[must_use]
    pub const fn part(self) -> (&'static str, usize) {
        match self {
            Self::Bool | Self::U8 => ("u8", 1),
            Self::I8 => ("i8", 1),
            Self::I16 => ("i16", 2),
            Self::U16 => ("u16", 2),
            Self::I32 => ("i32", 4),
            Self::U32 => ("u32", 4),
            Self::I64 => ("i64", 8),
            Self::U64 => ("u64", 8),
            Self::F32 | Self::C64 => ("f32", 4),
            Self::F64 | Self::C128 => ("f64", 8),
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// Rust's types of numbers. `[f32; 2]` and `[f64; 2]` are complex.
pub trait Numeric: sealed::Sealed {
    /// The type.
    const NUMBER: Number;
}

macro_rules! numeric {
    ($($ty:ty = $number:ident),+) => {
        $(impl sealed::Sealed for $ty {}
        impl Numeric for $ty {
            const NUMBER: Number = Number::$number;
        })+
    };
}

numeric!(
    i8 = I8,
    i16 = I16,
    i32 = I32,
    i64 = I64,
    u8 = U8,
    u16 = U16,
    u32 = U32,
    u64 = U64,
    f32 = F32,
    f64 = F64,
    [f32; 2] = C64,
    [f64; 2] = C128
);
