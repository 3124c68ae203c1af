//! The operations that still use a block when it passes from one owner to another.

use core::fmt;
use core::time::Duration;

use crate::backend::{Backend, EventOps};
use crate::deadline::Deadline;
use crate::error::Result;

#[cfg(feature = "alloc")]
use {crate::few::Few, crate::sync::Counter, alloc::sync::Arc, alloc::vec::Vec};

/// Where an operation stands among those of its in-order queue. Queues number the beginnings and
/// the ends of their submissions by one counter, because two threads may submit at the same time:
/// only an operation whose submission began after another's had ended is surely the later one.
#[cfg(feature = "alloc")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Id of the queue; 0 for an out-of-order queue: only an in-order one orders its operations.
    pub(crate) queue: u64,
    began: u64,
    end_count: u64,
}

#[cfg(feature = "alloc")]
impl Position {
    /// An operation that no queue orders after another.
    pub(crate) const UNORDERED: Self = Self { queue: 0, began: 0, end_count: 0 };

    /// Whether the queue runs this operation after the other.
    fn is_after(&self, other: &Self) -> bool {
        self.queue != 0 && self.queue == other.queue && self.began >= other.end_count
    }
}

/// The counter of one queue, whose clones share it.
#[cfg(feature = "alloc")]
#[derive(Clone)]
pub(crate) struct QueueClock {
    queue: u64,
    counter: Arc<Counter>,
}

#[cfg(feature = "alloc")]
impl QueueClock {
    pub(crate) fn new(queue: u64) -> Self {
        Self { queue, counter: Arc::new(Counter::new(1)) }
    }

    /// Runs `submit`, and returns where the operation stands.
    #[inline]
    pub(crate) fn position<T>(&self, submit: impl FnOnce() -> Result<T>) -> Result<(T, Position)> {
        if self.queue == 0 {
            return Ok((submit()?, Position::UNORDERED));
        }
        let began = self.counter.next();
        let event = submit()?;
        // Counts too, so that whoever begins later has seen this submission return.
        Ok((event, Position { queue: self.queue, began, end_count: self.counter.next() }))
    }
}

/// An operation that left its list of uses.
#[cfg(feature = "alloc")]
pub(crate) struct PendingUse<B: Backend> {
    pub(crate) event: B::Event,
    pub(crate) position: Position,
    /// Name of an event without a position, or 0: a list recognises an event that reaches it a
    /// second time.
    pub(crate) name: u64,
}

#[cfg(feature = "alloc")]
impl<B: Backend> Clone for PendingUse<B> {
    fn clone(&self) -> Self {
        Self { event: self.event.clone(), position: self.position, name: self.name }
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> PendingUse<B> {
    pub(crate) fn is(&self, name: u64, position: Position) -> bool {
        let of_queue = position.queue != 0 && self.position.queue == position.queue;
        (of_queue && self.position.began == position.began) || (name != 0 && self.name == name)
    }
}

/// The events of unfinished operations of one context. One event needs no heap.
pub struct Pending<B: Backend> {
    /// Id of the context; 0 of none.
    context: u64,
    #[cfg(feature = "alloc")]
    uses: Few<PendingUse<B>>,
    /// Without a heap a submission waits for its event before it returns.
    #[cfg(not(feature = "alloc"))]
    uses: [B::Event; 0],
}

/// A clone serves memory that several later allocations reuse in parts: each of them waits.
impl<B: Backend> Clone for Pending<B> {
    fn clone(&self) -> Self {
        Self { context: self.context, uses: self.uses.clone() }
    }
}

impl<B: Backend> fmt::Debug for Pending<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("events", &self.events().len()).finish()
    }
}

impl<B: Backend> Pending<B> {
    /// No work in flight.
    #[inline]
    #[must_use]
    pub const fn none() -> Self {
        #[cfg(feature = "alloc")]
        let uses = Few::None;
        #[cfg(not(feature = "alloc"))]
        let uses = [];
        Self { context: 0, uses }
    }

    /// Id of the operations' context; 0 if no work is in flight.
    #[must_use]
    pub fn context(&self) -> u64 {
        if self.is_empty() { 0 } else { self.context }
    }

    /// The events.
    pub fn events(&self) -> impl ExactSizeIterator<Item = &B::Event> {
        #[cfg(feature = "alloc")]
        return self.uses.as_slice().iter().map(|earlier| &earlier.event);
        #[cfg(not(feature = "alloc"))]
        self.uses.iter()
    }

    /// Whether no operation is in flight.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events().len() == 0
    }

    /// Whether all of it is complete. A failed operation never is: it may still touch memory.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.events().all(EventOps::is_complete)
    }

    /// Whether one of the operations is known to have failed; never blocks.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.events().any(|event| event.status().is_err())
    }

    /// Blocks until all of it is complete, at most `limit`.
    ///
    /// # Errors
    /// The first event's failure or timeout.
    pub fn wait(&self, limit: Duration) -> Result<()> {
        let mut deadline = Deadline::after(limit);
        self.events().try_for_each(|event| deadline.wait(|left| event.wait(left)))
    }
}

#[cfg(feature = "alloc")]
impl<B: Backend> Pending<B> {
    pub(crate) fn of(context: u64, uses: Few<PendingUse<B>>) -> Self {
        Self { context, uses }
    }

    /// These events of a context, whose queues are not known.
    pub(crate) fn of_events(context: u64, events: impl IntoIterator<Item = B::Event>) -> Self {
        let mut uses = Few::None;
        for event in events {
            uses.push(PendingUse { event, position: Position::UNORDERED, name: 0 });
        }
        Self { context, uses }
    }

    pub(crate) fn into_events(self) -> Vec<B::Event> {
        self.into_uses().into_iter().map(|earlier| earlier.event).collect()
    }

    pub(crate) fn into_uses(self) -> Few<PendingUse<B>> {
        self.uses
    }

    /// Adds operations of the same context. Leaves out those that are here already, and those that
    /// a later operation of the same in-order queue is ordered after. Those that left come back, to
    /// be dropped where that may call the driver.
    #[must_use = "its drop may call the driver"]
    pub fn join(&mut self, others: Self) -> Self {
        let mut left_uses = Self::none();
        if self.is_empty() {
            self.context = others.context;
        }
        for other in others.uses {
            let stale = |earlier: &PendingUse<B>| {
                earlier.is(other.name, other.position) || earlier.position.is_after(&other.position)
            };
            if self.uses.as_slice().iter().any(stale) {
                left_uses.uses.push(other);
                continue;
            }
            let earlier_uses = self.uses.take_out(|earlier| other.position.is_after(&earlier.position));
            earlier_uses.into_iter().for_each(|earlier| left_uses.uses.push(earlier));
            self.uses.push(other);
        }
        left_uses
    }

    /// The id of the in-order queue that all operations are of, whose next operation waits for none
    /// of them by an event; 0 of several queues or one that orders nothing; `None` without any.
    #[doc(hidden)]
    #[must_use]
    pub fn only_queue(&self) -> Option<u64> {
        let (first, others) = self.uses.as_slice().split_first()?;
        let queue = first.position.queue;
        Some(if others.iter().all(|other| other.position.queue == queue) { queue } else { 0 })
    }
}
