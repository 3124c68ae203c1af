//! Errors: one kind per failure, with the place it happened. No allocation.

use core::fmt;

/// Result of every fallible operation of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// A refusal: what is wrong ([`Error::kind`]) and where ([`Error::path`]).
///
/// `Display` prints the place, then the reason with its numbers: `shape[1]: extent -3 is negative`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Error {
    kind: ErrorKind,
    path: Path,
}

impl Error {
    /// An error at a place.
    #[must_use]
    pub const fn new(kind: ErrorKind, path: Path) -> Self {
        Self { kind, path }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Where it is wrong; prints as `descr[3].shape[1]`.
    #[must_use]
    pub const fn path(&self) -> Path {
        self.path
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.root == Key::Document {
            write!(f, "{}", self.kind)
        } else {
            write!(f, "{}: {}", self.path, self.kind)
        }
    }
}

impl core::error::Error for Error {}

/// The part of an interface that an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Key {
    /// The text or the dictionary as a whole.
    Document,
    /// `shape`.
    Shape,
    /// `typestr`.
    Typestr,
    /// `descr`.
    Descr,
    /// `typedescr`, the SYCL spelling of `descr`.
    Typedescr,
    /// `data`.
    Data,
    /// `strides`.
    Strides,
    /// `offset`.
    Offset,
    /// `mask`.
    Mask,
    /// `version`.
    Version,
    /// `stream`.
    Stream,
    /// `syclobj`.
    Syclobj,
    /// A PEP 3118 `format`.
    Format,
    /// A PEP 3118 or structure `itemsize`.
    Itemsize,
    /// A DLPack `dtype`.
    Dtype,
    /// A DLPack `device`.
    Device,
    /// A DLPack `ndim`.
    Ndim,
    /// A DLPack `byte_offset`.
    ByteOffset,
    /// DLPack `flags`.
    Flags,
}

impl Key {
    /// The spelling of the key.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Document => "",
            Self::Shape => "shape",
            Self::Typestr => "typestr",
            Self::Descr => "descr",
            Self::Typedescr => "typedescr",
            Self::Data => "data",
            Self::Strides => "strides",
            Self::Offset => "offset",
            Self::Mask => "mask",
            Self::Version => "version",
            Self::Stream => "stream",
            Self::Syclobj => "syclobj",
            Self::Format => "format",
            Self::Itemsize => "itemsize",
            Self::Dtype => "dtype",
            Self::Device => "device",
            Self::Ndim => "ndim",
            Self::ByteOffset => "byte_offset",
            Self::Flags => "flags",
        }
    }

    /// The path of the key itself.
    #[must_use]
    pub const fn path(self) -> Path {
        Path { root: self, steps: [Step::END; STEPS], len: 0, part: Part::None }
    }

    /// The path of entry `index` of the key: `shape[1]`.
    #[must_use]
    pub fn at(self, index: usize) -> Path {
        self.path().index(index)
    }

    #[cold]
    #[inline(never)]
    pub(crate) const fn error(self, kind: ErrorKind) -> Error {
        Error { kind, path: self.path() }
    }
}

/// Entries of a path that are kept; deeper ones print as `[..]`.
const STEPS: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step(u32);

impl Step {
    const END: Self = Self(u32::MAX);
}

/// What of a structure's member an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Part {
    /// The entry as a whole.
    None,
    /// Its name.
    Name,
    /// Its title.
    Title,
    /// Its type.
    Type,
    /// Its sub-array shape, or one extent of it.
    Shape(Option<u8>),
}

/// A place inside an interface, such as `descr[3].shape[1]`. Prints as such.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path {
    root: Key,
    steps: [Step; STEPS],
    len: u8,
    part: Part,
}

impl Path {
    /// The key that the path starts at.
    #[must_use]
    pub const fn root(&self) -> Key {
        self.root
    }

    /// One entry further in.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        if let Some(slot) = self.steps.get_mut(usize::from(self.len)) {
            *slot = Step(u32::try_from(index).unwrap_or(u32::MAX));
        }
        self.len = self.len.saturating_add(1);
        self
    }

    /// A part of the entry.
    #[must_use]
    pub const fn part(mut self, part: Part) -> Self {
        self.part = part;
        self
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.name())?;
        for step in self.steps.iter().take(usize::from(self.len)) {
            write!(f, "[{}]", step.0)?;
        }
        if usize::from(self.len) > STEPS {
            f.write_str("[..]")?;
        }
        match self.part {
            Part::None => Ok(()),
            Part::Name => f.write_str(".name"),
            Part::Title => f.write_str(".title"),
            Part::Type => f.write_str(".type"),
            Part::Shape(None) => f.write_str(".shape"),
            Part::Shape(Some(i)) => write!(f, ".shape[{i}]"),
        }
    }
}

/// What is wrong. Sizes and offsets are in bytes unless the variant says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)] // As in `Token`: results are moved word by word.
#[non_exhaustive]
pub enum ErrorKind {
    /// Text that is neither a Python literal nor JSON; `offset` is a byte offset into the text.
    Syntax {
        /// Byte offset into the text.
        offset: usize,
        /// What the grammar allows there.
        expected: &'static str,
    },
    /// The text ends inside a value.
    UnexpectedEnd {
        /// Byte offset into the text: its length.
        offset: usize,
    },
    /// Nesting beyond the limit.
    TooDeep {
        /// Levels that are allowed.
        limit: usize,
    },
    /// More values than the budget.
    TooManyValues {
        /// Values that are allowed.
        limit: usize,
    },
    /// A required key is not there.
    Missing,
    /// A key appears twice.
    DuplicateKey,
    /// A value of the wrong type.
    WrongType {
        /// What the key takes.
        expected: &'static str,
        /// What was found.
        found: &'static str,
    },
    /// A sequence of the wrong length.
    WrongLength {
        /// Entries that the key takes.
        expected: usize,
    },
    /// An integer outside its range.
    IntegerRange {
        /// The range, as text.
        range: &'static str,
    },
    /// A type string that does not follow the grammar; `offset` is a byte offset into it.
    TypestrSyntax {
        /// Byte offset into the type string.
        offset: usize,
    },
    /// An unknown kind character or type code.
    UnknownKind {
        /// The character.
        kind: char,
    },
    /// A kind that has no element of this size.
    BadItemsize {
        /// The kind character.
        kind: char,
        /// The size as written.
        size: u64,
    },
    /// The byte-order character does not fit the type.
    BadByteOrder {
        /// The character.
        order: char,
    },
    /// An unknown or malformed datetime unit.
    BadTimeUnit,
    /// A type that only its producer can name (`<f1`, `<W4`): give a hint.
    NeedsHint,
    /// The hint of the producer does not belong to this type string.
    HintMismatch {
        /// Type string of the hinted type.
        expected: &'static str,
    },
    /// An element larger than 2^31-1 bytes.
    ItemsizeLimit {
        /// Bytes.
        size: u64,
    },
    /// More dimensions than the capacity of the result.
    TooManyDims {
        /// Dimensions that fit.
        limit: usize,
    },
    /// A negative extent.
    NegativeExtent {
        /// The extent, in elements.
        extent: i64,
    },
    /// `strides` and `shape` have different lengths.
    StrideCount {
        /// Entries of `strides`.
        strides: usize,
        /// Entries of `shape`.
        shape: usize,
    },
    /// The number of bytes does not fit 63 bits (zero extents left out, as in NumPy).
    SizeOverflow,
    /// A stride, or the lowest or highest byte, does not fit 63 bits.
    ExtentOverflow,
    /// A negative offset.
    NegativeOffset {
        /// The offset in the protocol's unit.
        offset: i64,
    },
    /// `__array_interface__` allows `offset` only for buffer data.
    OffsetWithPointer {
        /// The offset in bytes.
        offset: i64,
    },
    /// Address and extent run out of the 64-bit address space.
    AddressOverflow {
        /// The address in `data`.
        address: u64,
    },
    /// The array does not lie inside its allocation or buffer. The numbers are saturated to 64 bits.
    OutsideAllocation {
        /// Lowest byte, from the start of the allocation.
        low: i64,
        /// One past the highest byte, from the start of the allocation.
        high: i64,
        /// Bytes of the allocation.
        len: u64,
    },
    /// A null pointer with bytes behind it.
    NullPointer {
        /// Bytes that the array claims.
        nbytes: u64,
    },
    /// Python object pointers are never taken from a foreign address.
    ObjectPointer,
    /// A version that the protocol does not have.
    BadVersion {
        /// The version found.
        version: i64,
        /// The versions that are accepted.
        allowed: &'static str,
    },
    /// A mask is there and this consumer has none.
    MaskUnsupported,
    /// Stream 0 is forbidden: it is ambiguous (1 = legacy default, 2 = per-thread default).
    StreamZero,
    /// `descr` and `typestr` disagree on the size.
    DescrSize {
        /// Bytes of `descr`.
        descr: u64,
        /// Bytes of `typestr`.
        typestr: u64,
    },
    /// `descr` and `typedescr` are both there and differ.
    DescrConflict,
    /// A name or title that appears twice in one structure.
    DuplicateName,
    /// A member without a name that is not padding.
    UnnamedField,
    /// A sub-array of elements that have no bytes: NumPy refuses `('S0', (2,))` and reads `('S0', 3)` as three bytes.
    EmptyElement,
    /// More members than the table holds.
    TooManyFields {
        /// Entries of the table.
        limit: usize,
    },
    /// More sub-array dimensions than a member can hold.
    TooManySubDims {
        /// Dimensions that fit.
        limit: usize,
    },
    /// An empty filter string.
    EmptyFilter,
    /// A PEP 3118 format whose size is not the buffer's itemsize.
    FormatSize {
        /// Bytes of the format.
        format: u64,
        /// Bytes of the buffer's itemsize.
        itemsize: u64,
    },
    /// PEP 3118 sub-offsets (pointers inside the array) are not supported.
    Suboffsets,
    /// A pointer field of a C structure is NULL where it must not be.
    NullField,
    /// A DLPack major version that this consumer does not know: only the deleter may be called.
    BadMajor {
        /// Major version found.
        major: u32,
    },
    /// A DLPack type code, bit width and lane count that do not exist together.
    BadDataType {
        /// Type code.
        code: u8,
        /// Bits of a lane.
        bits: u8,
        /// Lanes.
        lanes: u16,
    },
    /// An unknown DLPack device type.
    BadDevice {
        /// Device type.
        device: i32,
    },
    /// The target protocol cannot say this.
    NotRepresentable(Reason),
    /// The host's value source stopped; it holds the cause.
    Source,
}

/// Why a layout cannot be written in another protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// The element type.
    Dtype,
    /// The byte order.
    ByteOrder,
    /// Strides or offset are no multiple of the element size.
    Units,
    /// Elements smaller than a byte, packed.
    SubByte,
    /// Vector lanes.
    Lanes,
    /// Structure members.
    Descr,
    /// A member's title.
    Title,
    /// A member's name.
    Name,
    /// A CUDA stream.
    Stream,
    /// The memory's device.
    Device,
    /// No `syclobj` was given.
    Syclobj,
    /// There is no address.
    Data,
    /// An offset without an address that it could be added to.
    Offset,
    /// The read-only flag.
    ReadOnly,
    /// More dimensions than the target has.
    Dims,
}

impl Reason {
    /// A short name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dtype => "element type",
            Self::ByteOrder => "byte order",
            Self::Units => "strides or offset are no multiple of the element size",
            Self::SubByte => "packed elements smaller than a byte",
            Self::Lanes => "vector lanes",
            Self::Descr => "structure members",
            Self::Title => "member title",
            Self::Name => "member name",
            Self::Stream => "stream",
            Self::Device => "device",
            Self::Syclobj => "no syclobj",
            Self::Data => "no address",
            Self::Offset => "offset without an address",
            Self::ReadOnly => "read-only flag",
            Self::Dims => "number of dimensions",
        }
    }
}

impl ErrorKind {
    /// A stable name in `snake_case`, for machines.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "syntax",
            Self::UnexpectedEnd { .. } => "unexpected_end",
            Self::TooDeep { .. } => "too_deep",
            Self::TooManyValues { .. } => "too_many_values",
            Self::Missing => "missing",
            Self::DuplicateKey => "duplicate_key",
            Self::WrongType { .. } => "wrong_type",
            Self::WrongLength { .. } => "wrong_length",
            Self::IntegerRange { .. } => "integer_range",
            Self::TypestrSyntax { .. } => "typestr_syntax",
            Self::UnknownKind { .. } => "unknown_kind",
            Self::BadItemsize { .. } => "bad_itemsize",
            Self::BadByteOrder { .. } => "bad_byte_order",
            Self::BadTimeUnit => "bad_time_unit",
            Self::NeedsHint => "needs_hint",
            Self::HintMismatch { .. } => "hint_mismatch",
            Self::ItemsizeLimit { .. } => "itemsize_limit",
            Self::TooManyDims { .. } => "too_many_dims",
            Self::NegativeExtent { .. } => "negative_extent",
            Self::StrideCount { .. } => "stride_count",
            Self::SizeOverflow => "size_overflow",
            Self::ExtentOverflow => "extent_overflow",
            Self::NegativeOffset { .. } => "negative_offset",
            Self::OffsetWithPointer { .. } => "offset_with_pointer",
            Self::AddressOverflow { .. } => "address_overflow",
            Self::OutsideAllocation { .. } => "outside_allocation",
            Self::NullPointer { .. } => "null_pointer",
            Self::ObjectPointer => "object_pointer",
            Self::BadVersion { .. } => "bad_version",
            Self::MaskUnsupported => "mask_unsupported",
            Self::StreamZero => "stream_zero",
            Self::DescrSize { .. } => "descr_size",
            Self::DescrConflict => "descr_conflict",
            Self::DuplicateName => "duplicate_name",
            Self::UnnamedField => "unnamed_field",
            Self::EmptyElement => "empty_element",
            Self::TooManyFields { .. } => "too_many_fields",
            Self::TooManySubDims { .. } => "too_many_sub_dims",
            Self::EmptyFilter => "empty_filter",
            Self::FormatSize { .. } => "format_size",
            Self::Suboffsets => "suboffsets",
            Self::NullField => "null_field",
            Self::BadMajor { .. } => "bad_major",
            Self::BadDataType { .. } => "bad_data_type",
            Self::BadDevice { .. } => "bad_device",
            Self::NotRepresentable(_) => "not_representable",
            Self::Source => "source",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Syntax { offset, expected } => write!(f, "expected {expected} at byte {offset}"),
            Self::UnexpectedEnd { offset } => {
                write!(f, "the text ends at byte {offset} inside a value")
            }
            Self::TooDeep { limit } => write!(f, "nested deeper than {limit} levels"),
            Self::TooManyValues { limit } => write!(f, "more than {limit} values"),
            Self::Missing => f.write_str("required, and not there"),
            Self::DuplicateKey => f.write_str("given twice"),
            Self::WrongType { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::WrongLength { expected } => write!(f, "expected {expected} entries"),
            Self::IntegerRange { range } => write!(f, "integer outside {range}"),
            Self::TypestrSyntax { offset } => {
                write!(f, "not a type string: unexpected byte at offset {offset}")
            }
            Self::UnknownKind { kind } => write!(f, "unknown type kind {kind:?}"),
            Self::BadItemsize { kind, size } => {
                write!(f, "kind {kind:?} has no element of size {size}")
            }
            Self::BadByteOrder { order } => write!(f, "byte order {order:?} does not fit the type"),
            Self::BadTimeUnit => f.write_str("unknown or malformed datetime unit"),
            Self::NeedsHint => f.write_str("ambiguous type: only its producer can name it, give a hint"),
            Self::HintMismatch { expected } => write!(f, "the hinted type is spelled {expected:?}"),
            Self::ItemsizeLimit { size } => {
                write!(f, "element of {size} bytes, the limit is {}", crate::dtype::MAX_ITEMSIZE)
            }
            Self::TooManyDims { limit } => write!(f, "more than {limit} dimensions"),
            Self::NegativeExtent { extent } => write!(f, "extent {extent} is negative"),
            Self::StrideCount { strides, shape } => {
                write!(f, "{strides} strides for {shape} dimensions")
            }
            Self::SizeOverflow => f.write_str("the size in bytes does not fit 63 bits"),
            Self::ExtentOverflow => f.write_str("the lowest or highest byte does not fit 63 bits"),
            Self::NegativeOffset { offset } => write!(f, "offset {offset} is negative"),
            Self::OffsetWithPointer { offset } => {
                write!(f, "offset {offset} with a pointer: allowed only for buffer data")
            }
            Self::AddressOverflow { address } => {
                write!(f, "address {address:#x} and extent leave the address space")
            }
            Self::OutsideAllocation { low, high, len } => {
                write!(f, "bytes [{low}, {high}) are not inside the allocation of {len} bytes")
            }
            Self::NullPointer { nbytes } => write!(f, "null pointer for {nbytes} bytes"),
            Self::ObjectPointer => f.write_str("Python object pointers are not taken from foreign memory"),
            Self::BadVersion { version, allowed } => {
                write!(f, "version {version}, accepted: {allowed}")
            }
            Self::MaskUnsupported => f.write_str("masks are not supported"),
            Self::StreamZero => {
                f.write_str("stream 0 is forbidden (1 = legacy default, 2 = per-thread default)")
            }
            Self::DescrSize { descr, typestr } => {
                write!(f, "{descr} bytes, typestr says {typestr}")
            }
            Self::DescrConflict => f.write_str("descr and typedescr differ"),
            Self::DuplicateName => f.write_str("name or title used twice"),
            Self::EmptyElement => f.write_str("sub-array of elements without bytes"),
            Self::UnnamedField => f.write_str("member without a name that is not padding"),
            Self::TooManyFields { limit } => write!(f, "more than {limit} structure members"),
            Self::TooManySubDims { limit } => write!(f, "more than {limit} sub-array dimensions"),
            Self::EmptyFilter => f.write_str("empty filter string"),
            Self::FormatSize { format, itemsize } => {
                write!(f, "format of {format} bytes, itemsize says {itemsize}")
            }
            Self::Suboffsets => f.write_str("suboffsets are not supported"),
            Self::NullField => f.write_str("NULL where the structure must have a value"),
            Self::BadMajor { major } => write!(f, "DLPack major version {major}, accepted: 1"),
            Self::BadDataType { code, bits, lanes } => {
                write!(f, "no DLPack type has code {code}, {bits} bits, {lanes} lanes")
            }
            Self::BadDevice { device } => write!(f, "unknown DLPack device type {device}"),
            Self::NotRepresentable(reason) => write!(f, "not representable: {}", reason.name()),
            Self::Source => f.write_str("the value source stopped"),
        }
    }
}
