//! The reason why a block could not be made. C callers receive a null pointer.

use core::fmt;

/// The reason why a block could not be made or changed. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// `size` bytes with header and alignment padding exceed the address space.
    SizeOverflow {
        /// Requested bytes.
        size: usize,
        /// Requested alignment in bytes.
        align: usize,
    },
    /// The alignment is zero or not a power of two.
    InvalidAlignment {
        /// Requested alignment in bytes.
        align: usize,
    },
    /// The allocator returned null.
    OutOfMemory {
        /// Requested bytes, without header and padding.
        size: usize,
    },
    /// An external allocator lacks `malloc` or `free`.
    IncompleteAllocator,
    /// The block's data is not a variable-size payload of this runtime.
    NotVarsize,
    /// The owner's tag is reserved for Rust values.
    ReservedTag,
    /// A null pointer where a block is required.
    Null,
    /// The number is no kind, or blocks cannot have this kind: the host writes headers and cannot
    /// access device memory.
    InvalidKind {
        /// The given number.
        kind: u32,
    },
    /// The program has installed `limit` different allocators, the maximum.
    TooManyAllocators {
        /// Number of allocators installed so far.
        limit: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SizeOverflow { size, align } => {
                write!(f, "{size} bytes at alignment {align} overflow the address space")
            }
            Self::InvalidAlignment { align } => {
                write!(f, "alignment {align} is not a power of two")
            }
            Self::OutOfMemory { size } => write!(f, "the allocator cannot allocate {size} bytes"),
            Self::IncompleteAllocator => f.write_str("the external allocator lacks malloc or free"),
            Self::NotVarsize => f.write_str("not a variable-size block of this runtime"),
            Self::ReservedTag => f.write_str("the owner's tag is reserved for Rust values"),
            Self::Null => f.write_str("null block"),
            Self::InvalidKind { kind } => write!(f, "blocks cannot have kind {kind}"),
            Self::TooManyAllocators { limit } => {
                write!(f, "{limit} different allocators were installed before, the maximum")
            }
        }
    }
}

impl core::error::Error for Error {}
