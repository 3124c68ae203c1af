//! The seam between the model and the runtimes.
//!
//! A backend is a value; cargo features only make backends available. [`Backend`] names the types
//! of its handles, each of which has a trait ([`DeviceOps`], [`ContextOps`], [`QueueOps`],
//! [`EventOps`]). Handles own what they need (an `Arc` for drivers, a borrow for a caller's arena),
//! so nothing above needs `alloc`.
//!
//! # Contract
//!
//! 1. Everything above calls with valid input: sizes are not zero, alignments are powers of two,
//!    ranges lie inside live allocations of the same context and do not overlap, patterns are 1, 2,
//!    4, 8 or 16 bytes wide. Drivers disagree on all of these, so they are checked once, above.
//! 2. [`ContextOps::allocate`] gives memory of exactly the requested kind and at least the
//!    requested alignment, disjoint from every live allocation, or an error. If a driver ignores an
//!    alignment, the backend detects it.
//! 3. An operation starts after all events in `after` and, on an in-order queue, after everything
//!    submitted before.
//! 4. An operation that returns an error has not started and never will.
//! 5. [`EventOps::status`] never blocks. [`EventOps::wait`] returns within about `limit` and
//!    flushes first.
//! 6. An event reports `Complete` only when the operation no longer touches memory.
//! 7. [`ContextOps::free`] is called when no operation uses the block any more, once, with the
//!    block as allocated. [`QueueMemory`] frees its own blocks after their uses; a block comes here
//!    if that failed.
//! 8. An unknown pointer is the value [`AllocKind::Unknown`]; a query that failed is an error.
//! 9. Dropping the last clone of a context frees the blocks that wait for their uses in the list
//!    that [`ContextOps::deferred`] returns.
//! 10. With [`Backend::SYNCHRONOUS`] an operation has finished when its call returns.
//! 11. No failure is lost: an operation after a failed one, by an event or by the order of its
//!     queue, fails too. A backend whose driver forgets failures of an in-order queue passes the
//!     last event of the queue on.
//! 12. [`Buffers::create`] gives zeros. Memory of [`ContextOps::allocate`] is uninitialised, and
//!     safe code above never reads it.
//! 13. Handles given together are of one context: a queue with its events, memory and buffers. Two
//!     contexts are given together only if they are of one library, which
//!     [`ContextState::of_library`](crate::ContextState::of_library) names. Drivers do not check
//!     foreign handles, so the core checks this, once. Functions that take handles of two origins
//!     are `unsafe`, and backends check nothing.
//! 14. A context may be copied by its bits. While the original lives, the copy answers like it,
//!     from any thread, and it is never dropped. So a context keeps nothing that changes in itself,
//!     only behind what it points to.

pub(crate) mod ability;
#[cfg(feature = "alloc")]
mod erased;
pub mod host;
#[cfg(feature = "mock")]
pub mod mock;
mod ops;

use core::any::{Any, TypeId};
use core::fmt::Debug;
use core::ptr::NonNull;

pub use ability::{Advice, BufferWork, Buffers, HostTasks, Ipc, MemAdvice, Peer, QueueMemory, Unsupported};
#[cfg(feature = "alloc")]
pub use erased::{Dyn, DynBuffer, DynContext, DynDevice, DynEvent, DynOpened, DynQueue};
pub use ops::{ContextOps, DeviceOps, EventOps, QueueOps};

use crate::error::Result;
use crate::{AllocKind, Number};

/// Answer to a pointer query. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerInfo {
    /// Kind of the allocation; `Unknown` if the pointer does not belong to the context.
    pub kind: AllocKind,
    /// First byte of the allocation; 0 when unknown.
    pub base: usize,
    /// Bytes of the allocation as requested; 0 when unknown.
    pub size: usize,
    /// Ordinal of the device that owns it; host memory has none.
    pub device: Option<u32>,
    /// Id of the context it belongs to; 0 when unknown.
    pub context: u64,
}

impl PointerInfo {
    /// The answer for a pointer that does not belong to the context.
    pub const UNKNOWN: Self = Self { kind: AllocKind::Unknown, base: 0, size: 0, device: None, context: 0 };

    /// Whether `address` lies in the allocation; one past the end does not.
    #[must_use]
    pub const fn contains(&self, address: usize) -> bool {
        address >= self.base && address - self.base < self.size
    }
}

/// A block of memory from a backend, with the numbers that its free needs. Plain data that owns
/// nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First byte.
    pub pointer: NonNull<u8>,
    /// Bytes.
    pub size: usize,
    /// Alignment in bytes, a power of two.
    pub alignment: usize,
    /// Kind.
    pub kind: AllocKind,
}

impl Block {
    /// The runtime's answer for the memory from `pointer` to the end of its allocation; `None` if
    /// the runtime knows no allocation there.
    #[cfg(feature = "driver")]
    #[doc(hidden)]
    #[must_use]
    pub fn of_query(info: &PointerInfo, pointer: NonNull<u8>) -> Option<Self> {
        let address = pointer.as_ptr() as usize;
        if !info.contains(address) {
            return None;
        }
        let alignment = 1 << address.trailing_zeros().min(usize::BITS - 2);
        Some(Self { pointer, size: info.size - (address - info.base), alignment, kind: info.kind })
    }

    /// Address of the first byte.
    #[must_use]
    pub fn address(&self) -> usize {
        self.pointer.as_ptr() as usize
    }
}

// SAFETY: a block is an address with numbers; code that dereferences it proves that this is
// allowed.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// Rows of bytes with one pitch on each side, for [`QueueOps::copy_rows`]. All in bytes, except the
/// number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// First row of the destination.
    pub dst: *mut u8,
    /// Pitch of the destination: from one row to the next.
    pub dst_pitch: usize,
    /// First row of the source.
    pub src: *const u8,
    /// Pitch of the source: from one row to the next.
    pub src_pitch: usize,
    /// Bytes of a row.
    pub width: usize,
    /// Number of rows.
    pub rows: usize,
}

/// A copy of runs of bytes along axes, for [`QueueOps::copy_strided`]. In bytes, except extents.
#[derive(Clone, Copy, Debug)]
pub struct StridedCopy<'c> {
    /// First run of the destination.
    pub dst: *mut u8,
    /// First run of the source.
    pub src: *const u8,
    /// Bytes of a run.
    pub run: usize,
    /// The axes, outermost first: strides of the destination do not grow.
    pub axes: &'c [StridedAxis],
}

/// An axis of a [`StridedCopy`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StridedAxis {
    /// Number of runs along the axis.
    pub extent: usize,
    /// Stride of the destination.
    pub to: usize,
    /// Stride of the source.
    pub from: isize,
}

/// A conversion of numbers along axes, for [`QueueOps::convert`]. In bytes, except extents.
#[derive(Clone, Copy, Debug)]
pub struct Conversion<'c> {
    /// First number of the destination.
    pub dst: *mut u8,
    /// Type of the destination's numbers.
    pub dst_number: Number,
    /// First number of the source.
    pub src: *const u8,
    /// Type of the source's numbers.
    pub src_number: Number,
    /// The axes, outermost first: strides of the destination do not grow.
    pub axes: &'c [StridedAxis],
}

/// Whether a queue orders its own operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueueOrder {
    /// Each operation starts after the previous one has finished.
    #[default]
    InOrder,
    /// Only events order operations.
    OutOfOrder,
}

impl QueueOrder {
    /// The name on command lines and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::InOrder => "in-order",
            Self::OutOfOrder => "out-of-order",
        }
    }
}

/// The operation that events of a queue without times do not support.
#[doc(hidden)]
pub const NOT_TIMED: &str = "timing of events in a queue that is not timed";

/// State of an event's operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventStatus {
    /// Not finished.
    Pending,
    /// Finished; its effects are visible.
    Complete,
}

/// A runtime that manages USM memory. See the [module page](self) for the contract.
///
/// # Safety
/// Implementations, including the handle types and abilities that they name, keep every point of
/// the contract: safe code above turns their pointers into slices.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a backend",
    label = "not a backend",
    note = "the parameter `B` is a type such as `HostHeap`, `Cuda`, `OpenCl` or, chosen at run time, `Dyn`; not a context, a queue or a device"
)]
pub unsafe trait Backend: Sized {
    /// Whether every operation is complete when its call returns. Tracking of uses then folds away.
    const SYNCHRONOUS: bool;

    /// A device.
    type Device: DeviceOps + Clone + Debug + Send + Sync;
    /// A context over one device.
    type Context: ContextOps<Self> + Clone + Debug + Send + Sync;
    /// A queue of a context.
    type Queue: QueueOps<Self> + Clone + Debug + Send + Sync;
    /// The completion of one operation.
    type Event: EventOps + Clone + Debug + Send + Sync;
    /// Opaque memory objects, or [`Unsupported`].
    type Buffers: Buffers<Self>;
    /// Rust closures run in queue order, or [`Unsupported`].
    type HostTasks: HostTasks<Self>;
    /// Prefetch and memory advice, or [`Unsupported`].
    type Advice: Advice<Self>;
    /// Memory shared between processes, or [`Unsupported`].
    type Ipc: Ipc<Self>;
    /// Access of one device to another's memory, or [`Unsupported`].
    type Peer: Peer<Self>;
    /// Memory allocated and freed in the order of a queue, or [`Unsupported`].
    type QueueMemory: QueueMemory<Self>;

    /// Calls `visit` for each device, in the runtime's order.
    ///
    /// # Errors
    /// When the runtime cannot be asked. A runtime without devices is no error.
    fn for_each_device(&self, visit: &mut dyn FnMut(Self::Device)) -> Result<()>;

    /// A new context over `device`.
    ///
    /// # Errors
    /// The runtime's.
    fn create_context(&self, device: &Self::Device) -> Result<Self::Context>;

    /// The extension of type `type_id` that another crate adds to this backend: a table of
    /// functions, by which [`Dyn`] reaches it without a list of all backends.
    /// [`DynContext::extension`] looks it up. usm-kernel's is `usm_kernel::backend::Kernels`.
    fn extension(type_id: TypeId) -> Option<&'static dyn Any> {
        let _ = type_id;
        None
    }
}
