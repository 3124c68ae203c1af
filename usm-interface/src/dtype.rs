//! Element types: kind, byte order, size, datetime resolution.

use core::fmt;

/// Largest element in bytes: NumPy keeps `itemsize` in a C `int`.
pub const MAX_ITEMSIZE: u32 = 0x7fff_ffff;

/// The kind of an element, by the characters of the array interface.
///
/// Has every kind of the standard. Types that the standard cannot spell are [`Kind::Extended`]. C
/// pointers exist only in PEP 3118 buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// `b`: boolean, 1 byte.
    Bool,
    /// `i`: signed integer of 1, 2, 4 or 8 bytes.
    Int,
    /// `u`: unsigned integer of 1, 2, 4 or 8 bytes.
    Uint,
    /// `f`: IEEE floating point of 2, 4, 8 bytes, or the platform's extended type of 12 or 16.
    Float,
    /// `c`: complex of 8, 16, 24 or 32 bytes.
    Complex,
    /// `m`: time difference of 8 bytes.
    Timedelta,
    /// `M`: point in time of 8 bytes.
    Datetime,
    /// `O`: pointer to a Python object. Never read from a foreign address.
    Object,
    /// `S`: zero-terminated bytes.
    Bytes,
    /// `U`: UCS-4 text; the type string counts code points.
    Unicode,
    /// `V`: raw bytes, or a structure.
    Void,
    /// `t`: bit field; the type string counts bits, an element fills whole bytes.
    BitField,
    /// A type that the type string cannot name: from a producer's hint or from DLPack.
    Extended(Extended),
    /// `P`, `&`, `X{}` of PEP 3118: a C pointer.
    Pointer,
}

impl Kind {
    /// The character of the type string.
    #[must_use]
    pub const fn char(self) -> char {
        match self {
            Self::Bool => 'b',
            Self::Int => 'i',
            Self::Uint => 'u',
            Self::Float => 'f',
            Self::Complex => 'c',
            Self::Timedelta => 'm',
            Self::Datetime => 'M',
            Self::Object => 'O',
            Self::Bytes => 'S',
            Self::Unicode => 'U',
            Self::Void => 'V',
            Self::BitField => 't',
            Self::Extended(_) => 'V',
            Self::Pointer => 'P',
        }
    }
}

/// Element types that no type string can name. Their storage is that of `ml_dtypes` and torch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
#[allow(missing_docs)] // The names are the documentation: they are those of `ml_dtypes` and `dlpack.h`.
pub enum Extended {
    Bfloat16,
    Float8E3M4,
    Float8E4M3,
    Float8E4M3B11Fnuz,
    Float8E4M3Fn,
    Float8E4M3Fnuz,
    Float8E5M2,
    Float8E5M2Fnuz,
    Float8E8M0Fnu,
    Float6E2M3Fn,
    Float6E3M2Fn,
    Float4E2M1Fn,
    Int1,
    Int2,
    Int4,
    Uint1,
    Uint2,
    Uint4,
    /// Two half-precision floats.
    Complex32,
    /// Two bfloat16.
    Bcomplex32,
}

impl Extended {
    /// Every extended type.
    pub const ALL: [Self; 20] = [
        Self::Bfloat16,
        Self::Float8E3M4,
        Self::Float8E4M3,
        Self::Float8E4M3B11Fnuz,
        Self::Float8E4M3Fn,
        Self::Float8E4M3Fnuz,
        Self::Float8E5M2,
        Self::Float8E5M2Fnuz,
        Self::Float8E8M0Fnu,
        Self::Float6E2M3Fn,
        Self::Float6E3M2Fn,
        Self::Float4E2M1Fn,
        Self::Int1,
        Self::Int2,
        Self::Int4,
        Self::Uint1,
        Self::Uint2,
        Self::Uint4,
        Self::Complex32,
        Self::Bcomplex32,
    ];

    /// The name in `ml_dtypes`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bfloat16 => "bfloat16",
            Self::Float8E3M4 => "float8_e3m4",
            Self::Float8E4M3 => "float8_e4m3",
            Self::Float8E4M3B11Fnuz => "float8_e4m3b11fnuz",
            Self::Float8E4M3Fn => "float8_e4m3fn",
            Self::Float8E4M3Fnuz => "float8_e4m3fnuz",
            Self::Float8E5M2 => "float8_e5m2",
            Self::Float8E5M2Fnuz => "float8_e5m2fnuz",
            Self::Float8E8M0Fnu => "float8_e8m0fnu",
            Self::Float6E2M3Fn => "float6_e2m3fn",
            Self::Float6E3M2Fn => "float6_e3m2fn",
            Self::Float4E2M1Fn => "float4_e2m1fn",
            Self::Int1 => "int1",
            Self::Int2 => "int2",
            Self::Int4 => "int4",
            Self::Uint1 => "uint1",
            Self::Uint2 => "uint2",
            Self::Uint4 => "uint4",
            Self::Complex32 => "complex32",
            Self::Bcomplex32 => "bcomplex32",
        }
    }

    /// The type of this `ml_dtypes` name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.name() == name)
    }

    /// The type string that its producers export.
    #[must_use]
    pub const fn typestr(self) -> &'static str {
        match self {
            Self::Bfloat16 => "<V2",
            Self::Float8E5M2 => "<f1",
            Self::Complex32 | Self::Bcomplex32 => "<W4",
            _ => "<V1",
        }
    }

    /// Bytes of one element in an array interface; sub-byte types fill a whole byte there.
    #[must_use]
    pub const fn itemsize(self) -> u32 {
        match self {
            Self::Bfloat16 => 2,
            Self::Complex32 | Self::Bcomplex32 => 4,
            _ => 1,
        }
    }

    /// Bits of the value.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::Bfloat16 => 16,
            Self::Complex32 | Self::Bcomplex32 => 32,
            Self::Float6E2M3Fn | Self::Float6E3M2Fn => 6,
            Self::Float4E2M1Fn | Self::Int4 | Self::Uint4 => 4,
            Self::Int2 | Self::Uint2 => 2,
            Self::Int1 | Self::Uint1 => 1,
            _ => 8,
        }
    }
}

/// Byte order of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ByteOrder {
    /// `<`.
    Little,
    /// `>`.
    Big,
    /// `|`: the type has no byte order (one byte, bytes, raw, object).
    None,
}

impl ByteOrder {
    /// The order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// The character of the type string.
    #[must_use]
    pub const fn char(self) -> char {
        match self {
            Self::Little => '<',
            Self::Big => '>',
            Self::None => '|',
        }
    }
}

/// Unit of a datetime or timedelta.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[allow(missing_docs)]
pub enum TimeUnit {
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Picosecond,
    Femtosecond,
    Attosecond,
}

impl TimeUnit {
    /// The spelling of the unit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Year => "Y",
            Self::Month => "M",
            Self::Week => "W",
            Self::Day => "D",
            Self::Hour => "h",
            Self::Minute => "m",
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
            Self::Picosecond => "ps",
            Self::Femtosecond => "fs",
            Self::Attosecond => "as",
        }
    }

    pub(crate) const fn from_bytes(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"Y" => Self::Year,
            b"M" => Self::Month,
            b"W" => Self::Week,
            b"D" => Self::Day,
            b"h" => Self::Hour,
            b"m" => Self::Minute,
            b"s" => Self::Second,
            b"ms" => Self::Millisecond,
            b"us" => Self::Microsecond,
            b"ns" => Self::Nanosecond,
            b"ps" => Self::Picosecond,
            b"fs" => Self::Femtosecond,
            b"as" => Self::Attosecond,
            _ => return None,
        })
    }
}

/// Resolution of a datetime: `count` units per tick, as in `[25s]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Resolution {
    /// Units per tick.
    pub count: u32,
    /// The unit.
    pub unit: TimeUnit,
}

/// An element type. Prints as its type string (`<f4`, `|V12`, `<M8[25ns]`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Dtype {
    pub(crate) size: u32,
    /// Units per tick, for datetimes with a unit.
    pub(crate) count: u32,
    pub(crate) unit: Option<TimeUnit>,
    pub(crate) kind: Kind,
    pub(crate) order: ByteOrder,
}

impl Dtype {
    /// One unsigned byte, `|u1`.
    pub const U8: Self = Self::plain(Kind::Uint, ByteOrder::None, 1);

    pub(crate) const fn plain(kind: Kind, order: ByteOrder, size: u32) -> Self {
        Self { size, count: 0, unit: None, kind, order }
    }

    pub(crate) const fn with_resolution(mut self, resolution: Option<Resolution>) -> Self {
        if let Some(Resolution { count, unit }) = resolution {
            self.count = count;
            self.unit = Some(unit);
        }
        self
    }

    /// Raw bytes or a structure of `size` bytes, `|V<size>`; `None` above 2^31-1 bytes.
    #[must_use]
    pub const fn void(size: u32) -> Option<Self> {
        if size > MAX_ITEMSIZE { None } else { Some(Self::plain(Kind::Void, ByteOrder::None, size)) }
    }

    /// A number of `size` bytes in the machine's order; `None` if the kind has no such size.
    #[must_use]
    pub const fn number(kind: Kind, size: u32) -> Option<Self> {
        let fits = match kind {
            Kind::Bool => size == 1,
            Kind::Int | Kind::Uint => matches!(size, 1 | 2 | 4 | 8),
            Kind::Float => matches!(size, 2 | 4 | 8 | 12 | 16),
            Kind::Complex => matches!(size, 8 | 16 | 24 | 32),
            _ => false,
        };
        if !fits {
            return None;
        }
        let order = if size == 1 { ByteOrder::None } else { ByteOrder::NATIVE };
        Some(Self::plain(kind, order, size))
    }

    /// An extended type in the machine's order.
    #[must_use]
    pub const fn extended(kind: Extended) -> Self {
        Self::plain(Kind::Extended(kind), ByteOrder::Little, kind.itemsize())
    }

    /// The kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The byte order.
    #[must_use]
    pub const fn byte_order(&self) -> ByteOrder {
        self.order
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn itemsize(&self) -> u32 {
        self.size
    }

    /// Resolution of a datetime or timedelta; `None` for other kinds and for the generic unit.
    #[must_use]
    pub const fn resolution(&self) -> Option<Resolution> {
        match self.unit {
            Some(unit) => Some(Resolution { count: self.count, unit }),
            None => None,
        }
    }

    /// Whether the machine can load the element without swapping bytes.
    #[must_use]
    pub fn is_native(&self) -> bool {
        matches!(self.order, ByteOrder::None) || self.order == ByteOrder::NATIVE
    }

    /// C's alignment of the type in bytes on the common 64-bit ABIs, as NumPy reports it; 1 for
    /// structures.
    #[must_use]
    pub const fn alignment(&self) -> u32 {
        match self.kind {
            Kind::Bytes | Kind::Void | Kind::BitField | Kind::Bool => 1,
            Kind::Unicode => 4,
            Kind::Int | Kind::Uint | Kind::Timedelta | Kind::Datetime | Kind::Object | Kind::Pointer => {
                match self.size {
                    0 => 1,
                    size => size,
                }
            }
            Kind::Float => match self.size {
                12 => 4,
                size => size,
            },
            Kind::Complex => match self.size {
                8 => 4,
                16 => 8,
                24 => 4,
                _ => 16,
            },
            Kind::Extended(Extended::Complex32 | Extended::Bcomplex32) => 2,
            Kind::Extended(e) => e.itemsize(),
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Kind::Extended(e) = self.kind {
            return f.write_str(e.typestr());
        }
        write!(f, "{}{}", self.order.char(), self.kind.char())?;
        match self.kind {
            Kind::Object => return Ok(()),
            Kind::Unicode => write!(f, "{}", self.size / 4)?,
            Kind::BitField => write!(f, "{}", u64::from(self.size).saturating_mul(8))?,
            _ => write!(f, "{}", self.size)?,
        }
        match self.resolution() {
            None => Ok(()),
            Some(Resolution { count: 1, unit }) => write!(f, "[{}]", unit.name()),
            Some(Resolution { count, unit }) => write!(f, "[{count}{}]", unit.name()),
        }
    }
}
