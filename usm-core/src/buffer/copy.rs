//! Copies and fills of buffers.

use super::Buffer;
use crate::Element;
use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::{Backend, BufferWork, Buffers};
use crate::checks::{check_disjoint, check_pattern};
use crate::error::{ErrorKind, Result};
use crate::event::Event;
use crate::kind::Kind;
use crate::queue::{Queue, Usage};
#[cfg(feature = "alloc")]
use crate::staging::staging;
use crate::typed::UsmVec;

impl<B: Backend> Queue<B> {
    /// Copies `len` bytes of a host-accessible array into a buffer. Both offsets are in bytes.
    ///
    /// ```
    /// # #[cfg(feature = "mock")] {
    /// use usm_core::backend::mock::Mock;
    /// use usm_core::{Fallback, Host, Memory, MemoryType, QueueOrder, UsmVec};
    ///
    /// let context = Mock::default().context();
    /// let queue = context.queue(QueueOrder::InOrder)?;
    /// let Memory::Buffer(mut buffer) = context.allocate_memory(MemoryType::Buffer, 8, 0, Fallback::Refuse)? else {
    ///     unreachable!("the mock has buffers")
    /// };
    /// let array = UsmVec::<u16, Host, _>::from_slice(&queue, &[1, 2, 3])?;
    /// let _ = queue.write_buffer(&mut buffer, 4, &array, 2, 4)?;
    /// let mut bytes = [7; 8];
    /// queue.read_buffer_to(&buffer, 0, &mut bytes)?;
    /// assert_eq!(bytes, [0, 0, 0, 0, 2, 0, 3, 0]);
    /// # }
    /// # Ok::<(), usm_core::Error>(())
    /// ```
    ///
    /// Untyped memory may be uninitialised, so it cannot be the source:
    ///
    /// ```compile_fail,E0308
    /// use usm_core::{Allocation, Backend, Buffer, Host, Queue, UsmVec};
    ///
    /// fn publish<B: Backend>(queue: &Queue<B>, buffer: &mut Buffer<B>, memory: &Allocation<B>) {
    ///     let _ = queue.write_buffer::<u8, Host>(buffer, 0, memory, 0, 8);
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`], [`ErrorKind::NotHostAccessible`], [`ErrorKind::Unsupported`],
    /// and every error of [`submit`](Self::submit).
    pub fn write_buffer<T: Element, K: Kind>(
        &self,
        buffer: &mut Buffer<B>,
        offset: usize,
        src: &UsmVec<T, K, B>,
        src_offset: usize,
        len: usize,
    ) -> Result<Event<B>> {
        src.check_range(src_offset, len)?;
        // SAFETY: the range lies in the elements, which have values, and `Pod` has no padding.
        unsafe { self.write_buffer_bytes(buffer, offset, src.allocation(), src_offset, len) }
    }

    /// Copies `len` bytes of a host-accessible allocation into a buffer.
    ///
    /// # Safety
    /// Every byte of the source range has a value before the copy runs: the host wrote it, or work
    /// that this copy is ordered after. A reader of the buffer reads these bytes as numbers.
    ///
    /// # Errors
    /// As [`write_buffer`](Self::write_buffer).
    pub unsafe fn write_buffer_bytes(
        &self,
        buffer: &mut Buffer<B>,
        offset: usize,
        src: &Allocation<B>,
        src_offset: usize,
        len: usize,
    ) -> Result<Event<B>> {
        buffer.check_range(offset, len)?;
        src.check_range(src_offset, len)?;
        check_host_accessible(src)?;
        let from = src.as_ptr().wrapping_add(src_offset);
        let usages = [Usage::buffer(buffer, Access::Write), Usage::read(src)];
        let raw = buffer.raw();
        let write = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: both ranges are inside, the host reaches the memory, and the usages keep both
            // objects alive and ordered.
            unsafe { B::Buffers::submit(queue, BufferWork::Write((raw, offset), from), len, after) }
        };
        // SAFETY: it accesses what the usages declare, and `buffer` is borrowed exclusively.
        unsafe { self.submit_bytes(len, &usages, write) }
    }

    /// Copies `len` bytes of a buffer into a host-accessible allocation.
    ///
    /// # Errors
    /// As [`write_buffer`](Self::write_buffer).
    pub fn read_buffer(
        &self,
        buffer: &Buffer<B>,
        offset: usize,
        dst: &mut Allocation<B>,
        dst_offset: usize,
        len: usize,
    ) -> Result<Event<B>> {
        buffer.check_range(offset, len)?;
        dst.check_range(dst_offset, len)?;
        check_host_accessible(dst)?;
        let to = dst.as_ptr().wrapping_add(dst_offset);
        let usages = [Usage::buffer(buffer, Access::Read), Usage::write(dst)];
        let read = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: as in `write_buffer_bytes`.
            unsafe { B::Buffers::submit(queue, BufferWork::Read((buffer.raw(), offset), to), len, after) }
        };
        // SAFETY: it accesses what the usages declare, and `dst` is borrowed exclusively.
        unsafe { self.submit_bytes(len, &usages, read) }
    }

    /// Repeats `pattern` (1, 2, 4, 8 or 16 bytes, which divide `len` and `offset`) over `len` bytes
    /// of a buffer.
    ///
    /// # Errors
    /// [`ErrorKind::BadPattern`], [`ErrorKind::OutOfBounds`], and every error of
    /// [`submit`](Self::submit).
    pub fn fill_buffer(
        &self,
        buffer: &mut Buffer<B>,
        offset: usize,
        len: usize,
        pattern: &[u8],
    ) -> Result<Event<B>> {
        buffer.check_range(offset, len)?;
        check_pattern(pattern, offset, len)?;
        let raw = buffer.raw();
        let fill = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: the range is inside, the pattern suits it, and the usage keeps the buffer
            // alive and ordered.
            unsafe { B::Buffers::submit(queue, BufferWork::Fill((raw, offset), pattern), len, after) }
        };
        // SAFETY: it accesses what the usage declares, and `buffer` is borrowed exclusively.
        unsafe { self.submit_bytes(len, &[Usage::buffer(buffer, Access::Write)], fill) }
    }

    /// Copies `len` bytes from one buffer to another.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`]; [`ErrorKind::Overlap`] if both are overlapping parts of one
    /// object of the runtime, with the offsets in it; and every error of [`submit`](Self::submit).
    pub fn copy_buffer(
        &self,
        dst: &mut Buffer<B>,
        dst_offset: usize,
        src: &Buffer<B>,
        src_offset: usize,
        len: usize,
    ) -> Result<Event<B>> {
        dst.check_range(dst_offset, len)?;
        src.check_range(src_offset, len)?;
        let usages = [Usage::buffer(dst, Access::Write), Usage::buffer(src, Access::Read)];
        self.copy_between((dst, dst_offset), (src, src_offset), len, &usages)
    }

    /// Copies `len` bytes inside one buffer; the ranges must not overlap.
    ///
    /// # Errors
    /// As [`copy_buffer`](Self::copy_buffer).
    pub fn copy_buffer_within(
        &self,
        buffer: &mut Buffer<B>,
        dst_offset: usize,
        src_offset: usize,
        len: usize,
    ) -> Result<Event<B>> {
        buffer.check_range(dst_offset, len)?;
        buffer.check_range(src_offset, len)?;
        let usages = [Usage::buffer(buffer, Access::Write)];
        self.copy_between((buffer, dst_offset), (buffer, src_offset), len, &usages)
    }

    /// The caller has checked that the ranges are inside and that the usages name both buffers.
    fn copy_between(
        &self,
        (dst, to): (&Buffer<B>, usize),
        (src, from): (&Buffer<B>, usize),
        len: usize,
        usages: &[Usage<'_, B>],
    ) -> Result<Event<B>> {
        let (ours, theirs) = (B::Buffers::place(dst.raw()), B::Buffers::place(src.raw()));
        if ours.0 == theirs.0 {
            check_disjoint(ours.1.saturating_add(to), theirs.1.saturating_add(from), len)?;
        }
        let copy = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: both ranges are inside and disjoint, and the usages keep both buffers alive
            // and ordered.
            unsafe {
                B::Buffers::submit(queue, BufferWork::Copy((dst.raw(), to), (src.raw(), from)), len, after)
            }
        };
        // SAFETY: it accesses what the usages declare, and the callers borrow the destination
        // exclusively.
        unsafe { self.submit_bytes(len, usages, copy) }
    }

    /// Copies bytes of the program into a buffer, at `offset` bytes; also if the runtime has no
    /// USM. The bytes are copied twice: first into memory of the submission, so the caller may
    /// reuse its own when this returns.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`], [`ErrorKind::Unsupported`], [`ErrorKind::OutOfMemory`] if the
    /// process has no memory for the copy, and every error of [`submit`](Self::submit).
    #[cfg(feature = "alloc")]
    pub fn write_buffer_from(&self, buffer: &mut Buffer<B>, offset: usize, bytes: &[u8]) -> Result<Event<B>> {
        buffer.check_range(offset, bytes.len())?;
        // SAFETY: only the copy below and the host access it.
        let staging = unsafe { staging(self.context(), bytes.len()) }?;
        // SAFETY: just allocated with as many bytes, and no other code has it yet.
        unsafe { staging.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        // SAFETY: the lines above wrote all of it.
        unsafe { self.write_buffer_bytes(buffer, offset, &staging, 0, bytes.len()) }
    }

    /// Copies bytes of a buffer, from `offset` bytes on, to the program, after the work that writes
    /// it; also if the runtime has no USM.
    ///
    /// # Errors
    /// As [`write_buffer_from`](Self::write_buffer_from), the failure of the copy or of an
    /// operation before it, and [`ErrorKind::Timeout`] at the context's wait limit. `bytes` are
    /// then unchanged.
    #[cfg(feature = "alloc")]
    pub fn read_buffer_to(&self, buffer: &Buffer<B>, offset: usize, bytes: &mut [u8]) -> Result<()> {
        buffer.check_range(offset, bytes.len())?;
        // SAFETY: only the copy below and the host access it.
        let mut staging = unsafe { staging(self.context(), bytes.len()) }?;
        self.read_buffer(buffer, offset, &mut staging, 0, bytes.len())?.wait()?;
        // SAFETY: as many bytes, all written by the copy, which is complete and was the only use.
        unsafe { staging.as_ptr().copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }
}

/// The other side of a buffer copy must be host-accessible memory, because runtimes take a host
/// pointer there.
fn check_host_accessible<B: Backend>(allocation: &Allocation<B>) -> Result<()> {
    let kind = allocation.kind();
    if kind.is_host_accessible() { Ok(()) } else { Err(ErrorKind::NotHostAccessible { kind }.into()) }
}
