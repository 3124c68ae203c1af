//! Why a block could not be made. C callers see every one of these as a null pointer.

use core::fmt;

/// Why a block could not be made or changed. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// `size` bytes plus header and alignment padding do not fit the address space.
    SizeOverflow {
        /// Bytes asked for.
        size: usize,
        /// Alignment asked for, in bytes.
        align: usize,
    },
    /// The alignment is zero or not a power of two.
    InvalidAlignment {
        /// Alignment asked for, in bytes.
        align: usize,
    },
    /// The allocator returned null.
    OutOfMemory {
        /// Bytes asked for, without header and padding.
        size: usize,
    },
    /// An external allocator lacks the function that was needed (`malloc` or `free`).
    IncompleteAllocator,
    /// The block's data is not a variable-size payload of this runtime.
    NotVarsize,
    /// The owner's tag is kept for Rust values.
    ReservedTag,
    /// A null pointer where a block was needed.
    Null,
    /// Blocks of this kind cannot be: not a kind, or device memory for headers that the host reads.
    InvalidKind {
        /// The number that was given.
        kind: u32,
    },
    /// No more than `limit` different allocators can be told apart in the life of a program.
    TooManyAllocators {
        /// Allocators installed so far.
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
            Self::OutOfMemory { size } => write!(f, "the allocator has no {size} bytes"),
            Self::IncompleteAllocator => f.write_str("the external allocator lacks malloc or free"),
            Self::NotVarsize => f.write_str("not a variable-size block of this runtime"),
            Self::ReservedTag => f.write_str("the owner's tag is kept for Rust values"),
            Self::Null => f.write_str("null block"),
            Self::InvalidKind { kind } => write!(f, "kind {kind} is none that such blocks can have"),
            Self::TooManyAllocators { limit } => {
                write!(
                    f,
                    "{limit} different allocators were installed before, the most that can be told apart"
                )
            }
        }
    }
}

impl core::error::Error for Error {}
