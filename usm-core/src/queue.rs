//! Queues: ordered submission of work over allocations.

use core::fmt;
use core::time::Duration;

use crate::allocation::Allocation;
use crate::backend::{Advice, Backend, EventOps, MemAdvice, QueueOps, QueueOrder};
use crate::context::Context;
use crate::context_state::ContextState;
use crate::error::{ErrorKind, Result};
use crate::event::Event;
use crate::limits;
#[cfg(feature = "alloc")]
use crate::pending::{Pending, QueueClock};
use crate::sync::next_id;

mod usage;

pub use usage::Usage;

/// Usages of a submission that need no heap.
#[cfg(feature = "alloc")]
const FEW_USAGES: usize = 8;

/// A queue of a context. Cloning it gives another handle to the same queue.
pub struct Queue<B: Backend> {
    raw: B::Queue,
    context: Context<B>,
    /// Id of the queue; 0 when out of order: see [`Uses`](crate::uses::Uses).
    id: u64,
    order: QueueOrder,
    #[cfg(feature = "alloc")]
    clock: QueueClock,
}

impl<B: Backend> Clone for Queue<B> {
    fn clone(&self) -> Self {
        Self {
            raw: self.raw.clone(),
            context: self.context.clone(),
            id: self.id,
            order: self.order,
            #[cfg(feature = "alloc")]
            clock: self.clock.clone(),
        }
    }
}

impl<B: Backend> fmt::Debug for Queue<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("context", &self.context.id())
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}

impl<B: Backend> Queue<B> {
    /// Wraps a backend's own queue. Each wrapper of an in-order queue counts as a separate queue.
    ///
    /// # Safety
    /// `raw` is a queue of `context`'s native context, and orders its operations by `order`.
    #[must_use]
    pub unsafe fn from_raw(context: &Context<B>, raw: B::Queue, order: QueueOrder) -> Self {
        let id = match order {
            QueueOrder::InOrder => next_id(),
            QueueOrder::OutOfOrder => 0,
        };
        Self {
            raw,
            context: context.clone(),
            id,
            order,
            #[cfg(feature = "alloc")]
            clock: QueueClock::new(id),
        }
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context<B> {
        &self.context
    }

    /// Whether the queue orders its operations.
    #[must_use]
    pub fn order(&self) -> QueueOrder {
        self.order
    }

    /// Id of the queue; 0 when out of order: see [`Uses`](crate::uses::Uses).
    #[cfg(feature = "alloc")]
    #[doc(hidden)]
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn clock(&self) -> &QueueClock {
        &self.clock
    }

    /// The backend's own queue.
    #[must_use]
    pub fn raw(&self) -> &B::Queue {
        &self.raw
    }

    /// Submits work over `usages`: the one entry point of kernels, copies and fills.
    ///
    /// Checks the context of every usage, the sum of the distinct arguments and live host views.
    /// Passes `run` the events of all conflicting earlier work together with `after`. Records the
    /// new event on every usage.
    ///
    /// # Safety
    /// `run` submits work to its queue argument, after its event argument, and returns that work's
    /// event. The work touches only memory in `usages`, as they declare, and memory that stays
    /// valid otherwise. If `run` returns an error, it submitted nothing. No other code uses the
    /// bytes that the work writes before the event is complete, unless it waits for the event.
    ///
    /// # Errors
    /// [`ErrorKind::WrongContext`], [`ErrorKind::OverLaunchMemory`], [`ErrorKind::HostViewLive`],
    /// [`ErrorKind::EarlierOwnerFailed`], or the runtime's.
    pub unsafe fn submit(
        &self,
        usages: &[Usage<'_, B>],
        after: &[Event<B>],
        run: impl FnOnce(&B::Queue, &[B::Event]) -> Result<B::Event>,
    ) -> Result<Event<B>> {
        let shared = self.context.shared();
        let expected = shared.id();
        for event in after {
            check_same_context(expected, event.context)?;
        }
        if let [usage] = usages {
            check_same_context(expected, usage.context)?;
            limits::check_launch(shared.info(), core::iter::once(usage.bytes))?;
        } else {
            check_usages(shared, usages)?;
        }
        let _gate = shared.submit()?;
        let raw = self.submit_ordered(usages, after, run)?;
        Ok(Event::of(raw, shared))
    }

    /// As [`submit`](Self::submit), for work over `len` bytes. Submits a barrier for zero bytes,
    /// which runtimes refuse.
    ///
    /// # Safety
    /// As [`submit`](Self::submit), for `run` if `len` is not 0.
    #[inline]
    pub(crate) unsafe fn submit_bytes(
        &self,
        len: usize,
        usages: &[Usage<'_, B>],
        run: impl FnOnce(&B::Queue, &[B::Event]) -> Result<B::Event>,
    ) -> Result<Event<B>> {
        let run = |queue: &B::Queue, after: &[B::Event]| {
            // SAFETY: `submit` gives events of the queue's context.
            if len == 0 { unsafe { queue.barrier(after) } } else { run(queue, after) }
        };
        // SAFETY: the caller's promise; a barrier touches no memory.
        unsafe { self.submit(usages, &[], run) }
    }

    #[cfg(feature = "alloc")]
    #[inline]
    fn submit_ordered(
        &self,
        usages: &[Usage<'_, B>],
        after: &[Event<B>],
        run: impl FnOnce(&B::Queue, &[B::Event]) -> Result<B::Event>,
    ) -> Result<B::Event> {
        // Without records a shared array of an erased host backend needs no lock, which a fork
        // could leave locked in the child.
        if B::SYNCHRONOUS || self.context.shared().is_synchronous() {
            return run(&self.raw, &[]);
        }
        let mut events = alloc::vec::Vec::new();
        if !after.is_empty() {
            events.extend(after.iter().map(|event| event.raw.clone()));
        }
        let [usage] = usages else { return self.submit_ordered_many(usages, events, run) };
        let last_serial = usage.dependencies(self.id, &mut events)?;
        let (event, position) = self.clock.position(|| run(&self.raw, &events))?;
        usage.record(position, event.clone(), last_serial);
        Ok(event)
    }

    /// Submits work with any number of usages. `events` are further events that the work follows.
    #[cfg(feature = "alloc")]
    fn submit_ordered_many(
        &self,
        usages: &[Usage<'_, B>],
        mut events: alloc::vec::Vec<B::Event>,
        run: impl FnOnce(&B::Queue, &[B::Event]) -> Result<B::Event>,
    ) -> Result<B::Event> {
        let (mut few, mut many) = ([0; FEW_USAGES], alloc::vec::Vec::new());
        let serials = if let Some(few) = few.get_mut(..usages.len()) {
            few
        } else {
            many.resize(usages.len(), 0);
            &mut *many
        };
        for (usage, serial) in usages.iter().zip(&mut *serials) {
            *serial = usage.dependencies(self.id, &mut events)?;
        }
        let (event, position) = self.clock.position(|| run(&self.raw, &events))?;
        for (usage, serial) in usages.iter().zip(&*serials) {
            usage.record(position, event.clone(), *serial);
        }
        Ok(event)
    }

    /// Without a heap there is no list of uses, so this waits for the work. After a failed wait the
    /// work may still run, and no list remembers it, so the wait goes on. Backends without `alloc`
    /// are synchronous.
    #[cfg(not(feature = "alloc"))]
    fn submit_ordered(
        &self,
        _: &[Usage<'_, B>],
        _: &[Event<B>],
        run: impl FnOnce(&B::Queue, &[B::Event]) -> Result<B::Event>,
    ) -> Result<B::Event> {
        const { assert!(B::SYNCHRONOUS, "an asynchronous backend needs the feature `alloc`") };
        run(&self.raw, &[])
    }

    /// Copies `len` bytes between two allocations.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfBounds`], and every error of [`submit`](Self::submit). Never
    /// [`ErrorKind::ZeroSize`]: an empty copy is a barrier.
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
    /// [`ErrorKind::OutOfBounds`], [`ErrorKind::Overlap`], and every error of
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
    /// [`ErrorKind::BadPattern`], [`ErrorKind::OutOfBounds`], and every error of
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
    /// [`ErrorKind::Unsupported`], and every error of [`submit`](Self::submit).
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

    /// An event after `after` or, if it is empty, after everything submitted to this queue before.
    ///
    /// # Errors
    /// [`ErrorKind::WrongContext`], or the runtime's.
    pub fn barrier(&self, after: &[Event<B>]) -> Result<Event<B>> {
        self.barrier_with_usages(&[], after)
    }

    /// A [`barrier`](Self::barrier) that is ordered like an operation over these objects: it
    /// follows their earlier work, and their later work follows it.
    ///
    /// # Errors
    /// [`ErrorKind::WrongContext`], [`ErrorKind::OverLaunchMemory`], [`ErrorKind::HostViewLive`],
    /// or the runtime's.
    pub fn barrier_with_usages(&self, usages: &[Usage<'_, B>], after: &[Event<B>]) -> Result<Event<B>> {
        // SAFETY: `submit` gives events of the queue's context.
        let barrier = |queue: &B::Queue, events: &[B::Event]| unsafe { queue.barrier(events) };
        // SAFETY: a barrier touches no memory.
        unsafe { self.submit(usages, after, barrier) }
    }

    /// Blocks until all work submitted before is complete, at most the context's wait limit.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`], or a failed operation's.
    pub fn wait(&self) -> Result<()> {
        self.wait_for(self.context.shared().wait_limit())
    }

    /// Blocks until all work submitted before is complete, at most `limit`.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_for(&self, limit: Duration) -> Result<()> {
        let _entered = self.context.shared().ask()?;
        self.end_event()?.wait(limit)?;
        self.context.collect();
        #[cfg(feature = "alloc")]
        if self.id != 0 {
            self.context.shared().outcomes().report(|queue| queue == self.id)?;
        }
        Ok(())
    }

    /// The work in flight in the queue now, for waiting in parts. Work submitted later is not in
    /// it, so steady load does not prolong the wait.
    ///
    /// # Errors
    /// The runtime's.
    #[cfg(feature = "alloc")]
    pub fn pending(&self) -> Result<Pending<B>> {
        if B::SYNCHRONOUS {
            return Ok(Pending::none());
        }
        let _entered = self.context.shared().ask()?;
        Ok(Pending::of_events(self.context.id(), [self.end_event()?]))
    }

    /// An event after all work submitted before.
    fn end_event(&self) -> Result<B::Event> {
        // SAFETY: no events are given.
        unsafe { self.raw.barrier(&[]) }
    }
}

/// The other side of a buffer copy must be host-accessible memory, because runtimes take a host
/// pointer there.
pub(crate) fn check_host_accessible<B: Backend>(allocation: &Allocation<B>) -> Result<()> {
    let kind = allocation.kind();
    if kind.is_host_accessible() { Ok(()) } else { Err(ErrorKind::NotHostAccessible { kind }.into()) }
}

#[inline]
pub(crate) fn check_same_context(expected: u64, found: u64) -> Result<()> {
    if found == expected { Ok(()) } else { Err(ErrorKind::WrongContext { expected, found }.into()) }
}

/// Checks the context of every usage, and the sum of the distinct ones.
fn check_usages<B: Backend>(shared: &ContextState, usages: &[Usage<'_, B>]) -> Result<()> {
    for usage in usages {
        check_same_context(shared.id(), usage.context)?;
    }
    let distinct = usages.iter().enumerate().filter(|(index, usage)| {
        usages[..*index].iter().all(|earlier| !core::ptr::eq(earlier.uses, usage.uses))
    });
    limits::check_launch(shared.info(), distinct.map(|(_, usage)| usage.bytes))
}

/// Refuses a pattern whose width runtimes do not support, or does not divide the range and its
/// start (an address, or an offset in a buffer).
#[inline]
pub(crate) fn check_pattern(pattern: &[u8], at: usize, len: usize) -> Result<()> {
    let width = pattern.len();
    if matches!(width, 1 | 2 | 4 | 8 | 16) && len % width == 0 && at % width == 0 {
        Ok(())
    } else {
        Err(ErrorKind::BadPattern { width, len }.into())
    }
}

pub(crate) fn check_disjoint(dst: usize, src: usize, len: usize) -> Result<()> {
    if dst.abs_diff(src) < len {
        return Err(ErrorKind::Overlap { dst, src, len }.into());
    }
    Ok(())
}
