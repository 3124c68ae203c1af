//! The predecessors of operations, so that no failure is lost.
//!
//! Each operation keeps its predecessors until they are known to be complete: the operations of an
//! in-order queue in one chain, oldest first, others in a list of their own. A query of an event
//! queries its predecessors too; most of them are already known to be complete.
//!
//! The runtime is called, and events are released, without a lock of this file; only [`Lane`]'s
//! turn is held over a submission. Nothing here names the runtime, so that the models can use it.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use usm_core::backend::{EventOps, EventStatus};
use usm_core::driver::Few;
use usm_core::driver::sync::sleeping::Mutex;
use usm_core::driver::sync::{AtomicBool, Ordering};
use usm_core::{Error, Result};

#[cfg(all(test, loom))]
mod models;

/// A chain longer than this queries its oldest operations, because perhaps no other code ever does.
const LONG: usize = if cfg!(loom) { 3 } else { 64 };

/// The event of an operation, with its predecessors.
pub(super) struct TrackedOperation<O>(Arc<Inner<O>>);

pub(super) struct Inner<O> {
    operation: O,
    /// Whether it is known to be complete, with all its predecessors.
    complete: AtomicBool,
    /// The chain of its queue, and its number in it.
    place: Option<(Arc<Chain<O>>, u64)>,
    /// Further predecessors that were incomplete at submission.
    follows: Mutex<Vec<TrackedOperation<O>>>,
    /// Whether all its predecessors are in its chain.
    only_in_chain: bool,
}

impl<O> Clone for TrackedOperation<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O: fmt::Debug> fmt::Debug for Inner<O> {
    /// Omits the predecessors, because there may be many.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation.fmt(f)
    }
}

impl<O> Drop for Inner<O> {
    /// Drops nested lists in a loop, not by recursion.
    fn drop(&mut self) {
        let mut rest = core::mem::take(self.follows.get_mut());
        while let Some(event) = rest.pop() {
            if let Some(mut inner) = Arc::into_inner(event.0) {
                rest.append(inner.follows.get_mut());
            }
        }
    }
}

impl<O> Inner<O> {
    pub(super) fn operation(&self) -> &O {
        &self.operation
    }
}

impl<O: EventOps> TrackedOperation<O> {
    /// The event of an operation whose only predecessors are `follows`.
    pub(super) fn new(operation: O, follows: Vec<Self>) -> Self {
        Self::with_place(operation, None, follows)
    }

    fn with_place(operation: O, place: Option<(Arc<Chain<O>>, u64)>, follows: Vec<Self>) -> Self {
        let (complete, only_in_chain) = (AtomicBool::new(false), follows.is_empty());
        let event =
            Self(Arc::new(Inner { operation, complete, place, follows: Mutex::new(follows), only_in_chain }));
        if cfg!(loom) {
            // this thread must make loom's locks.
            drop((event.is_known_complete(), event.0.follows.lock()));
        }
        event
    }

    pub(super) fn inner(&self) -> &Arc<Inner<O>> {
        &self.0
    }

    /// Whether it is known to be complete, with all its predecessors.
    pub(super) fn is_known_complete(&self) -> bool {
        self.0.complete.load(Ordering::Acquire)
    }

    fn is_complete(&self) -> bool {
        matches!(self.status(), Ok(EventStatus::Complete))
    }

    pub(super) fn status(&self) -> Result<EventStatus> {
        if self.is_known_complete() {
            return Ok(EventStatus::Complete);
        }
        let mut way = Vec::new();
        let answer = self.query_predecessors(&mut way);
        if let Err(error) = answer {
            // The chains of all operations after the failure record it.
            for event in [self].into_iter().chain(&way) {
                event.fail(error);
            }
        }
        answer
    }

    /// Queries its own operation first, then its predecessors. Each event on the path waits for the
    /// next one.
    fn query_predecessors(&self, way: &mut Vec<Self>) -> Result<EventStatus> {
        if self.0.operation.status()? == EventStatus::Pending {
            return Ok(EventStatus::Pending);
        }
        loop {
            let event = way.last().unwrap_or(self);
            let Some(before) = event.predecessor()? else {
                event.mark_complete();
                if way.pop().is_none() {
                    return Ok(EventStatus::Complete);
                }
                continue;
            };
            let status = before.0.operation.status();
            way.push(before);
            if status? == EventStatus::Pending {
                return Ok(EventStatus::Pending);
            }
        }
    }

    /// An incomplete predecessor, if there is one. A finished event with no other predecessor has
    /// already been removed from the chain.
    fn predecessor(&self) -> Result<Option<Self>> {
        if let Some((chain, number)) = &self.0.place {
            if let Some(before) = chain.first_incomplete_before(self, *number)? {
                return Ok(Some(before));
            }
        }
        if self.0.only_in_chain {
            return Ok(None);
        }
        let mut follows = self.0.follows.lock();
        let first_kept =
            follows.iter().rposition(|event| !event.is_known_complete()).map_or(0, |last| last + 1);
        let complete_events: Vec<_> = follows.drain(first_kept..).collect();
        let last = follows.last().cloned();
        drop(follows);
        drop(complete_events);
        Ok(last)
    }

    /// Marks it complete, because it and all its predecessors are.
    fn mark_complete(&self) {
        if self.0.only_in_chain && self.0.place.is_some() {
            return;
        }
        self.0.complete.store(true, Ordering::Release);
        if let Some((chain, _)) = &self.0.place {
            chain.drop_finished();
        }
    }

    fn fail(&self, error: Error) {
        if let Some((chain, number)) = &self.0.place {
            chain.fail(*number, error);
        }
    }

    fn number(&self) -> u64 {
        self.0.place.as_ref().map_or(0, |(_, number)| *number)
    }
}

/// The operations of an in-order queue.
pub(super) struct Lane<O> {
    chain: Arc<Chain<O>>,
    /// Number of the last operation. Locked during a submission, so that numbers follow the order
    /// of the queue.
    turn: Mutex<u64>,
}

/// The operations of an in-order queue that are not known to be complete, oldest first.
struct Chain<O> {
    /// Whether an operation is known to have failed. Set with the state locked.
    has_failed: AtomicBool,
    state: Mutex<State<O>>,
}

struct State<O> {
    open_operations: VecDeque<TrackedOperation<O>>,
    /// The first operation that is known to have failed, with its error. Later operations are not
    /// kept here.
    first_failure: Option<(u64, Error)>,
}

impl<O> fmt::Debug for Lane<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}

impl<O: EventOps> Lane<O> {
    pub(super) fn new() -> Self {
        let state = State { open_operations: VecDeque::new(), first_failure: None };
        let chain = Chain { has_failed: AtomicBool::new(false), state: Mutex::new(state) };
        Self { chain: Arc::new(chain), turn: Mutex::new(0) }
    }

    /// Submits by `call`, after `follows` and everything submitted before. If `refuse`, fails after
    /// a known failure of the queue.
    pub(super) fn submit(
        &self,
        refuse: bool,
        follows: Vec<TrackedOperation<O>>,
        call: impl FnOnce() -> Result<O>,
    ) -> Result<TrackedOperation<O>> {
        let mut turn = self.turn.lock();
        if refuse {
            self.chain.check()?;
        }
        let operation = call()?;
        *turn += 1;
        let event = TrackedOperation::with_place(operation, Some((Arc::clone(&self.chain), *turn)), follows);
        let long = self.chain.push(event.clone());
        drop(turn);
        if long {
            self.chain.query_oldest();
        }
        Ok(event)
    }
}

impl<O: EventOps> Chain<O> {
    /// The known failure of an earlier operation.
    fn check(&self) -> Result<()> {
        if !self.has_failed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.state.lock().first_failure.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Adds an event. Returns whether the chain is longer than [`LONG`].
    fn push(&self, event: TrackedOperation<O>) -> bool {
        let mut state = self.state.lock();
        if state.first_failure.is_none() {
            state.open_operations.push_back(event);
        }
        state.open_operations.len() > LONG
    }

    /// Queries two operations for each submission, so a chain of finished operations shrinks.
    fn query_oldest(&self) {
        for _ in 0..2 {
            let oldest = self.state.lock().open_operations.front().cloned();
            if !oldest.is_some_and(|event| event.is_complete()) {
                return;
            }
        }
    }

    fn drop_finished(&self) {
        let finished_operations = self.state.lock().take_finished();
        drop(finished_operations);
    }

    /// The first incomplete operation before the finished `event`, or the failure of one. If there
    /// is none and the event has no other predecessor, it is complete and leaves the chain.
    fn first_incomplete_before(
        &self,
        event: &TrackedOperation<O>,
        number: u64,
    ) -> Result<Option<TrackedOperation<O>>> {
        loop {
            let earlier = self.operations_before(event, number)?;
            if earlier.is_empty() {
                return Ok(None);
            }
            // Most operations have no other predecessor, and the first has none, so one pass
            // queries many finished operations.
            for event in earlier {
                if !event.0.only_in_chain || !matches!(event.0.operation.status(), Ok(EventStatus::Complete))
                {
                    return Ok(Some(event));
                }
                event.0.complete.store(true, Ordering::Release);
            }
        }
    }

    /// The kept operations before `event`.
    fn operations_before(
        &self,
        event: &TrackedOperation<O>,
        number: u64,
    ) -> Result<Vec<TrackedOperation<O>>> {
        // Dropped after the lock is released.
        let mut finished_operations = [Few::None, Few::None];
        let mut state = self.state.lock();
        finished_operations[0] = state.take_finished();
        if let Some((_, error)) = state.first_failure.filter(|(failed_number, _)| *failed_number < number) {
            return Err(error);
        }
        let count = state.open_operations.partition_point(|operation| operation.number() < number);
        if count == 0 && event.0.only_in_chain {
            event.0.complete.store(true, Ordering::Release);
            finished_operations[1] = state.take_finished();
        }
        Ok(state.open_operations.range(..count).cloned().collect())
    }

    fn fail(&self, number: u64, error: Error) {
        let mut behind = VecDeque::new();
        let mut state = self.state.lock();
        if state.first_failure.is_none_or(|(first, _)| number < first) {
            state.first_failure = Some((number, error));
            self.has_failed.store(true, Ordering::Release);
            let count = state.open_operations.partition_point(|operation| operation.number() < number);
            behind = state.open_operations.split_off(count);
        }
        let finished_operations = state.take_finished();
        drop(state);
        drop((finished_operations, behind));
    }
}

impl<O: EventOps> State<O> {
    /// Removes the complete operations at the front. Drop the result after releasing the lock.
    fn take_finished(&mut self) -> Few<TrackedOperation<O>> {
        match self.open_operations.iter().take_while(|event| event.is_known_complete()).count() {
            0 => Few::None,
            1 => self.open_operations.pop_front().map_or(Few::None, Few::One),
            several => Few::Several(self.open_operations.drain(..several).collect()),
        }
    }
}
