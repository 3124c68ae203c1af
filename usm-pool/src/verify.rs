//! The independent checker: shares no code with the planners, and needs no heap.
//!
//! [`intervals`] and [`conflicts`] compare every pair; [`sweep`] does the same for large in-order
//! plans in `O(n log n)` with a heap. [`plan()`] computes every number of a plan anew, [`graph()`]
//! everything from the operator graph, [`memories()`] the use of its memories. [`bound_proof`]
//! replays why nothing below a bound is possible, [`order_bound`] why no order of the operators is.
//! [`recomputed`] replays a graph whose operators run again beside the given one.

#[cfg(feature = "alloc")]
mod graph;
#[cfg(feature = "alloc")]
mod live_ranges;
#[cfg(feature = "alloc")]
mod memories;
#[cfg(feature = "alloc")]
mod order;
#[cfg(feature = "alloc")]
mod plan;
#[cfg(feature = "alloc")]
mod proof;
#[cfg(feature = "alloc")]
mod recompute;
#[cfg(feature = "alloc")]
mod sweep;

#[cfg(feature = "alloc")]
pub use graph::graph;
#[cfg(feature = "alloc")]
pub use memories::memories;
#[cfg(feature = "alloc")]
pub use order::order_bound;
#[cfg(feature = "alloc")]
pub use plan::plan;
#[cfg(feature = "alloc")]
pub use proof::{ProofError, ProofFault, bound_proof};
#[cfg(feature = "alloc")]
pub use recompute::recomputed;
#[cfg(feature = "alloc")]
pub use sweep::sweep;

use core::fmt;

#[cfg(feature = "alloc")]
use crate::Queue;
use crate::{Buffer, ConflictView};

/// A fault of a plan. Buffers are named by id; offsets and sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are named after what they hold; the variants explain them.
pub enum Violation {
    /// Buffers that may be live together share the byte at `offset`.
    Overlap { first: u64, second: u64, offset: u64 },
    /// An offset that is no multiple of the buffer's alignment.
    Misaligned { id: u64, offset: u64, alignment: u64 },
    /// A buffer that ends beyond the capacity, or beyond 64 bits.
    Outside { id: u64, offset: u64, size: u64, capacity: u64 },
    /// Tables of different lengths.
    LengthMismatch { buffers: usize, other: usize },
    /// A tensor that the plan lacks, or places needlessly.
    Missing { id: u64 },
    /// A tensor whose row contradicts the graph's size, or its block's offset.
    Misplaced { id: u64, offset: u64, expected: u64 },
    /// An operator may read `reader` after `writer` has overwritten it.
    Overwritten { op: usize, reader: u64, writer: u64 },
    /// A row with another number than problem and buffer offset give; memories by number, device 0.
    Row { index: usize, field: &'static str, actual: u64, expected: u64 },
    /// A number of the plan that differs from its recomputation.
    Field { field: &'static str, actual: u64, expected: u64 },
    /// A plan for another queue than its problem.
    #[cfg(feature = "alloc")]
    Queue { actual: Queue, expected: Queue },
    /// An ordering edge that is not the problem's, that the plan lacks, that names no operator, or
    /// that closes a cycle.
    OrderingEdge { earlier: usize, later: usize },
    /// A certificate that names a tensor twice.
    Repeated { id: u64 },
    /// A certificate with two tensors that need not be live together.
    NoConflict { first: u64, second: u64 },
    /// A certificate with a tensor that is not known to be live at its instant.
    NotLive { id: u64, time: u64 },
    /// A bound on every order that names an operator which the graph does not have, twice, or
    /// before its predecessors.
    OrderOperator { op: usize },
    /// A bound on every order with a list of operators that need not come first: from this
    /// operator on, or at it.
    OrderList { op: usize },
    /// A bound on every order, but some order keeps within fewer bytes.
    OrderBelow { limit: u64 },
    /// A bound on every order that has too many sets of operators to replay, or too many bytes.
    OrderTooLarge,
    /// A bound on every order of a series-parallel graph, but the graph is none, or has permits.
    OrderNotSeriesParallel,
    /// A bound on every order of a graph with loops, which keeps its order.
    OrderOfLoops,
    /// A changed graph with an operator that has no source, other sizes, another cost or a further
    /// permit, or that runs again although its effect is not its results alone.
    ChangedOperator { op: usize },
    /// A changed graph whose operator `op` reads other values than `of` does in the given graph.
    ChangedInput { op: usize, of: usize },
    /// A changed graph that runs an operator of the given graph for the first time so many times.
    ChangedRuns { op: usize, runs: usize },
    /// A changed graph that lacks a tensor, or has another size, kind or output.
    ChangedTensor { id: u64 },
    /// A changed graph with another content of an output or of state at the end.
    ChangedResult { id: u64 },
    /// A changed graph, or the given one, with loops.
    ChangedLoop,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Overlap { first, second, offset } => {
                write!(f, "buffers {first} and {second} may be live together and share the byte at {offset}")
            }
            Self::Misaligned { id, offset, alignment } => {
                write!(f, "buffer {id}: offset {offset} is no multiple of its alignment {alignment}")
            }
            Self::Outside { id, offset, size, capacity } => {
                write!(f, "buffer {id}: offset {offset} + size {size} exceeds the capacity {capacity}")
            }
            Self::LengthMismatch { buffers, other } => {
                write!(f, "{buffers} buffers, but {other} entries in the plan")
            }
            Self::Missing { id } => {
                write!(
                    f,
                    "tensor {id}: unknown, without a row that it needs, or with one that it does not need"
                )
            }
            Self::Misplaced { id, offset, expected } => {
                write!(f, "tensor {id}: the plan says {offset} where {expected} is right")
            }
            Self::Overwritten { op, reader, writer } => {
                write!(f, "op {op}: reads tensor {reader}, which tensor {writer} may have overwritten")
            }
            Self::Row { index, field, actual, expected } => {
                write!(f, "rows[{index}].{field}: the plan says {actual} where {expected} is right")
            }
            Self::Field { field, actual, expected } => {
                write!(f, "{field}: the plan says {actual} where {expected} is right")
            }
            #[cfg(feature = "alloc")]
            Self::Queue { actual, expected } => {
                write!(f, "queue: the plan is for {}, the problem for {}", actual.name(), expected.name())
            }
            Self::OrderingEdge { earlier, later } => {
                write!(
                    f,
                    "ordering edge from op {earlier} to op {later}: missing, foreign, or it closes a cycle"
                )
            }
            Self::Repeated { id } => write!(f, "certificate: names tensor {id} twice"),
            Self::NoConflict { first, second } => {
                write!(f, "certificate: tensors {first} and {second} need not be live together")
            }
            Self::NotLive { id, time } => {
                write!(f, "certificate: nothing says that tensor {id} is live at time {time}")
            }
            Self::OrderOperator { op } => {
                write!(f, "order bound: op {op} is unknown, or named twice or too early")
            }
            Self::OrderList { op } => {
                write!(f, "order bound: the list with op {op} need not come at this end of the order")
            }
            Self::OrderBelow { limit } => write!(f, "order bound: some order keeps within {limit} bytes"),
            Self::OrderTooLarge => f.write_str("order bound: too many sets of operators to replay"),
            Self::OrderNotSeriesParallel => {
                f.write_str("order bound: the graph is not series-parallel, or has permits")
            }
            Self::OrderOfLoops => f.write_str("order bound: a graph with loops keeps its order"),
            Self::ChangedOperator { op } => write!(
                f,
                "changed graph: op {op} has no source, other sizes, another cost or permit, or must not run again"
            ),
            Self::ChangedInput { op, of } => {
                write!(f, "changed graph: op {op} reads other values than op {of} of the given graph")
            }
            Self::ChangedRuns { op, runs } => {
                write!(f, "changed graph: op {op} of the given graph runs for the first time {runs} times")
            }
            Self::ChangedTensor { id } => {
                write!(f, "changed graph: tensor {id} is missing, or has another size, kind or output")
            }
            Self::ChangedResult { id } => {
                write!(f, "changed graph: tensor {id} has another content at the end")
            }
            Self::ChangedLoop => f.write_str("changed graph: a graph with loops has no changes"),
        }
    }
}

impl core::error::Error for Violation {}

/// Checks an in-order plan: alignment, capacity, and no shared byte between buffers whose half-open
/// lives overlap. Answers the peak, the largest `offset + size`, in bytes. Compares all pairs;
/// needs no heap.
///
/// # Errors
/// The first [`Violation`] found.
///
/// ```
/// use usm_pool::{Buffer, verify};
///
/// const BUFFERS: [Buffer; 2] = [Buffer::new(0, 0, 2, 96), Buffer::new(1, 2, 3, 64)];
/// assert_eq!(verify::intervals(&BUFFERS, &[0, 0], 128), Ok(96));
/// ```
pub fn intervals(buffers: &[Buffer], offsets: &[u64], capacity: u64) -> Result<u64, Violation> {
    pairs(buffers, offsets, capacity, |i, j| {
        let (a, b) = (&buffers[i], &buffers[j]);
        // Some instant belongs to both lives; an empty life has none.
        a.lower.max(b.lower) < a.upper.min(b.upper)
    })
}

/// As [`intervals`], with an explicit conflict relation (out-of-order queues, lives with gaps).
///
/// # Errors
/// The first [`Violation`] found.
pub fn conflicts(
    buffers: &[Buffer],
    offsets: &[u64],
    relation: ConflictView<'_>,
    capacity: u64,
) -> Result<u64, Violation> {
    if relation.len() != buffers.len() {
        return Err(Violation::LengthMismatch { buffers: buffers.len(), other: relation.len() });
    }
    // Either direction counts: a hand-written table may hold only one half.
    pairs(buffers, offsets, capacity, |i, j| relation.contains(i, j) || relation.contains(j, i))
}

fn pairs(
    buffers: &[Buffer],
    offsets: &[u64],
    capacity: u64,
    conflict: impl Fn(usize, usize) -> bool,
) -> Result<u64, Violation> {
    let peak = each(buffers, offsets, capacity)?;
    for (i, (a, &at_a)) in buffers.iter().zip(offsets).enumerate() {
        for (j, (b, &at_b)) in buffers.iter().zip(offsets).enumerate().skip(i + 1) {
            // The ends were checked not to overflow.
            let shared = at_a.max(at_b);
            if shared < (at_a + a.size).min(at_b + b.size) && conflict(i, j) {
                return Err(Violation::Overlap { first: a.id, second: b.id, offset: shared });
            }
        }
    }
    Ok(peak)
}

/// The checks of single buffers; answers the peak.
fn each(buffers: &[Buffer], offsets: &[u64], capacity: u64) -> Result<u64, Violation> {
    if buffers.len() != offsets.len() {
        return Err(Violation::LengthMismatch { buffers: buffers.len(), other: offsets.len() });
    }
    let mut peak = 0;
    for (&Buffer { id, size, alignment, .. }, &offset) in buffers.iter().zip(offsets) {
        if alignment == 0 || offset % alignment != 0 {
            return Err(Violation::Misaligned { id, offset, alignment });
        }
        match offset.checked_add(size) {
            Some(end) if end <= capacity => peak = peak.max(end),
            _ => {
                return Err(Violation::Outside { id, offset, size, capacity });
            }
        }
    }
    Ok(peak)
}

/// The bound in bytes that a time cut proves, from sizes alone: the sum of the buffers live at
/// `time`. `None` when the sum exceeds 64 bits.
#[must_use]
pub fn load_at(buffers: &[Buffer], time: u64) -> Option<u64> {
    let live = buffers.iter().filter(|buffer| buffer.lower <= time && time < buffer.upper);
    live.map(|buffer| buffer.size).try_fold(0_u64, u64::checked_add)
}

/// The bound in bytes that an antichain proves, from sizes alone: the sum of the named buffers (by
/// index) when all pairs conflict. `None` when some pair does not, an index is out of range or
/// repeated, or the sum exceeds 64 bits.
#[must_use]
pub fn load_of(buffers: &[Buffer], relation: ConflictView<'_>, set: &[usize]) -> Option<u64> {
    let mut sum = 0_u64;
    for (k, &i) in set.iter().enumerate() {
        if set[..k].iter().any(|&j| !relation.contains(i, j)) {
            return None;
        }
        sum = sum.checked_add(buffers.get(i)?.size)?;
    }
    Some(sum)
}
