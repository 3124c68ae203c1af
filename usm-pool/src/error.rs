//! Errors of planning.

use core::fmt;

/// Why no plan was made. Sizes and offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A buffer whose life ends before it begins.
    ReversedLifetime {
        /// Buffer id.
        id: u64,
        /// First instant.
        lower: u64,
        /// First instant after the life.
        upper: u64,
    },
    /// An alignment that is zero or no power of two.
    BadAlignment {
        /// Buffer id.
        id: u64,
        /// The alignment asked for, in bytes.
        alignment: u64,
    },
    /// Two buffers have the same id.
    DuplicateId {
        /// Buffer id.
        id: u64,
    },
    /// The sum of all sizes, each rounded up to its alignment, does not fit in 64 bits.
    SizeOverflow {
        /// Buffer at which the sum left the range.
        id: u64,
        /// That buffer's size in bytes.
        size: u64,
        /// The sum of the buffers before it, in bytes.
        sum: u64,
    },
    /// More buffers than this form of the problem can hold.
    TooManyBuffers {
        /// Number of buffers.
        buffers: usize,
        /// Largest number that is accepted.
        limit: usize,
    },
    /// Parallel tables of different lengths.
    LengthMismatch {
        /// Number of buffers.
        buffers: usize,
        /// Length of the table beside them.
        other: usize,
    },
    /// A life with gaps names an instant outside of the buffer's life, or gaps that are empty or
    /// out of order.
    BadGap {
        /// Buffer id.
        id: u64,
        /// First instant of the gap.
        lower: u64,
        /// First instant after the gap.
        upper: u64,
    },
    /// No memory for the planner's own tables.
    OutOfMemory {
        /// Bytes asked for.
        bytes: u64,
    },
    /// An ordering edge that names no operator, or closes a cycle with the data dependencies and
    /// the other edges.
    OrderingEdge {
        /// Operator that must be finished.
        earlier: usize,
        /// Operator that waits.
        later: usize,
    },
    /// A buffer that no memory which it may lie in can hold.
    ExceedsMemories {
        /// Buffer id.
        id: u64,
        /// Its size in bytes.
        size: u64,
        /// Bytes of the largest of these memories.
        most: u64,
    },
    /// No plan within the memories of a graph was found. There is none if they have less than is
    /// needed.
    MemoriesFull {
        /// Bytes that every plan needs in all memories together.
        needed: u64,
        /// Bytes that they have.
        room: u64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ReversedLifetime { id, lower, upper } => {
                write!(f, "buffer {id}: its life [{lower}, {upper}) ends before it begins")
            }
            Self::BadAlignment { id, alignment } => {
                write!(f, "buffer {id}: alignment {alignment} is not a power of two")
            }
            Self::DuplicateId { id } => write!(f, "buffer {id}: the id is used twice"),
            Self::SizeOverflow { id, size, sum } => {
                write!(f, "buffer {id}: its {size} bytes on top of {sum} bytes exceed 64 bits")
            }
            Self::TooManyBuffers { buffers, limit } => {
                write!(f, "{buffers} buffers, but at most {limit} can be planned in this form")
            }
            Self::LengthMismatch { buffers, other } => {
                write!(f, "{buffers} buffers, but a table of {other} entries beside them")
            }
            Self::BadGap { id, lower, upper } => {
                write!(f, "buffer {id}: gap [{lower}, {upper}) is empty, out of order or outside of its life")
            }
            Self::OutOfMemory { bytes } => {
                write!(f, "the planner could not allocate {bytes} bytes for its tables")
            }
            Self::OrderingEdge { earlier, later } => {
                write!(
                    f,
                    "ordering edge from op {earlier} to op {later}: no such operators, or it closes a cycle"
                )
            }
            Self::ExceedsMemories { id, size, most } => {
                write!(f, "buffer {id}: {size} bytes exceed the {most} of each memory that it may lie in")
            }
            Self::MemoriesFull { needed, room } if needed > room => {
                write!(f, "memories: {room} bytes in all, but every plan needs {needed}")
            }
            Self::MemoriesFull { needed, room } => {
                write!(f, "memories: no plan within their {room} bytes was found; every plan needs {needed}")
            }
        }
    }
}

impl core::error::Error for Error {}
