//! The enums of failures, one for each family.

use core::fmt;

/// Defines an enum of failures: variants with documentation, fields, a name for machines and a
/// message.
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
    /// The text is no Python literal, JSON or PEP 3118 format.
    SyntaxError {
        /// A byte that the grammar does not allow at its offset.
        Syntax {
            /// Byte offset into the text.
            offset: usize,
            /// The grammar's choices at this offset.
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
    /// A limit is exhausted. The same input may pass with a larger limit.
    LimitError {
        /// Nesting beyond [`Limits::depth`](crate::Limits::depth), or beyond the maximum for
        /// structures.
        TooDeep {
            /// Allowed levels.
            limit: usize,
        } = "too_deep", "nested deeper than {limit} levels";
        /// More values than [`Limits::values`](crate::Limits::values).
        TooManyValues {
            /// Allowed values.
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
        /// A required entry is absent.
        Missing = "missing", "required, and not there";
        /// A key that appears twice.
        DuplicateKey = "duplicate_key", "given twice";
        /// A value of the wrong type.
        WrongType {
            /// The values that the key allows.
            expected: &'static str,
            /// The value found.
            found: ValueKind,
        } = "wrong_type", "expected {expected}, found {found}";
        /// A sequence of the wrong length.
        WrongLength {
            /// Number of entries that the key requires.
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
    /// An element type that is refused.
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
        /// A type that only its producer can name (`<f1`, `<W4`). Give a hint.
        NeedsHint = "needs_hint", "ambiguous type: only its producer can name it, give a hint";
        /// The producer's hint does not belong to this type string.
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
        /// An Arrow type whose columns are no arrays.
        NoArray {
            /// The entries of such a column.
            columns: &'static str,
        } = "no_array", "columns of {columns} are no arrays of numbers";
        /// A text that is no format of Arrow.
        UnknownFormat = "unknown_format", "not a format of Arrow";
        /// Python object pointers are never read from a foreign address.
        ObjectPointer = "object_pointer", "Python object pointers are not taken from foreign memory";
    }
}

failures! {
    /// Members that form no structure, or another one than announced.
    StructureError {
        /// `descr` and `typestr` disagree on the size.
        DescrSize {
            /// Bytes of `descr`.
            descr: u64,
            /// Bytes of `typestr`.
            typestr: u64,
        } = "descr_size", "{descr} bytes, typestr says {typestr}";
        /// `descr` and `typedescr` are both present and differ.
        DescrConflict = "descr_conflict", "descr and typedescr differ";
        /// A PEP 3118 format whose size is not the buffer's itemsize.
        FormatSize {
            /// Bytes of the format.
            format: u64,
            /// Bytes of the buffer's itemsize.
            itemsize: u64,
        } = "format_size", "format of {format} bytes, itemsize says {itemsize}";
        /// A PEP 3118 format of nested structures with more than one meaning, because NumPy omits
        /// padding. See [`pep3118`](crate::pep3118).
        AmbiguousPadding {
            /// Bytes of the format as written.
            format: u64,
            /// Bytes of the buffer's itemsize.
            itemsize: u64,
        } = "ambiguous_padding", "format of {format} bytes in an itemsize of {itemsize}: padding of inner structures cannot be told";
        /// A name or title that appears twice in one structure.
        DuplicateName = "duplicate_name", "name or title used twice";
        /// A member without a name that is not padding.
        UnnamedField = "unnamed_field", "member without a name that is not padding";
        /// A sub-array of elements without bytes. NumPy refuses `('S0', (2,))` and reads `('S0',
        /// 3)` as three bytes.
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
        /// The number of bytes exceeds 63 bits (extents of zero are left out, as in NumPy).
        SizeOverflow = "size_overflow", "the size in bytes does not fit 63 bits";
        /// A stride, or the lowest or highest byte, exceeds 63 bits.
        ExtentOverflow = "extent_overflow", "the lowest or highest byte does not fit 63 bits";
    }
}

failures! {
    /// Memory that does not exist.
    MemoryError {
        /// A null pointer with bytes behind it.
        NullPointer {
            /// Bytes of the array.
            nbytes: u64,
        } = "null_pointer", "null pointer for {nbytes} bytes";
        /// Address and extent exceed the 64-bit address space.
        AddressOverflow {
            /// The address in `data`.
            address: u64,
        } = "address_overflow", "address {address:#x} and extent leave the address space";
        /// The array is not inside its allocation or buffer. The numbers are saturated to 64 bits.
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
    /// A value that one protocol forbids, or that its consumers do not support.
    ProtocolError {
        /// The protocol has no such version.
        BadVersion {
            /// The version found.
            version: i64,
            /// The accepted versions.
            allowed: &'static str,
        } = "bad_version", "version {version}, accepted: {allowed}";
        /// A DLPack major version that this consumer does not know. Only the deleter may be called.
        BadMajor {
            /// Major version found.
            major: u32,
        } = "bad_major", "DLPack major version {major}, accepted: 1";
        /// An unknown DLPack device type.
        BadDevice {
            /// Device type.
            device: i32,
        } = "bad_device", "unknown DLPack device type {device}";
        /// A required pointer field of a C structure is NULL.
        NullField = "null_field", "NULL where the structure must have a value";
        /// The dictionary has a mask, and this consumer does not support masks.
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
        /// An Arrow structure that its consumer has taken or released.
        Released = "released", "the structure was released";
        /// Missing entries of an Arrow column.
        Nulls {
            /// Number of missing entries; negative if nobody has counted them.
            count: i64,
        } = "nulls", "{}", MissingCount(count);
        /// Arrow values that are numbers of entries of a dictionary.
        ArrowDictionary = "arrow_dictionary", "dictionary-encoded columns are no arrays: decode it";
        /// An Arrow array has another number of buffers or children than its format.
        WrongCount {
            /// The number that the format has.
            expected: i64,
            /// The number found.
            found: i64,
        } = "wrong_count", "{found}, where the format has {expected}";
        /// The child of an Arrow list has fewer entries than the lists refer to.
        ShortChild {
            /// Entries of the child.
            length: i64,
            /// Entries that the lists need.
            needed: i64,
        } = "short_child", "the child has {length} entries, the lists need {needed}";
        /// Arrow work in flight, in a form that this consumer cannot wait for.
        SyncEvent = "sync_event", "an event of a runtime that is not supported";
        /// PEP 3118 sub-offsets (pointers inside the array) are not supported.
        Suboffsets = "suboffsets", "suboffsets are not supported";
    }
}

failures! {
    /// The reason why another protocol cannot express a layout.
    Reason {
        /// The element type.
        Dtype = "dtype", "element type";
        /// The byte order.
        ByteOrder = "byte_order", "byte order";
        /// Strides or offset are not a multiple of the element size.
        Units = "units", "strides or offset are no multiple of the element size";
        /// Packed elements smaller than a byte.
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
        /// `syclobj` was not given.
        Syclobj = "syclobj", "no syclobj";
        /// The address is missing.
        Data = "data", "no address";
        /// An offset without an address to add it to.
        Offset = "offset", "offset without an address";
        /// The read-only flag.
        ReadOnly = "read_only", "read-only flag";
        /// More dimensions than the target allows.
        Dims = "dims", "number of dimensions";
    }
}

/// A number of missing entries, in words.
struct MissingCount(i64);

impl fmt::Display for MissingCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("1 entry is missing (null)"),
            count if count < 0 => {
                f.write_str("entries may be missing (null): the producer has not counted them")
            }
            count => write!(f, "{count} entries are missing (null)"),
        }
    }
}

/// The kind of value that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[non_exhaustive]
pub enum ValueKind {
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

impl ValueKind {
    /// The name with its article, for messages.
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

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
