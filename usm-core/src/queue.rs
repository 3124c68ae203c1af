//! Queues: ordered submission of work over allocations.

use core::fmt;
use core::time::Duration;

use crate::backend::{Backend, ContextOps, EventOps, QueueOps, QueueOrder};
use crate::checks::check_same_context;
use crate::context::Context;
use crate::context_state::ContextState;
use crate::error::Result;
use crate::event::Event;
use crate::limits;
#[cfg(feature = "alloc")]
use crate::pending::{Pending, QueueClock};
use crate::sync::next_id;

mod operations;
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

impl<B: Backend> Context<B> {
    /// A new queue.
    ///
    /// # Errors
    /// The runtime's.
    pub fn queue(&self, order: QueueOrder) -> Result<Queue<B>> {
        self.make_queue(order, B::Context::create_queue)
    }

    /// A new queue whose events know their [times](crate::Event::times). Measuring may slow its
    /// operations down.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the runtime measures no
    /// times: on the host and on Level Zero. The runtime's.
    pub fn timed_queue(&self, order: QueueOrder) -> Result<Queue<B>> {
        let queue = self.make_queue(order, B::Context::create_timed_queue);
        queue.map_err(|error| error.in_backend(self.info().backend))
    }

    fn make_queue(
        &self,
        order: QueueOrder,
        create: impl FnOnce(&B::Context, QueueOrder) -> Result<B::Queue>,
    ) -> Result<Queue<B>> {
        let _entered = self.shared().work()?;
        #[cfg(feature = "std")]
        if !B::SYNCHRONOUS {
            crate::process::exit::register_for_object();
        }
        let raw = create(&self.raw, order)?;
        // SAFETY: created by this context with this order.
        Ok(unsafe { Queue::from_raw(self, raw, order) })
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
    /// [`ErrorKind::WrongContext`](crate::ErrorKind::WrongContext),
    /// [`ErrorKind::OverLaunchMemory`](crate::ErrorKind::OverLaunchMemory),
    /// [`ErrorKind::HostViewLive`](crate::ErrorKind::HostViewLive),
    /// [`ErrorKind::EarlierOwnerFailed`](crate::ErrorKind::EarlierOwnerFailed), or the runtime's.
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

    /// An event after `after` or, if it is empty, after everything submitted to this queue before.
    ///
    /// # Errors
    /// [`ErrorKind::WrongContext`](crate::ErrorKind::WrongContext), or the runtime's.
    pub fn barrier(&self, after: &[Event<B>]) -> Result<Event<B>> {
        self.barrier_with_usages(&[], after)
    }

    /// A [`barrier`](Self::barrier) that is ordered like an operation over these objects: it
    /// follows their earlier work, and their later work follows it.
    ///
    /// # Errors
    /// [`ErrorKind::WrongContext`](crate::ErrorKind::WrongContext),
    /// [`ErrorKind::OverLaunchMemory`](crate::ErrorKind::OverLaunchMemory),
    /// [`ErrorKind::HostViewLive`](crate::ErrorKind::HostViewLive), or the runtime's.
    pub fn barrier_with_usages(&self, usages: &[Usage<'_, B>], after: &[Event<B>]) -> Result<Event<B>> {
        // SAFETY: `submit` gives events of the queue's context.
        let barrier = |queue: &B::Queue, events: &[B::Event]| unsafe { queue.barrier(events) };
        // SAFETY: a barrier touches no memory.
        unsafe { self.submit(usages, after, barrier) }
    }

    /// Blocks until all work submitted before is complete, at most the context's wait limit.
    ///
    /// # Errors
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout), or a failed operation's.
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
