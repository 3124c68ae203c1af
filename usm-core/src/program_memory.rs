//! Copies between allocations and plain memory of the program.

use crate::DeviceType;
use crate::access::Access;
use crate::allocation::Allocation;
use crate::backend::{Backend, QueueOps as _};
use crate::checks::check_same_context;
use crate::divided::copy_bytes;
use crate::error::Result;
use crate::event::Event;
use crate::queue::{Queue, Usage};
use crate::staging::staging;
#[cfg(feature = "alloc")]
use crate::watch::report;

impl<B: Backend> Allocation<B> {
    /// Copies `len` bytes of `src` from `from` on to this memory from `to` on by the processor, at
    /// once and by no queue. The two may be of two contexts and may overlap. `None` unless both
    /// devices are the processor, and it reaches both.
    ///
    /// # Safety
    /// Until the call returns, no other thread submits work over the two, accesses the bytes that
    /// are written or writes those that are read.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds), and those of the wait for earlier
    /// work on the two.
    #[doc(hidden)]
    pub unsafe fn copy_by_processor(
        &self,
        to: usize,
        src: &Self,
        from: usize,
        len: usize,
    ) -> Option<Result<()>> {
        let is_processor =
            |end: &Self| matches!(end.context().info().device_type, DeviceType::Cpu | DeviceType::Host);
        let is_near = |end: &&Self| is_processor(end) && end.is_reached_by_processor();
        if ![self, src].iter().all(is_near) {
            return None;
        }
        let copy = || {
            self.check_range(to, len)?;
            src.check_range(from, len)?;
            let _reading = src.processor_guard(Access::Read)?;
            let _writing = self.processor_guard(Access::Write)?;
            let (to, from) = (self.as_ptr().wrapping_add(to), src.as_ptr().wrapping_add(from));
            // SAFETY: the bytes are inside of live blocks, whose work has finished; the caller's
            // promise for other threads.
            unsafe { copy_bytes(to, from, len) };
            Ok(())
        };
        Some(copy())
    }
}

impl<B: Backend> Queue<B> {
    /// Copies `len` bytes of the program's memory at `from` to `dst` from `offset` on, and waits.
    /// To a GPU, large copies go through pinned blocks by several threads.
    ///
    /// # Safety
    /// The bytes are live and nothing writes them until the call returns; after an error, for as
    /// long as the process lives, because the device may still read them. Until the call returns,
    /// no other thread submits work over `dst` or accesses the bytes that are written.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds),
    /// [`ErrorKind::WrongContext`](crate::ErrorKind::WrongContext), and those of the copy and of
    /// the wait. [`Error::partial`](crate::Error::partial) says what a copy in parts had done.
    pub unsafe fn write_bytes_from(
        &self,
        dst: &Allocation<B>,
        offset: usize,
        from: *const u8,
        len: usize,
    ) -> Result<()> {
        dst.check_range(offset, len)?;
        check_same_context(self.context().id(), dst.context().id())?;
        if len == 0 {
            return Ok(());
        }
        let to = dst.as_ptr().wrapping_add(offset);
        if dst.is_reached_by_processor() {
            let _guard = dst.processor_guard(Access::Write)?;
            // SAFETY: the bytes are inside of the live block, whose work has finished. The source,
            // by the caller's promise, may be a view of the same block.
            unsafe { copy_bytes(to, from, len) };
            return Ok(());
        }
        #[cfg(feature = "driver")]
        {
            let source = crate::ring::Process::Source(from);
            // SAFETY: the caller's promise; the range has been checked.
            if let Some(outcome) = unsafe { self.copy_through_ring((dst, offset), source, len, true) } {
                return outcome.map(drop);
            }
        }
        let copy = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: the bytes are inside of the live block, which the usage keeps alive and
            // ordered; the source outlives the copy by the caller's promise.
            unsafe { queue.copy(to, from, len, after) }
        };
        // SAFETY: the copy writes the block, as the usage declares.
        unsafe { self.submit(&[Usage::write(dst)], &[], copy) }?.wait()
    }

    /// Copies `len` bytes that `fill` writes to `dst` from `offset` on, through pinned blocks and
    /// by several threads, and waits. `None`, and `fill` was not called, where that is not worth
    /// it: on a device that is no GPU, for few bytes, or by one thread. False if `fill` ended the
    /// copy: a part of the bytes may be copied.
    ///
    /// # Safety
    /// Until the call returns, no other thread submits work over `dst` or accesses the bytes that
    /// are written. Where `fill` returns true it has written all bytes of the slice.
    ///
    /// # Errors
    /// As of [`write_bytes_from`](Self::write_bytes_from).
    #[cfg(feature = "driver")]
    #[doc(hidden)]
    pub unsafe fn write_bytes_by(
        &self,
        dst: &Allocation<B>,
        offset: usize,
        len: usize,
        fill: &crate::ring::Fill<'_>,
    ) -> Option<Result<bool>> {
        let range_check = dst.check_range(offset, len);
        if let Err(error) =
            range_check.and_then(|()| check_same_context(self.context().id(), dst.context().id()))
        {
            return Some(Err(error));
        }
        let has_ended = crate::sync::AtomicBool::new(false);
        let fill = |start: usize, room: &mut [core::mem::MaybeUninit<u8>]| {
            let is_full = fill(start, room);
            if !is_full {
                has_ended.store(true, crate::sync::Ordering::Relaxed);
            }
            is_full
        };
        let source = crate::ring::Process::Fill(&fill);
        // SAFETY: the caller's promise; the range has been checked.
        let outcome = unsafe { self.copy_through_ring((dst, offset), source, len, true) }?;
        Some(outcome.map(|_| !has_ended.load(crate::sync::Ordering::Relaxed)))
    }

    /// Copies `len` bytes of `src` from `offset` on to the program's memory at `to`, and waits, as
    /// [`write_bytes_from`](Self::write_bytes_from).
    ///
    /// # Safety
    /// The bytes are live and nothing else accesses them until the call returns; after an error,
    /// for as long as the process lives, because the device may still write them. Until the call
    /// returns, no other thread submits work that writes `src`.
    ///
    /// # Errors
    /// As for that function.
    pub unsafe fn read_bytes_to(
        &self,
        to: *mut u8,
        src: &Allocation<B>,
        offset: usize,
        len: usize,
    ) -> Result<()> {
        src.check_range(offset, len)?;
        check_same_context(self.context().id(), src.context().id())?;
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise; the range has been checked.
        if let Some(outcome) = unsafe { self.read_without_target(to, src, offset, len) } {
            return outcome;
        }
        let from = src.as_ptr().wrapping_add(offset).cast_const();
        let copy = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: the bytes are inside of the live block, which the usage keeps alive and
            // ordered; the target outlives the copy by the caller's promise.
            unsafe { queue.copy(to, from, len, after) }
        };
        #[cfg(feature = "alloc")]
        let outcomes = src.unreported(Access::Read);
        // SAFETY: the copy reads the block, as the usage declares.
        unsafe { self.submit(&[Usage::read(src)], &[], copy) }?.wait()?;
        #[cfg(feature = "alloc")]
        report(self.context(), &outcomes, self.context().shared().wait_limit())?;
        Ok(())
    }

    /// Reads where the device need not access the target: by the processor, or through pinned
    /// blocks. Nothing accesses the target after the call, whatever it returns.
    ///
    /// # Safety
    /// As [`read_bytes_to`](Self::read_bytes_to), until the call returns. The range has been
    /// checked and is not empty.
    unsafe fn read_without_target(
        &self,
        to: *mut u8,
        src: &Allocation<B>,
        offset: usize,
        len: usize,
    ) -> Option<Result<()>> {
        if src.is_reached_by_processor() {
            let outcome = src.processor_guard(Access::Read).map(|_guard| {
                // SAFETY: the bytes are inside of the live block, whose writers have finished. The
                // target may be a view of the same block.
                unsafe { copy_bytes(to, src.as_ptr().wrapping_add(offset), len) };
            });
            return Some(outcome);
        }
        #[cfg(feature = "driver")]
        {
            let target = crate::ring::Process::Target(to);
            // SAFETY: the caller's promise.
            let outcome = unsafe { self.copy_through_ring((src, offset), target, len, true) };
            outcome.map(|outcome| outcome.map(drop))
        }
        #[cfg(not(feature = "driver"))]
        None
    }

    /// Copies bytes to the start of `dst`. The caller may change them as soon as this returns. The
    /// event is the rest of the copy; `None` if it is complete.
    pub(crate) fn send(&self, dst: &mut Allocation<B>, bytes: &[u8]) -> Result<Option<Event<B>>> {
        let (from, len) = (bytes.as_ptr(), bytes.len());
        if len == 0 || dst.kind().is_host_accessible() || is_idle_and_near(dst) {
            // SAFETY: live bytes that are borrowed, as `dst` is exclusively; the processor copies
            // them before the call returns.
            unsafe { self.write_bytes_from(dst, 0, from, len) }?;
            return Ok(None);
        }
        dst.check_range(0, len)?;
        check_same_context(self.context().id(), dst.context().id())?;
        #[cfg(feature = "driver")]
        {
            let source = crate::ring::Process::Source(from);
            // SAFETY: live bytes that are borrowed until the call returns; the range has been
            // checked, and `dst` is borrowed exclusively.
            if let Some(outcome) = unsafe { self.copy_through_ring((dst, 0), source, len, false) } {
                return outcome;
            }
        }
        // SAFETY: only this function and the copy access it.
        let buffer = unsafe { staging(self.context(), len) }?;
        // SAFETY: new memory of that size.
        unsafe { buffer.as_ptr().copy_from_nonoverlapping(from, len) };
        // The allocation is freed after the copy.
        self.copy_bytes(dst, 0, &buffer, 0, len).map(Some)
    }

    /// Copies the first `len` bytes of `src` to `to`, and waits.
    ///
    /// # Safety
    /// The bytes at `to` are live, and nothing else accesses them until the call returns.
    pub(crate) unsafe fn receive(&self, to: *mut u8, src: &Allocation<B>, len: usize) -> Result<()> {
        src.check_range(0, len)?;
        check_same_context(self.context().id(), src.context().id())?;
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the caller's promise; writers of `src` need exclusive access.
        if let Some(outcome) = unsafe { self.read_without_target(to, src, 0, len) } {
            return outcome;
        }
        // SAFETY: only this function and the copy access it.
        let mut buffer = unsafe { staging(self.context(), len) }?;
        let _ = self.copy_bytes(&mut buffer, 0, src, 0, len)?;
        let _guard = buffer.host_guard(Access::Read)?;
        // SAFETY: the copy is complete, and has written that many bytes.
        unsafe { to.copy_from_nonoverlapping(buffer.as_ptr(), len) };
        Ok(())
    }
}

/// Whether the processor can write the memory now, without a wait for work on it.
fn is_idle_and_near<B: Backend>(memory: &Allocation<B>) -> bool {
    #[cfg(feature = "alloc")]
    return memory.is_reached_by_processor() && memory.pending().is_done();
    #[cfg(not(feature = "alloc"))]
    memory.is_reached_by_processor()
}
