//! Abilities that not every runtime has. Each is an associated type of [`Backend`]; [`Unsupported`]
//! answers all of them with a typed error.

use core::alloc::Layout;
use core::any::Any;
use core::convert::Infallible;
use core::fmt::Debug;
use core::ptr::NonNull;

use crate::AllocKind;
use crate::backend::{Backend, Block, QueueOps};
use crate::error::{ErrorKind, Result};

/// Bytes of a runtime's own handle for other processes: 64 in CUDA, HIP and Level Zero.
pub const NATIVE_BYTES: usize = 64;

/// Opaque memory objects in the manner of `cl_mem`: no address, only copies and kernels.
pub trait Buffers<B: Backend> {
    /// The runtime's handle.
    type Raw: Debug + Send + Sync;

    /// A buffer of `size` bytes, all zero, because safe code may read it before any write.
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    fn create(context: &B::Context, size: usize) -> Result<Self::Raw>;

    /// The handle as a kernel's argument; `None` if kernels take no buffers.
    fn argument(raw: &Self::Raw) -> Option<usize> {
        let _ = raw;
        None
    }

    /// The runtime's object that holds the buffer's bytes, and the offset of the first one. Two
    /// buffers may share bytes if their objects are the same.
    fn place(raw: &Self::Raw) -> (usize, usize);

    /// Destroys the buffer.
    ///
    /// # Safety
    /// `raw` was created by this context and no operation uses it.
    unsafe fn destroy(context: &B::Context, raw: Self::Raw);

    /// Submits an operation over `len` bytes.
    ///
    /// # Safety
    /// Each range is inside its buffer; memory is valid for `len` bytes until the event is
    /// complete; no conflicting access until then. A pattern has 1, 2, 4, 8 or 16 bytes, which
    /// divide `len` and the offset. The ranges of a copy have no byte in common.
    ///
    /// # Errors
    /// The runtime's.
    unsafe fn submit(
        queue: &B::Queue,
        work: BufferWork<'_, Self::Raw>,
        len: usize,
        after: &[B::Event],
    ) -> Result<B::Event>;
}

/// An operation on buffers, each with an offset in bytes.
#[derive(Debug)]
pub enum BufferWork<'w, R> {
    /// Copies memory to a buffer.
    Write((&'w R, usize), *const u8),
    /// Copies a buffer to memory.
    Read((&'w R, usize), *mut u8),
    /// Repeats a pattern in a buffer.
    Fill((&'w R, usize), &'w [u8]),
    /// Copies to the first buffer from the second, which may be the same.
    Copy((&'w R, usize), (&'w R, usize)),
}

impl<'w, R> BufferWork<'w, R> {
    /// The same operation on other buffers.
    ///
    /// # Errors
    /// Those of `of`.
    pub fn try_map<S>(self, of: impl Fn(&'w R) -> Result<&'w S>) -> Result<BufferWork<'w, S>> {
        let of = |(raw, offset)| -> Result<_> { Ok((of(raw)?, offset)) };
        Ok(match self {
            Self::Write(to, src) => BufferWork::Write(of(to)?, src),
            Self::Read(from, dst) => BufferWork::Read(of(from)?, dst),
            Self::Fill(to, pattern) => BufferWork::Fill(of(to)?, pattern),
            Self::Copy(to, from) => BufferWork::Copy(of(to)?, of(from)?),
        })
    }

    /// Submits it as a copy or fill of memory, for buffers that have a `base` address.
    ///
    /// # Safety
    /// As [`Buffers::submit`].
    #[expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "one operation runs, and one proof holds for all of them"
    )]
    pub(crate) unsafe fn in_memory<B: Backend>(
        self,
        queue: &B::Queue,
        base: impl Fn(&R) -> *mut u8,
        len: usize,
        after: &[B::Event],
    ) -> Result<B::Event> {
        let at = |(raw, offset): (&R, usize)| base(raw).wrapping_add(offset);
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Write(to, src) => queue.copy(at(to), src, len, after),
                Self::Read(from, dst) => queue.copy(dst, at(from), len, after),
                Self::Fill(to, pattern) => queue.fill(at(to), pattern, len, after),
                Self::Copy(to, from) => queue.copy(at(to), at(from), len, after),
            }
        }
    }
}

/// Rust closures that run on the host in queue order; how host kernels are launched.
pub trait HostTasks<B: Backend> {
    /// Runs `task` after `after`.
    ///
    /// # Safety
    /// The memory that the task touches stays valid, without conflicting accesses, until the event
    /// is complete.
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`; the task is then dropped without having run.
    unsafe fn run<F: FnOnce() + Send + 'static>(
        queue: &B::Queue,
        after: &[B::Event],
        task: F,
    ) -> Result<B::Event>;
}

/// A hint for the placement of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemAdvice {
    /// Back to the runtime's default.
    Reset,
    /// Mostly read.
    ReadMostly,
    /// Better on the device.
    PreferDevice,
    /// Better on the host.
    PreferHost,
}

/// Prefetch and advice. These are hints: no result depends on them.
pub trait Advice<B: Backend> {
    /// Asks for the range to be near the queue's device.
    ///
    /// # Safety
    /// The range is live USM memory of the queue's context until the event is complete.
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    unsafe fn prefetch(
        queue: &B::Queue,
        pointer: *const u8,
        len: usize,
        after: &[B::Event],
    ) -> Result<B::Event>;

    /// Says how the range will be used.
    ///
    /// # Safety
    /// As [`prefetch`](Self::prefetch).
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    unsafe fn advise(
        queue: &B::Queue,
        pointer: *const u8,
        len: usize,
        advice: MemAdvice,
        after: &[B::Event],
    ) -> Result<B::Event>;
}

/// Memory shared with other processes by the runtime's handles, which are sent as bytes.
pub trait Ipc<B: Backend> {
    /// State of an opened handle; dropping it closes the memory. It owns everything that closing
    /// needs, but not the context state, which may own it.
    type Opened: Any + Debug + Send + Sync;

    /// The runtime's handle for a whole block of this context, and the offset of the block (bytes)
    /// from the memory that the handle names.
    ///
    /// Safe code can make any [`Block`], and drivers need not check it:
    ///
    /// ```compile_fail,E0133
    /// use usm_core::backend::{Backend, Block, Ipc};
    ///
    /// fn exports<B: Backend>(context: &B::Context, block: &Block) -> bool {
    ///     B::Ipc::export(context, block).is_ok()
    /// }
    /// ```
    ///
    /// # Safety
    /// `block` was allocated by this context and not freed yet.
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    unsafe fn export(context: &B::Context, block: &Block) -> Result<([u8; NATIVE_BYTES], usize)>;

    /// The memory that a handle of another process names, from its start.
    ///
    /// # Safety
    /// The other process keeps the memory until this is closed, and both order their accesses.
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    unsafe fn open(
        context: &B::Context,
        kind: AllocKind,
        native: &[u8; NATIVE_BYTES],
    ) -> Result<(NonNull<u8>, Self::Opened)>;
}

/// Access of one device to another's memory.
///
/// Each function is unsafe because it takes handles of two origins, which drivers do not check.
/// [`Context`](crate::Context) checks once that both are of one library.
pub trait Peer<B: Backend> {
    /// Whether the device of `context` can reach memory of `peer`'s, once that is
    /// [enabled](Self::enable).
    ///
    /// # Safety
    /// Both contexts are of one library: see
    /// [`ContextState::of_library`](crate::ContextState::of_library).
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    unsafe fn can_access(context: &B::Context, peer: &B::Context) -> Result<bool>;

    /// Lets the device of `context` reach the memory of `peer`'s device. Enabling twice is no
    /// error.
    ///
    /// # Safety
    /// As [`can_access`](Self::can_access).
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    unsafe fn enable(context: &B::Context, peer: &B::Context) -> Result<()>;

    /// Disables that access. It is no error if it was not enabled.
    ///
    /// # Safety
    /// As [`can_access`](Self::can_access).
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    unsafe fn disable(context: &B::Context, peer: &B::Context) -> Result<()>;

    /// Copies `len` bytes between device memory of the queue's context and of `peer`, whether
    /// access is enabled or not. Queues of both contexts take the event, and the events of `after`
    /// are of either.
    ///
    /// # Safety
    /// As [`QueueOps::copy`], and as [`can_access`](Self::can_access) for the contexts.
    ///
    /// # Errors
    /// The runtime's, or `Unsupported`.
    unsafe fn copy(
        queue: &B::Queue,
        peer: &B::Context,
        (dst, src): (*mut u8, *const u8),
        len: usize,
        after: &[B::Event],
    ) -> Result<B::Event> {
        let _ = (queue, peer, dst, src, len, after);
        unsupported("copies between contexts")
    }
}

/// Device memory that is allocated and freed in the order of a queue: neither call waits for the
/// device, and the runtime reuses memory whose free comes earlier in the queue.
///
/// [`DeviceInfo::queue_memory`](crate::DeviceInfo::queue_memory) tells whether a device has it. The
/// core does not call this for other devices.
pub trait QueueMemory<B: Backend> {
    /// Memory for `layout`. Operations that start after the event may use it, and later operations
    /// of the same in-order queue. Before that, work on previously freed memory may still use its
    /// bytes.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], the runtime's, or `Unsupported`.
    fn allocate(queue: &B::Queue, layout: Layout) -> Result<(NonNull<u8>, B::Event)>;

    /// Frees memory after the operations of `after` and, on an in-order queue, after everything
    /// submitted before. The runtime may reuse the address before the call returns.
    ///
    /// # Safety
    /// `block` was returned by [`allocate`](Self::allocate) for a queue of this context and not
    /// freed yet. Operations that use it are in `after` or were submitted to this in-order queue;
    /// none is submitted later.
    ///
    /// # Errors
    /// The runtime's. The block is then still allocated, and
    /// [`ContextOps::free`](super::ContextOps::free) takes it once nothing uses it.
    unsafe fn free(queue: &B::Queue, block: &Block, after: &[B::Event]) -> Result<()>;
}

/// The answer for a missing ability.
#[derive(Clone, Copy, Debug)]
pub struct Unsupported;

fn unsupported<T>(operation: &'static str) -> Result<T> {
    Err(ErrorKind::Unsupported { operation }.into())
}

impl<B: Backend> Buffers<B> for Unsupported {
    type Raw = Infallible;

    fn create(_: &B::Context, _: usize) -> Result<Infallible> {
        unsupported("an opaque buffer")
    }

    fn place(raw: &Infallible) -> (usize, usize) {
        match *raw {}
    }

    unsafe fn destroy(_: &B::Context, raw: Infallible) {
        match raw {}
    }

    unsafe fn submit(
        _: &B::Queue,
        _: BufferWork<'_, Infallible>,
        _: usize,
        _: &[B::Event],
    ) -> Result<B::Event> {
        unsupported("an opaque buffer")
    }
}

impl<B: Backend> HostTasks<B> for Unsupported {
    unsafe fn run<F: FnOnce() + Send + 'static>(_: &B::Queue, _: &[B::Event], _: F) -> Result<B::Event> {
        unsupported("a host task")
    }
}

impl<B: Backend> Advice<B> for Unsupported {
    unsafe fn prefetch(_: &B::Queue, _: *const u8, _: usize, _: &[B::Event]) -> Result<B::Event> {
        unsupported("prefetch")
    }

    unsafe fn advise(_: &B::Queue, _: *const u8, _: usize, _: MemAdvice, _: &[B::Event]) -> Result<B::Event> {
        unsupported("memory advice")
    }
}

impl<B: Backend> Ipc<B> for Unsupported {
    type Opened = Infallible;

    unsafe fn export(_: &B::Context, _: &Block) -> Result<([u8; NATIVE_BYTES], usize)> {
        unsupported("memory shared between processes")
    }

    unsafe fn open(
        _: &B::Context,
        _: AllocKind,
        _: &[u8; NATIVE_BYTES],
    ) -> Result<(NonNull<u8>, Infallible)> {
        unsupported("memory shared between processes")
    }
}

impl<B: Backend> Peer<B> for Unsupported {
    unsafe fn can_access(_: &B::Context, _: &B::Context) -> Result<bool> {
        unsupported("peer access")
    }

    unsafe fn enable(_: &B::Context, _: &B::Context) -> Result<()> {
        unsupported("peer access")
    }

    unsafe fn disable(_: &B::Context, _: &B::Context) -> Result<()> {
        unsupported("peer access")
    }
}

impl<B: Backend> QueueMemory<B> for Unsupported {
    fn allocate(_: &B::Queue, _: Layout) -> Result<(NonNull<u8>, B::Event)> {
        unsupported("memory in the order of a queue")
    }

    unsafe fn free(_: &B::Queue, _: &Block, _: &[B::Event]) -> Result<()> {
        unsupported("memory in the order of a queue")
    }
}
