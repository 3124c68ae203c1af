//! Accesses to the bytes of shared memory by the process.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use usm_core::backend::{Backend, QueueOps};
use usm_core::{Access, BackendKind, ErrorKind, Event, Queue, Usage};

use crate::error::Result;
use crate::fork;
use crate::storage::{Owner, Storage};
use crate::turns;

/// A buffer of the process that stays in place when its owner moves, for copies that a device
/// makes: after a failed wait it is never freed.
///
/// # Safety
/// The slice has the same address and length at each call, wherever the value moves, until it is
/// dropped; so its bytes are on the heap, or live as long as the process. If the type has
/// `AsMut<[u8]>` too, that is the same slice.
pub unsafe trait StableBytes: AsRef<[u8]> + 'static {}

// SAFETY: the elements of a vector are on the heap; a shared vector does not grow.
unsafe impl StableBytes for Vec<u8> {}
// SAFETY: as above.
unsafe impl StableBytes for Box<[u8]> {}
// SAFETY: as above.
unsafe impl StableBytes for Arc<[u8]> {}
// SAFETY: the bytes live as long as the process.
unsafe impl StableBytes for &'static [u8] {}

impl<B: Backend, O: Owner<B>> Storage<B, O> {
    /// The address for writing `len` bytes from `offset`. Every write takes its address from here.
    pub(crate) fn target(&self, offset: usize, len: usize) -> Result<*mut u8> {
        self.writable()?;
        self.check_range(offset, len)?;
        Ok(self.block_of_turns().as_ptr().wrapping_add(offset))
    }

    /// The address for reading `len` bytes from `offset`.
    pub(crate) fn source(&self, offset: usize, len: usize) -> Result<*const u8> {
        self.check_range(offset, len)?;
        Ok(self.block_of_turns().as_ptr().wrapping_add(offset))
    }

    /// Copies `len` bytes from `offset` to `target`, and waits. From device memory the device
    /// writes the target; if that takes longer than the wait limit, the target is leaked, because
    /// the device may still write it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`] beyond the memory or the target, and those of the copy.
    pub fn read<T: StableBytes + AsMut<[u8]>>(
        &self,
        queue: &Queue<B>,
        offset: usize,
        len: usize,
        mut target: T,
    ) -> Result<T> {
        let bytes = target.as_mut();
        let (size, to) = (bytes.len(), bytes.as_mut_ptr());
        if len > size {
            return Err(ErrorKind::OutOfBounds { offset: 0, len, size }.into());
        }
        // SAFETY: bytes of the target, which stay in place when it moves.
        unsafe { self.read_to(queue, offset, (to, len), target) }
    }

    /// [`read`](Self::read) to bytes that nobody has written yet.
    ///
    /// # Safety
    /// The bytes of `room` live until `target` is dropped, wherever it moves.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub unsafe fn read_to<T>(
        &self,
        queue: &Queue<B>,
        offset: usize,
        (to, len): (*mut u8, usize),
        target: T,
    ) -> Result<T> {
        let _ = self.source(offset, len)?;
        if len == 0 {
            return Ok(target);
        }
        let _turn = turns::of_one(self)?;
        // SAFETY: the turn keeps other submissions over the block away; the target outlives the
        // copy, or is never freed. It may be a view of the same block.
        match unsafe { queue.read_bytes_to(to, self.block_of_turns(), offset, len) } {
            Ok(()) => Ok(target),
            Err(error) => {
                std::mem::forget(target);
                Err(error.into())
            }
        }
    }

    /// Calls `access` with the address of `len` bytes from `offset` while nothing else uses the
    /// memory. `None`, and it was not called, where that could wait: for a device, for the turn of
    /// another thread, or for a fork.
    fn at_once<R>(&self, offset: usize, len: usize, access: impl FnOnce(*mut u8) -> R) -> Option<R> {
        let allocation = self.block_of_turns();
        if allocation.context().info().backend != BackendKind::Host {
            return None;
        }
        self.check_range(offset, len).ok()?;
        let _inside = fork::try_enter::<{ fork::TURNS }>()?;
        let _turn = self.memory().turn().try_lock()?;
        // The host's work has finished when its calls return, so this does not block.
        let _guard = allocation.wait_for_host(Access::Write).ok()?;
        Some(access(allocation.as_ptr().wrapping_add(offset)))
    }

    /// Copies the bytes from `offset` to `target` without waiting. False if that is not possible.
    #[must_use]
    pub fn read_at_once(&self, offset: usize, target: &mut [u8]) -> bool {
        let (to, len) = (target.as_mut_ptr(), target.len());
        // SAFETY: the range lies inside of the live block of host memory, and nothing of ours
        // writes it meanwhile. The target is the caller's alone.
        self.at_once(offset, len, |from| unsafe { ptr::copy(from, to, len) }).is_some()
    }

    /// Copies the `len` bytes from each offset to the start of `target`, which is other memory, one
    /// after another and without waiting. False if that is not possible.
    #[must_use]
    pub fn gather_at_once(&self, offsets: &[usize], len: usize, target: &Self) -> bool {
        let fits = |offset: &usize| self.check_range(*offset, len).is_ok();
        let size = offsets.len().checked_mul(len);
        let Some(size) = size.filter(|_| offsets.iter().all(fits) && !self.overlaps(target)) else {
            return false;
        };
        let copy = |from: *mut u8, mut to: *mut u8| {
            for offset in offsets {
                // SAFETY: both ranges were checked and lie in two live blocks of host memory, which
                // nothing of ours uses meanwhile.
                unsafe { ptr::copy_nonoverlapping(from.wrapping_add(*offset), to, len) };
                to = to.wrapping_add(len);
            }
        };
        if target.is_readonly() {
            return false;
        }
        self.at_once(0, 0, |from| target.at_once(0, size, |to| copy(from, to))).flatten().is_some()
    }

    /// Copies the bytes to `offset` without waiting. False if that is not possible.
    #[must_use]
    pub fn write_at_once(&self, offset: usize, bytes: &[u8]) -> bool {
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: as above.
        !self.is_readonly() && self.at_once(offset, len, |to| unsafe { ptr::copy(from, to, len) }).is_some()
    }

    /// Copies all bytes of `source` to `offset`, and waits. For device memory the device reads the
    /// source; if that takes longer than the wait limit, the source is leaked, because the device
    /// may still read it.
    ///
    /// # Errors
    /// [`ReadOnly`](crate::Error::ReadOnly), [`ErrorKind::OutOfBounds`] beyond the memory, and
    /// those of the copy.
    pub fn write<S: StableBytes>(&self, queue: &Queue<B>, offset: usize, source: S) -> Result<()> {
        let bytes = source.as_ref();
        let _ = self.target(offset, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let _turn = turns::of_one(self)?;
        let (from, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: the turn keeps other submissions over the block away; the source outlives the
        // copy, or is never freed. It may be a view of the same block.
        let outcome = unsafe { queue.write_bytes_from(self.block_of_turns(), offset, from, len) };
        Ok(outcome.inspect_err(|_| std::mem::forget(source))?)
    }

    /// Copies `len` bytes that `fill` writes to `offset`, by several threads through pinned blocks,
    /// and waits. `None`, and `fill` was not called, where the device has no such way; false if
    /// `fill` ended the copy.
    ///
    /// # Safety
    /// Where `fill` returns true it has written all bytes of the slice.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    #[doc(hidden)]
    pub unsafe fn write_by(
        &self,
        queue: &Queue<B>,
        offset: usize,
        len: usize,
        fill: &(dyn Fn(usize, &mut [MaybeUninit<u8>]) -> bool + Sync),
    ) -> Result<Option<bool>> {
        let _ = self.target(offset, len)?;
        let _turn = turns::of_one(self)?;
        // SAFETY: the turn keeps other submissions over the block away; the caller's promise.
        let is_whole = unsafe { queue.write_bytes_by(self.block_of_turns(), offset, len, fill) };
        Ok(is_whole.transpose()?)
    }

    /// Whether a [`fill`](Self::fill) from `offset` takes the pattern.
    pub(crate) fn takes_pattern(&self, offset: usize, pattern: &[u8]) -> bool {
        matches!(pattern.len(), 1 | 2 | 4 | 8 | 16) && (self.address() + offset) % pattern.len() == 0
    }

    /// Repeats `pattern`, of 1, 2, 4, 8 or 16 bytes, over `len` bytes from `offset`, both multiples
    /// of its width, and waits.
    ///
    /// # Errors
    /// [`ReadOnly`](crate::Error::ReadOnly), [`ErrorKind::OutOfBounds`], [`ErrorKind::BadPattern`]
    /// for another width or a place that is no multiple of it, and those of the fill.
    pub fn fill(&self, queue: &Queue<B>, offset: usize, len: usize, pattern: &[u8]) -> Result<()> {
        Ok(self.submit_fill(queue, offset, len, pattern)?.wait()?)
    }

    /// [`fill`](Self::fill) without waiting. Later uses of the memory follow it; the pattern has been
    /// read when this returns.
    ///
    /// # Errors
    /// As [`fill`](Self::fill).
    pub fn submit_fill(
        &self,
        queue: &Queue<B>,
        offset: usize,
        len: usize,
        pattern: &[u8],
    ) -> Result<Event<B>> {
        let to = self.target(offset, len)?;
        if !self.takes_pattern(offset, pattern) || len % pattern.len() != 0 {
            return Err(ErrorKind::BadPattern { width: pattern.len(), len }.into());
        }
        let _turn = turns::of_one(self)?;
        let fill = |queue: &B::Queue, after: &[B::Event]| match len {
            // SAFETY: the events are of the queue's context.
            0 => unsafe { queue.barrier(after) },
            // SAFETY: the range lies inside a live block, which the usage keeps alive and ordered;
            // the turn keeps other submissions over it apart.
            _ => unsafe { queue.fill(to, pattern, len, after) },
        };
        // SAFETY: the fill writes the block after the events that it is given.
        Ok(unsafe { queue.submit(&[Usage::write(self.block_of_turns())], &[], fill) }?)
    }
}
