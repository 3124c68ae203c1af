//! Errors of graphs. Every message names the tensor or operator and the numbers.

use core::fmt;

use super::TensorKind;

/// Why a graph was refused. Tensors are named by id, operators by index in processing order; sizes
/// in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are named after what they hold; the variants explain them.
pub enum GraphError {
    /// Two tensors have the same id.
    DuplicateTensor { tensor: u64 },
    /// An operator reads a tensor that was not declared.
    UnknownInput { op: usize, tensor: u64 },
    /// An operator writes a tensor that was not declared.
    UnknownOutput { op: usize, tensor: u64 },
    /// The graph's outputs name a tensor that was not declared.
    UnknownGraphOutput { tensor: u64 },
    /// A new size for a tensor that the graph does not have.
    UnknownTensor { tensor: u64 },
    /// A view is declared on a tensor that was not declared.
    UnknownRoot { tensor: u64, of: u64 },
    /// Views that lead back to themselves.
    ViewCycle { tensor: u64 },
    /// A view that reaches beyond the tensor it is declared on.
    ViewOutside { tensor: u64, offset: u64, size: u64, of: u64, of_size: u64 },
    /// A view whose offset in the root contradicts its alignment.
    ViewMisaligned { tensor: u64, offset: u64, alignment: u64 },
    /// A view with another kind than its root.
    ViewKind { tensor: u64, of: u64 },
    /// An alignment that is zero or no power of two.
    BadAlignment { tensor: u64, alignment: u64 },
    /// Size plus padding does not fit in 64 bits.
    SizeOverflow { tensor: u64, size: u64, padding: u64 },
    /// A tensor that two operators write (only state may be).
    TwoProducers { tensor: u64, first: usize, second: usize },
    /// An operator writes a tensor that the caller hands in.
    WrittenInput { op: usize, tensor: u64 },
    /// An operator reads what a later operator (or itself) writes, outside of a loop.
    ReadBeforeWrite { op: usize, tensor: u64, producer: usize },
    /// An in-place permit whose first tensor is no input of the operator.
    InPlaceInput { op: usize, tensor: u64 },
    /// An in-place permit whose second tensor is no output of the operator.
    InPlaceOutput { op: usize, tensor: u64 },
    /// An operator reads a tensor after another one has replaced its bytes in the same iteration of
    /// a loop.
    Replaced { op: usize, tensor: u64, writer: usize },
    /// A loop body that is empty, outside of the graph, or cuts another one.
    BadLoop { first: usize, last: usize, ops: usize },
    /// More memories than a graph may have.
    TooManyMemories { count: usize, most: usize },
    /// Two memories with one name.
    SameMemory { memory: usize, first: usize },
    /// A memory that holds nothing: capacity or chunk are 0.
    EmptyMemory { memory: usize },
    /// A memory of more chunks than it may have.
    SmallChunk { memory: usize, chunk: u64, most: usize },
    /// A tensor pinned to a memory that the graph does not have.
    UnknownMemory { tensor: u64, memory: usize, count: usize },
    /// A view with a pin of its own.
    PinnedView { tensor: u64, of: u64 },
    /// A pinned tensor that is no activation, so no plan places it.
    PinnedElsewhere { tensor: u64, kind: TensorKind },
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::DuplicateTensor { tensor } => write!(f, "tensor {tensor}: the id is used twice"),
            Self::UnknownInput { op, tensor } => {
                write!(f, "op {op}: input {tensor} is not a tensor")
            }
            Self::UnknownOutput { op, tensor } => {
                write!(f, "op {op}: output {tensor} is not a tensor")
            }
            Self::UnknownGraphOutput { tensor } => write!(f, "outputs: {tensor} is not a tensor"),
            Self::UnknownTensor { tensor } => {
                write!(f, "tensor {tensor}: the graph has no tensor of this id")
            }
            Self::UnknownRoot { tensor, of } => {
                write!(f, "tensor {tensor}: alias_of {of} is not a tensor")
            }
            Self::ViewCycle { tensor } => {
                write!(f, "tensor {tensor}: alias_of leads back to itself")
            }
            Self::ViewOutside { tensor, offset, size, of, of_size } => write!(
                f,
                "tensor {tensor}: alias_offset {offset} + size {size} reaches beyond the {of_size} bytes of tensor {of}"
            ),
            Self::ViewMisaligned { tensor, offset, alignment } => {
                write!(
                    f,
                    "tensor {tensor}: offset {offset} in its root is no multiple of its alignment {alignment}"
                )
            }
            Self::ViewKind { tensor, of } => {
                write!(f, "tensor {tensor}: its kind differs from that of its root {of}")
            }
            Self::BadAlignment { tensor, alignment } => {
                write!(f, "tensor {tensor}: alignment {alignment} is not a power of two")
            }
            Self::SizeOverflow { tensor, size, padding } => {
                write!(f, "tensor {tensor}: size {size} + padding {padding} exceed 64 bits")
            }
            Self::TwoProducers { tensor, first, second } => {
                write!(f, "tensor {tensor}: written by op {first} and again by op {second}")
            }
            Self::WrittenInput { op, tensor } => {
                write!(f, "op {op}: writes tensor {tensor}, which is an input")
            }
            Self::ReadBeforeWrite { op, tensor, producer } => {
                write!(f, "op {op}: reads tensor {tensor}, which op {producer} has not written yet")
            }
            Self::InPlaceInput { op, tensor } => {
                write!(f, "op {op}: in_place names {tensor}, which is not one of its inputs")
            }
            Self::InPlaceOutput { op, tensor } => {
                write!(f, "op {op}: in_place names {tensor}, which is not one of its outputs")
            }
            Self::Replaced { op, tensor, writer } => {
                write!(
                    f,
                    "op {op}: reads tensor {tensor} after op {writer} has replaced it in the same iteration"
                )
            }
            Self::BadLoop { first, last, ops } => {
                write!(f, "loop [{first}, {last}]: empty, outside of {ops} ops, or cutting another loop")
            }
            Self::TooManyMemories { count, most } => write!(f, "memories: {count} exceed {most}"),
            Self::SameMemory { memory, first } => {
                write!(f, "memories[{memory}]: it has the name of memories[{first}]")
            }
            Self::EmptyMemory { memory } => {
                write!(f, "memories[{memory}]: a capacity or chunk of 0 bytes holds nothing")
            }
            Self::SmallChunk { memory, chunk, most } => {
                write!(f, "memories[{memory}]: chunks of {chunk} bytes are more than {most}")
            }
            Self::UnknownMemory { tensor, memory, count } => {
                write!(f, "tensor {tensor}: memory {memory} is none of {count} memories")
            }
            Self::PinnedView { tensor, of } => {
                write!(f, "tensor {tensor}: a view lies in the memory of its root {of}")
            }
            Self::PinnedElsewhere { tensor, kind } => {
                write!(f, "tensor {tensor}: no plan places a tensor of kind {}", kind.name())
            }
        }
    }
}

impl core::error::Error for GraphError {}
