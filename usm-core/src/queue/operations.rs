//! A queue's operations on memory.

use super::{Queue, Usage};
use crate::allocation::Allocation;
use crate::backend::{Advice, Backend, MemAdvice, QueueOps};
use crate::checks::{check_disjoint, check_pattern};
use crate::error::Result;
use crate::event::Event;

impl<B: Backend> Queue<B> {
    /// Copies `len` bytes between two allocations.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds), and every error of
    /// [`submit`](Self::submit). Never [`ErrorKind::ZeroSize`](crate::ErrorKind::ZeroSize): an
    /// empty copy is a barrier.
    pub fn copy_bytes(
        &self,
        dst: &mut Allocation<B>,
        dst_offset: usize,
        src: &Allocation<B>,
        src_offset: usize,
        len: usize,
    ) -> Result<Event<B>> {
        dst.check_range(dst_offset, len)?;
        src.check_range(src_offset, len)?;
        let usages = [Usage::write(dst), Usage::read(src)];
        let to = dst.as_ptr().wrapping_add(dst_offset);
        let from = src.as_ptr().wrapping_add(src_offset);
        // Two owners overlap only if one is foreign; then the addresses decide.
        check_disjoint(to as usize, from as usize, len)?;
        let copy = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: both ranges lie inside live allocations of the queue's context (checked by
            // `submit`) and are disjoint; the usages keep both alive and ordered until the copy is
            // done.
            unsafe { queue.copy(to, from, len, after) }
        };
        // SAFETY: the copy accesses what the usages declare, and `dst` is borrowed exclusively;
        // after an error nothing was submitted.
        let event = unsafe { self.submit_bytes(len, &usages, copy) }?;
        dst.take_over_failures(src);
        Ok(event)
    }

    /// Copies `len` bytes inside one allocation; the ranges must not overlap.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds),
    /// [`ErrorKind::Overlap`](crate::ErrorKind::Overlap), and every error of
    /// [`submit`](Self::submit).
    pub fn copy_within(
        &self,
        allocation: &mut Allocation<B>,
        dst_offset: usize,
        src_offset: usize,
        len: usize,
    ) -> Result<Event<B>> {
        allocation.check_range(dst_offset, len)?;
        allocation.check_range(src_offset, len)?;
        let to = allocation.as_ptr().wrapping_add(dst_offset);
        let from = allocation.as_ptr().wrapping_add(src_offset);
        check_disjoint(to as usize, from as usize, len)?;
        let usage = Usage::write(allocation);
        let copy = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: as in `copy_bytes`, inside one allocation.
            unsafe { queue.copy(to, from, len, after) }
        };
        // SAFETY: as in `copy_bytes`.
        unsafe { self.submit_bytes(len, &[usage], copy) }
    }

    /// Repeats `pattern` (1, 2, 4, 8 or 16 bytes) over `len` bytes at `offset`.
    ///
    /// # Errors
    /// [`ErrorKind::BadPattern`](crate::ErrorKind::BadPattern),
    /// [`ErrorKind::OutOfBounds`](crate::ErrorKind::OutOfBounds), and every error of
    /// [`submit`](Self::submit).
    pub fn fill_bytes(
        &self,
        allocation: &mut Allocation<B>,
        offset: usize,
        len: usize,
        pattern: &[u8],
    ) -> Result<Event<B>> {
        allocation.check_range(offset, len)?;
        let to = allocation.as_ptr().wrapping_add(offset);
        check_pattern(pattern, to as usize, len)?;
        let usage = Usage::write(allocation);
        let fill = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: the range lies inside a live allocation of the queue's context, is a multiple
            // of the pattern, and the usage keeps the allocation alive and ordered until the fill
            // is done.
            unsafe { queue.fill(to, pattern, len, after) }
        };
        // SAFETY: the fill accesses what the usage declares, which is borrowed exclusively; after
        // an error nothing was submitted.
        unsafe { self.submit_bytes(len, &[usage], fill) }
    }

    /// Asks for an allocation to be near the queue's device.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported), and every error of
    /// [`submit`](Self::submit).
    pub fn prefetch(&self, allocation: &Allocation<B>) -> Result<Event<B>> {
        let prefetch = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: the whole of a live allocation of the queue's context, which the usage keeps
            // alive until the prefetch is complete.
            unsafe { B::Advice::prefetch(queue, allocation.as_ptr(), allocation.size(), after) }
        };
        // SAFETY: a prefetch changes no value.
        unsafe { self.submit(&[Usage::read(allocation)], &[], prefetch) }
    }

    /// Advises the runtime how the program will use an allocation.
    ///
    /// # Errors
    /// As [`prefetch`](Self::prefetch).
    pub fn advise(&self, allocation: &Allocation<B>, advice: MemAdvice) -> Result<Event<B>> {
        let advise = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: as in `prefetch`.
            unsafe { B::Advice::advise(queue, allocation.as_ptr(), allocation.size(), advice, after) }
        };
        // SAFETY: advice changes no value.
        unsafe { self.submit(&[Usage::read(allocation)], &[], advise) }
    }
}
