//! Opaque memory objects.

use core::alloc::Layout;
use core::ptr::NonNull;
use std::sync::OnceLock;

use crate::loader::{Bits, Handle};
use crate::memory::is_exhaustion;
use crate::queue::NON_BLOCKING;
use crate::{OpenCl, OpenClContext, OpenClEvent, OpenClQueue, error};
use usm_core::backend::{BufferWork, Buffers};
use usm_core::{ErrorKind, MemoryType, Result};

const READ_WRITE: Bits = 1;
const COPY_HOST_PTR: Bits = 1 << 5;

/// An OpenCL memory object.
#[derive(Debug)]
pub struct OpenClBuffer {
    handle: Handle,
    /// The offset in its parent object, for [`Buffers::place`](usm_core::backend::Buffers::place).
    pub(super) place: (usize, usize),
}

impl OpenClBuffer {
    /// A buffer that is not a sub-buffer.
    fn without_offset(handle: Handle) -> Self {
        let place = (handle.raw() as usize, 0);
        Self { handle, place }
    }

    pub(super) fn sub_buffer(handle: Handle, place: (usize, usize)) -> Self {
        Self { handle, place }
    }

    pub(super) fn native(&self) -> &Handle {
        &self.handle
    }
}

/// The zeros that initialise new buffers. If the system maps them page by page, reading them takes
/// no memory.
struct Zeros {
    first: NonNull<u8>,
    layout: Layout,
}

// SAFETY: owned bytes that are only read.
unsafe impl Send for Zeros {}
// SAFETY: as above.
unsafe impl Sync for Zeros {}

impl Zeros {
    /// Shared by all buffers up to a size, because new zero pages would cost as much as filling the
    /// buffer.
    fn shared_zeros(bytes: usize) -> Option<&'static Self> {
        const KEPT: usize = 1 << 20;
        static ZEROS: OnceLock<Option<Zeros>> = OnceLock::new();
        if bytes > KEPT {
            return None;
        }
        ZEROS.get_or_init(|| Self::new(KEPT)).as_ref()
    }

    fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes.max(1), align_of::<u128>()).ok()?;
        // SAFETY: the size is not zero.
        let first = NonNull::new(unsafe { alloc::alloc::alloc_zeroed(layout) })?;
        Some(Self { first, layout })
    }
}

impl Drop for Zeros {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and the call that read it has returned.
        unsafe { alloc::alloc::dealloc(self.first.as_ptr(), self.layout) };
    }
}

impl Buffers<Self> for OpenCl {
    type Raw = OpenClBuffer;

    fn create(context: &OpenClContext, size: usize) -> Result<OpenClBuffer> {
        let library = context.library();
        let memory_error = ErrorKind::OutOfMemory { memory_type: MemoryType::Buffer, requested: size as u64 };
        // A fill would need a queue and a wait with a limit. This copy is complete when the call
        // returns.
        let out_of_memory = || error::of(memory_error);
        let own;
        let zeros = if let Some(zeros_of_process) = Zeros::shared_zeros(size) {
            zeros_of_process
        } else {
            own = Zeros::new(size).ok_or_else(out_of_memory)?;
            &own
        };
        let (flags, from) = (READ_WRITE | COPY_HOST_PTR, zeros.first.as_ptr().cast());
        let mut status = error::SUCCESS;
        // SAFETY: a live context, and a host pointer to as many bytes, which the call copies.
        let raw = unsafe { (library.create_buffer)(context.as_raw(), flags, size, from, &raw mut status) };
        let Some(raw) = NonNull::new(raw) else {
            return Err(if is_exhaustion(status) {
                out_of_memory().with_native(i64::from(status))
            } else {
                error::native("clCreateBuffer", status)
            });
        };
        // SAFETY: we own the reference.
        Ok(OpenClBuffer::without_offset(unsafe { Handle::new(library, raw, library.release_buffer) }))
    }

    fn argument(raw: &OpenClBuffer) -> Option<usize> {
        Some(raw.as_raw() as usize)
    }

    fn place(raw: &OpenClBuffer) -> (usize, usize) {
        raw.place
    }

    unsafe fn destroy(_: &OpenClContext, raw: OpenClBuffer) {
        drop(raw);
    }

    unsafe fn submit(
        queue: &OpenClQueue,
        work: BufferWork<'_, OpenClBuffer>,
        len: usize,
        after: &[OpenClEvent],
    ) -> Result<OpenClEvent> {
        let call = queue.library();
        match work {
            BufferWork::Write((raw, offset), src) => {
                let (buffer, src) = (raw.as_raw(), src.cast());
                queue.submit("clEnqueueWriteBuffer", after, |queue, count, list, event| {
                    // SAFETY: the caller's promise for both ranges.
                    unsafe {
                        (call.write_buffer)(queue, buffer, NON_BLOCKING, offset, len, src, count, list, event)
                    }
                })
            }
            BufferWork::Read((raw, offset), dst) => {
                let (buffer, dst) = (raw.as_raw(), dst.cast());
                queue.submit("clEnqueueReadBuffer", after, |queue, count, list, event| {
                    // SAFETY: as above.
                    unsafe {
                        (call.read_buffer)(queue, buffer, NON_BLOCKING, offset, len, dst, count, list, event)
                    }
                })
            }
            BufferWork::Fill((raw, offset), pattern) => {
                let (buffer, value, width) = (raw.as_raw(), pattern.as_ptr().cast(), pattern.len());
                queue.submit("clEnqueueFillBuffer", after, |queue, count, list, event| {
                    // SAFETY: the caller's promise for the range; the pattern is read before the
                    // call returns.
                    unsafe {
                        (call.fill_buffer)(queue, buffer, value, width, offset, len, count, list, event)
                    }
                })
            }
            BufferWork::Copy((dst, to), (src, from)) => {
                let (dst, src) = (dst.as_raw(), src.as_raw());
                queue.submit("clEnqueueCopyBuffer", after, |queue, count, list, event| {
                    // SAFETY: the caller's promise for both ranges.
                    unsafe { (call.copy_buffer)(queue, src, dst, from, to, len, count, list, event) }
                })
            }
        }
    }
}
