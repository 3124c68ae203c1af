//! Return codes of the versioned table.

use crate::error::Error;

/// The outcome of an entry of [`Api`](super::Api): zero, or the reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub i32);

impl Status {
    /// Success.
    pub const OK: Self = Self(0);
    /// Size and alignment overflow the address space.
    pub const SIZE_OVERFLOW: Self = Self(1);
    /// The alignment is not a power of two.
    pub const INVALID_ALIGNMENT: Self = Self(2);
    /// The allocator returned null.
    pub const OUT_OF_MEMORY: Self = Self(3);
    /// The external allocator lacks a function.
    pub const INCOMPLETE_ALLOCATOR: Self = Self(4);
    /// The block has no replaceable payload of this runtime.
    pub const NOT_VARSIZE: Self = Self(5);
    /// A null pointer where the entry allows none.
    pub const NULL: Self = Self(6);
    /// The owner's tag is reserved for Rust values.
    pub const RESERVED_TAG: Self = Self(7);
    /// All 255 allocator numbers are in use.
    pub const TOO_MANY_ALLOCATORS: Self = Self(8);
    /// Not a kind, or a kind that the host cannot access where it must.
    pub const INVALID_KIND: Self = Self(9);
}

impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::SizeOverflow { .. } => Self::SIZE_OVERFLOW,
            Error::InvalidAlignment { .. } => Self::INVALID_ALIGNMENT,
            Error::OutOfMemory { .. } => Self::OUT_OF_MEMORY,
            Error::IncompleteAllocator => Self::INCOMPLETE_ALLOCATOR,
            Error::NotVarsize => Self::NOT_VARSIZE,
            Error::Null => Self::NULL,
            Error::InvalidKind { .. } => Self::INVALID_KIND,
            Error::ReservedTag => Self::RESERVED_TAG,
            Error::TooManyAllocators { .. } => Self::TOO_MANY_ALLOCATORS,
        }
    }
}

/// Writes a result for a C caller, and returns its status.
///
/// # Safety
/// `out` is null or writable.
pub(super) unsafe fn write_result<T>(result: Result<T, Error>, out: *mut T) -> Status {
    match result {
        Ok(value) => {
            // SAFETY: not null, and writable as the caller promises.
            unsafe { out.write(value) };
            Status::OK
        }
        Err(error) => error.into(),
    }
}
