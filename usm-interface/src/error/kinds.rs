//! What is wrong: an enum for each way to fail.

use core::fmt;

/// An enum of failures: each variant with its documentation, its fields, its name for machines and
/// its message.
macro_rules! failures {
    (
        $(#[$attribute:meta])*
        $name:ident {
            $(
                $(#[$about:meta])*
                $variant:ident $({ $($(#[$of:meta])* $field:ident: $kind:ty),+ $(,)? })?
                = $short:literal, $($message:expr),+;
            )+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(
                $(#[$about])*
                $variant $({ $($(#[$of])* $field: $kind),+ })?,
            )+
        }

        impl $name {
            #[cfg(test)]
            pub(super) const NAMES: &[&str] = &[$($short),+];

            /// A stable name in `snake_case`, for machines.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant $({ $($field: _),+ })? => $short,)+
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Self::$variant $({ $($field),+ })? => write!(f, $($message),+),)+
                }
            }
        }

        impl core::error::Error for $name {}
    };
}

failures! {
    /// A text that cannot be read: no Python literal, no JSON, no PEP 3118 format.
    SyntaxError {
        /// A byte that the grammar does not have there.
        Syntax {
            /// Byte offset into the text.
            offset: usize,
            /// What the grammar allows there.
            expected: &'static str,
        } = "syntax", "expected {expected} at byte {offset}";
        /// The text ends inside a value.
        UnexpectedEnd {
            /// Byte offset into the text: its length.
            offset: usize,
        } = "unexpected_end", "the text ends at byte {offset} inside a value";
    }
}

failures! {
    /// A budget that is used up: the same input may be taken with more of it.
    LimitError {
        /// Nesting beyond [`Limits::depth`](crate::Limits::depth), or beyond what structures can
        /// have.
        TooDeep {
            /// Levels that are allowed.
            limit: usize,
        } = "too_deep", "nested deeper than {limit} levels";
        /// More values than [`Limits::values`](crate::Limits::values).
        TooManyValues {
            /// Values that are allowed.
            limit: usize,
        } = "too_many_values", "more than {limit} values";
        /// More dimensions than the capacity of the result.
        TooManyDims {
            /// Dimensions that fit.
            limit: usize,
        } = "too_many_dims", "more than {limit} dimensions";
        /// More members than the table holds.
        TooManyFields {
            /// Entries of the table.
            limit: usize,
        } = "too_many_fields", "more than {limit} structure members";
        /// More sub-array dimensions than a member can hold.
        TooManySubDims {
            /// Dimensions that fit.
            limit: usize,
        } = "too_many_sub_dims", "more than {limit} sub-array dimensions";
    }
}

failures! {
    /// An entry that is missing or has a value of the wrong type.
    EntryError {
        /// Required, and not there.
        Missing = "missing", "required, and not there";
        /// A key that appears twice.
        DuplicateKey = "duplicate_key", "given twice";
        /// A value of the wrong type.
        WrongType {
            /// What the key takes.
            expected: &'static str,
            /// What was found.
            found: Found,
        } = "wrong_type", "expected {expected}, found {found}";
        /// A sequence of the wrong length.
        WrongLength {
            /// Entries that the key takes.
            expected: usize,
        } = "wrong_length", "expected {expected} entries";
        /// An integer outside its range.
        IntegerRange {
            /// The range, as text.
            range: &'static str,
        } = "integer_range", "integer outside {range}";
    }
}

failures! {
    /// An element type that cannot be taken.
    TypeError {
        /// A type string that does not follow the grammar.
        TypestrSyntax {
            /// Byte offset into the type string.
            offset: usize,
        } = "typestr_syntax", "not a type string: unexpected byte at offset {offset}";
        /// An unknown kind character or type code.
        UnknownKind {
            /// The character.
            kind: char,
        } = "unknown_kind", "unknown type kind {kind:?}";
        /// A kind that has no element of this size.
        BadItemsize {
            /// The kind character.
            kind: char,
            /// The size as written.
            size: u64,
        } = "bad_itemsize", "kind {kind:?} has no element of size {size}";
        /// The byte-order character does not fit the type.
        BadByteOrder {
            /// The character.
            order: char,
        } = "bad_byte_order", "byte order {order:?} does not fit the type";
        /// An unknown or malformed datetime unit.
        BadTimeUnit = "bad_time_unit", "unknown or malformed datetime unit";
        /// A type that only its producer can name (`<f1`, `<W4`): give a hint.
        NeedsHint = "needs_hint", "ambiguous type: only its producer can name it, give a hint";
        /// The hint of the producer does not belong to this type string.
        HintMismatch {
            /// Type string of the hinted type.
            expected: &'static str,
        } = "hint_mismatch", "the hinted type is spelled {expected:?}";
        /// An element larger than 2^31-1 bytes.
        ItemsizeLimit {
            /// Bytes.
            size: u64,
        } = "itemsize_limit", "element of {size} bytes, the limit is {}", crate::dtype::MAX_ITEMSIZE;
        /// A DLPack type code, bit width and lane count that do not exist together.
        BadDataType {
            /// Type code.
            code: u8,
            /// Bits of a lane.
            bits: u8,
            /// Lanes.
            lanes: u16,
        } = "bad_data_type", "no DLPack type has code {code}, {bits} bits, {lanes} lanes";
        /// Python object pointers are never taken from a foreign address.
        ObjectPointer = "object_pointer", "Python object pointers are not taken from foreign memory";
    }
}

failures! {
    /// Members that make no structure, or not the one that is announced.
    StructureError {
        /// `descr` and `typestr` disagree on the size.
        DescrSize {
            /// Bytes of `descr`.
            descr: u64,
            /// Bytes of `typestr`.
            typestr: u64,
        } = "descr_size", "{descr} bytes, typestr says {typestr}";
        /// `descr` and `typedescr` are both there and differ.
        DescrConflict = "descr_conflict", "descr and typedescr differ";
        /// A PEP 3118 format whose size is not the buffer's itemsize.
        FormatSize {
            /// Bytes of the format.
            format: u64,
            /// Bytes of the buffer's itemsize.
            itemsize: u64,
        } = "format_size", "format of {format} bytes, itemsize says {itemsize}";
        /// A PEP 3118 format of structures in structures that may mean more than one thing: NumPy
        /// leaves padding out. See [`pep3118`](crate::pep3118).
        AmbiguousPadding {
            /// Bytes of the format as it is written.
            format: u64,
            /// Bytes of the buffer's itemsize.
            itemsize: u64,
        } = "ambiguous_padding", "format of {format} bytes in an itemsize of {itemsize}: padding of inner structures cannot be told";
        /// A name or title that appears twice in one structure.
        DuplicateName = "duplicate_name", "name or title used twice";
        /// A member without a name that is not padding.
        UnnamedField = "unnamed_field", "member without a name that is not padding";
        /// A sub-array of elements that have no bytes: NumPy refuses `('S0', (2,))` and reads
        /// `('S0', 3)` as three bytes.
        EmptyElement = "empty_element", "sub-array of elements without bytes";
    }
}

failures! {
    /// Shape, strides and offset that describe no memory.
    LayoutError {
        /// A negative extent.
        NegativeExtent {
            /// The extent, in elements.
            extent: i64,
        } = "negative_extent", "extent {extent} is negative";
        /// `strides` and `shape` have different lengths.
        StrideCount {
            /// Entries of `strides`.
            strides: usize,
            /// Entries of `shape`.
            shape: usize,
        } = "stride_count", "{strides} strides for {shape} dimensions";
        /// A negative offset.
        NegativeOffset {
            /// The offset in the protocol's unit.
            offset: i64,
        } = "negative_offset", "offset {offset} is negative";
        /// The number of bytes does not fit 63 bits (zero extents left out, as in NumPy).
        SizeOverflow = "size_overflow", "the size in bytes does not fit 63 bits";
        /// A stride, or the lowest or highest byte, does not fit 63 bits.
        ExtentOverflow = "extent_overflow", "the lowest or highest byte does not fit 63 bits";
    }
}

failures! {
    /// Memory that is not there.
    MemoryError {
        /// A null pointer with bytes behind it.
        NullPointer {
            /// Bytes that the array claims.
            nbytes: u64,
        } = "null_pointer", "null pointer for {nbytes} bytes";
        /// Address and extent run out of the 64-bit address space.
        AddressOverflow {
            /// The address in `data`.
            address: u64,
        } = "address_overflow", "address {address:#x} and extent leave the address space";
        /// The array does not lie inside its allocation or buffer. The numbers are saturated to 64
        /// bits.
        OutsideAllocation {
            /// Lowest byte, from the start of the allocation.
            low: i64,
            /// One past the highest byte, from the start of the allocation.
            high: i64,
            /// Bytes of the allocation.
            len: u64,
        } = "outside_allocation", "bytes [{low}, {high}) are not inside the allocation of {len} bytes";
    }
}

failures! {
    /// What one protocol does not allow, or its consumers do not do.
    ProtocolError {
        /// A version that the protocol does not have.
        BadVersion {
            /// The version found.
            version: i64,
            /// The versions that are accepted.
            allowed: &'static str,
        } = "bad_version", "version {version}, accepted: {allowed}";
        /// A DLPack major version that this consumer does not know: only the deleter may be called.
        BadMajor {
            /// Major version found.
            major: u32,
        } = "bad_major", "DLPack major version {major}, accepted: 1";
        /// An unknown DLPack device type.
        BadDevice {
            /// Device type.
            device: i32,
        } = "bad_device", "unknown DLPack device type {device}";
        /// A pointer field of a C structure is NULL where it must not be.
        NullField = "null_field", "NULL where the structure must have a value";
        /// A mask is there and this consumer has none.
        MaskUnsupported = "mask_unsupported", "masks are not supported";
        /// `__array_interface__` allows `offset` only for buffer data.
        OffsetWithPointer {
            /// The offset in bytes.
            offset: i64,
        } = "offset_with_pointer", "offset {offset} with a pointer: allowed only for buffer data";
        /// Stream 0 is forbidden: it is ambiguous (1 = legacy default, 2 = per-thread default).
        StreamZero = "stream_zero", "stream 0 is forbidden (1 = legacy default, 2 = per-thread default)";
        /// An empty filter string.
        EmptyFilter = "empty_filter", "empty filter string";
        /// PEP 3118 sub-offsets (pointers inside the array) are not supported.
        Suboffsets = "suboffsets", "suboffsets are not supported";
    }
}

failures! {
    /// Why a layout cannot be written in another protocol.
    Reason {
        /// The element type.
        Dtype = "dtype", "element type";
        /// The byte order.
        ByteOrder = "byte_order", "byte order";
        /// Strides or offset are no multiple of the element size.
        Units = "units", "strides or offset are no multiple of the element size";
        /// Elements smaller than a byte, packed.
        SubByte = "sub_byte", "packed elements smaller than a byte";
        /// Vector lanes.
        Lanes = "lanes", "vector lanes";
        /// Structure members.
        Descr = "descr", "structure members";
        /// A member's title.
        Title = "title", "member title";
        /// A member's name.
        Name = "name", "member name";
        /// A CUDA stream.
        Stream = "stream", "stream";
        /// The memory's device.
        Device = "device", "device";
        /// No `syclobj` was given.
        Syclobj = "syclobj", "no syclobj";
        /// There is no address.
        Data = "data", "no address";
        /// An offset without an address that it could be added to.
        Offset = "offset", "offset without an address";
        /// The read-only flag.
        ReadOnly = "read_only", "read-only flag";
        /// More dimensions than the target has.
        Dims = "dims", "number of dimensions";
    }
}

/// What was found in the place of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum Found {
    /// A list or tuple.
    Sequence,
    /// A dictionary.
    Dictionary,
    /// The end of the list, tuple or dictionary.
    End,
    /// An integer.
    Integer,
    /// A string.
    String,
    /// Python `bytes`.
    Bytes,
    /// True or false.
    Boolean,
    /// None, null.
    None,
    /// A floating point number.
    Float,
    /// Any other object.
    Object,
}

impl Found {
    /// With its article, for messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sequence => "a sequence",
            Self::Dictionary => "a dictionary",
            Self::End => "the end of the sequence",
            Self::Integer => "an integer",
            Self::String => "a string",
            Self::Bytes => "bytes",
            Self::Boolean => "a boolean",
            Self::None => "None",
            Self::Float => "a float",
            Self::Object => "an object",
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
