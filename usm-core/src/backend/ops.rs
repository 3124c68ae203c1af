//! The operations of a backend, by handle. The `unsafe impl` of [`Backend`] promises the
//! [contract](super) for them.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;

use super::{Backend, Block, Conversion, EventStatus, NOT_TIMED, PointerInfo, QueueOrder, Rows, StridedCopy};
use crate::context_state::ContextState;
#[cfg(feature = "alloc")]
use crate::deferred::Deferred;
use crate::error::{Error, ErrorKind, Result};
use crate::event::EventTimes;
use crate::{AllocKind, DeviceInfo};

/// A device.
pub trait DeviceOps {
    /// The runtime's description.
    fn info(&self) -> DeviceInfo;
}

/// A context over one device.
pub trait ContextOps<B: Backend> {
    /// The state of the context.
    fn shared(&self) -> &ContextState;

    /// The frees that wait for events. A backend with asynchronous operations keeps this list
    /// beside its native context. Without a list, a block dropped in flight is leaked and counted.
    #[cfg(feature = "alloc")]
    fn deferred(&self) -> Option<&Deferred<B>> {
        None
    }

    /// A new queue.
    ///
    /// # Errors
    /// The runtime's.
    fn create_queue(&self, order: QueueOrder) -> Result<B::Queue>;

    /// A new queue whose events know their [times](EventOps::times).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime measures no times; the runtime's.
    fn create_timed_queue(&self, _order: QueueOrder) -> Result<B::Queue> {
        Err(ErrorKind::Unsupported { operation: "timing of events" }.into())
    }

    /// Memory of `kind` for `layout`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], [`ErrorKind::BadAlignment`] or the runtime's.
    fn allocate(&self, kind: AllocKind, layout: Layout) -> Result<NonNull<u8>>;

    /// As [`allocate`](Self::allocate), and whether the memory is known to be zero. Backends whose
    /// system gives zeros for nothing have their own way.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    fn allocate_zeroed(&self, kind: AllocKind, layout: Layout) -> Result<(NonNull<u8>, bool)> {
        self.allocate(kind, layout).map(|pointer| (pointer, false))
    }

    /// Frees memory.
    ///
    /// # Safety
    /// `block` was returned by [`allocate`](Self::allocate) of this context and not freed yet, and
    /// no operation uses it.
    unsafe fn free(&self, block: &Block);

    /// The runtime's own answer for `address`.
    ///
    /// # Errors
    /// If the query failed. A pointer that is not the context's is no error.
    fn query(&self, address: usize) -> Result<PointerInfo>;

    /// Bytes of the device's memory that are free now.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime does not report them; the runtime's.
    fn free_memory(&self) -> Result<u64> {
        Err(ErrorKind::Unsupported { operation: "the number of free bytes" }.into())
    }

    /// Blocks until all queues of the context are idle, at most `limit`. Success means that no work
    /// of the context accesses memory, so failed work is an error on every call.
    ///
    /// # Errors
    /// As [`EventOps::wait`].
    fn synchronize(&self, limit: Duration) -> Result<()>;

    /// [`synchronize`](Self::synchronize) for the program: reports a dropped queue's failure once.
    /// See [`Context::synchronize`](crate::Context::synchronize).
    ///
    /// # Errors
    /// As for [`synchronize`](Self::synchronize).
    fn report_failures(&self, limit: Duration) -> Result<()> {
        self.synchronize(limit)
    }

    /// Calls `visit` with events that together cover all work submitted to the context's queues
    /// before. Leaves out failures that [`report_failures`](Self::report_failures) has reported.
    /// Blocks only while a queue is being dropped, at most `limit`.
    ///
    /// # Errors
    /// The runtime's, or [`ErrorKind::Timeout`].
    fn for_each_pending(&self, limit: Duration, visit: &mut dyn FnMut(B::Event)) -> Result<()>;
}

/// A queue of a context.
pub trait QueueOps<B: Backend> {
    /// Copies `len` bytes.
    ///
    /// # Safety
    /// Both ranges are live memory that the device can reach, or host memory where the runtime
    /// takes it, do not overlap, stay live until the event is complete, and are not accessed in
    /// conflict. The events of `after` are of the queue's context.
    ///
    /// # Errors
    /// The runtime's.
    unsafe fn copy(&self, dst: *mut u8, src: *const u8, len: usize, after: &[B::Event]) -> Result<B::Event>;

    /// Copies rows, in one operation where the runtime has such a call.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), for every row. Pitches are not below the width.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime has no such call or refuses these numbers: runs
    /// are then copied one by one. The runtime's.
    unsafe fn copy_rows(&self, rows: &Rows, after: &[B::Event]) -> Result<B::Event> {
        let _ = (rows, after);
        Err(ErrorKind::Unsupported { operation: "a copy of rows" }.into())
    }

    /// Copies runs along axes by code that runs on the device, in one operation.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), for every run; the device can reach both ends, and the runs of
    /// the destination do not overlap.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime has no compiler or refuses these numbers: the copy
    /// is then made otherwise. The runtime's.
    unsafe fn copy_strided(&self, copy: &StridedCopy<'_>, after: &[B::Event]) -> Result<B::Event> {
        let _ = (copy, after);
        Err(ErrorKind::Unsupported { operation: "a copy by code of the device" }.into())
    }

    /// Converts numbers along axes by code that runs on the device, in one operation.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), for every number; the device can reach both ends, the source's
    /// numbers are initialised, and the destination's do not overlap.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the runtime has no compiler, or no code for these numbers. The
    /// runtime's.
    unsafe fn convert(&self, conversion: &Conversion<'_>, after: &[B::Event]) -> Result<B::Event> {
        let _ = (conversion, after);
        Err(ErrorKind::Unsupported { operation: "a conversion by code of the device" }.into())
    }

    /// Repeats `pattern` over `len` bytes; `len` is a multiple of the pattern's width.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy), for the one range.
    ///
    /// # Errors
    /// The runtime's.
    unsafe fn fill(&self, dst: *mut u8, pattern: &[u8], len: usize, after: &[B::Event]) -> Result<B::Event>;

    /// An event after all of `after` or, if there is none, after everything submitted to the queue
    /// before.
    ///
    /// # Safety
    /// The events of `after` are of the queue's context.
    ///
    /// # Errors
    /// The runtime's.
    unsafe fn barrier(&self, after: &[B::Event]) -> Result<B::Event>;
}

/// The completion of one operation.
pub trait EventOps {
    /// The state of the operation, without blocking.
    ///
    /// # Errors
    /// When the operation failed or the device is lost.
    fn status(&self) -> Result<EventStatus>;

    /// Blocks until the operation is complete, at most `limit`.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], or as [`status`](Self::status).
    fn wait(&self, limit: Duration) -> Result<()>;

    /// When the device worked on the operation, which is complete.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] if the event's queue is not timed; the runtime's.
    fn times(&self) -> Result<EventTimes> {
        Err(ErrorKind::Unsupported { operation: NOT_TIMED }.into())
    }

    /// Whether the operation succeeded; never blocks. A failed one may still touch memory.
    fn is_complete(&self) -> bool {
        matches!(self.status(), Ok(EventStatus::Complete))
    }

    /// Whether `error`, the operation's failure, is permanent: the device answers every later call
    /// with it.
    fn is_for_good(&self, error: &Error) -> bool {
        error.kind == ErrorKind::DeviceLost
    }
}
