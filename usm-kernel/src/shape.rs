//! The types of a function's parameters.

/// The type of a function's parameter, as far as the runtime knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Shape {
    /// Unknown.
    Unknown,
    /// A pointer to global or constant memory.
    Pointer,
    /// A pointer to local memory; on CUDA a 32-bit offset into the block's shared memory.
    Local,
    /// A value, or anything with this many bytes.
    Bytes(usize),
    /// A value of this many bytes, and neither a pointer nor local memory.
    Value(usize),
}
