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
pub(super) struct Tracked<O>(Arc<Inner<O>>);

pub(super) struct Inner<O> {
    operation: O,
    /// Whether it is known to be complete, with all its predecessors.
    complete: AtomicBool,
    /// The chain of its queue, and its number in it.
    place: Option<(Arc<Chain<O>>, u64)>,
    /// Further predecessors that were incomplete at submission.
    follows: Mutex<Vec<Tracked<O>>>,
    /// Whether all its predecessors are in its chain.
    only_in_chain: bool,
}

impl<O> Clone for Tracked<O> {
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

impl<O: EventOps> Tracked<O> {
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
        let kept = follows.iter().rposition(|event| !event.is_known_complete()).map_or(0, |last| last + 1);
        let gone: Vec<_> = follows.drain(kept..).collect();
        let last = follows.last().cloned();
        drop(follows);
        drop(gone);
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
    failed: AtomicBool,
    state: Mutex<State<O>>,
}

struct State<O> {
    waiting: VecDeque<Tracked<O>>,
    /// The first operation that is known to have failed, with its error. Later operations are not
    /// kept here.
    failed: Option<(u64, Error)>,
}

impl<O> fmt::Debug for Lane<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane").finish_non_exhaustive()
    }
}

impl<O: EventOps> Lane<O> {
    pub(super) fn new() -> Self {
        let state = State { waiting: VecDeque::new(), failed: None };
        let chain = Chain { failed: AtomicBool::new(false), state: Mutex::new(state) };
        Self { chain: Arc::new(chain), turn: Mutex::new(0) }
    }

    /// Submits by `call`, after `follows` and everything submitted before. If `refuse`, fails after
    /// a known failure of the queue.
    pub(super) fn submit(
        &self,
        refuse: bool,
        follows: Vec<Tracked<O>>,
        call: impl FnOnce() -> Result<O>,
    ) -> Result<Tracked<O>> {
        let mut turn = self.turn.lock();
        if refuse {
            self.chain.check()?;
        }
        let operation = call()?;
        *turn += 1;
        let event = Tracked::with_place(operation, Some((Arc::clone(&self.chain), *turn)), follows);
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
        if !self.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.state.lock().failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Adds an event. Returns whether the chain is longer than [`LONG`].
    fn push(&self, event: Tracked<O>) -> bool {
        let mut state = self.state.lock();
        if state.failed.is_none() {
            state.waiting.push_back(event);
        }
        state.waiting.len() > LONG
    }

    /// Queries two operations for each submission, so a chain of finished operations shrinks.
    fn query_oldest(&self) {
        for _ in 0..2 {
            let oldest = self.state.lock().waiting.front().cloned();
            if !oldest.is_some_and(|event| event.is_complete()) {
                return;
            }
        }
    }

    fn drop_finished(&self) {
        let gone = self.state.lock().take_finished();
        drop(gone);
    }

    /// The first incomplete operation before the finished `event`, or the failure of one. If there
    /// is none and the event has no other predecessor, it is complete and leaves the chain.
    fn first_incomplete_before(&self, event: &Tracked<O>, number: u64) -> Result<Option<Tracked<O>>> {
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
    fn operations_before(&self, event: &Tracked<O>, number: u64) -> Result<Vec<Tracked<O>>> {
        // Dropped after the lock is released.
        let mut gone = [Few::None, Few::None];
        let mut state = self.state.lock();
        gone[0] = state.take_finished();
        if let Some((_, error)) = state.failed.filter(|(failed, _)| *failed < number) {
            return Err(error);
        }
        let count = state.waiting.partition_point(|waiting| waiting.number() < number);
        if count == 0 && event.0.only_in_chain {
            event.0.complete.store(true, Ordering::Release);
            gone[1] = state.take_finished();
        }
        Ok(state.waiting.range(..count).cloned().collect())
    }

    fn fail(&self, number: u64, error: Error) {
        let mut behind = VecDeque::new();
        let mut state = self.state.lock();
        if state.failed.is_none_or(|(first, _)| number < first) {
            state.failed = Some((number, error));
            self.failed.store(true, Ordering::Release);
            let count = state.waiting.partition_point(|waiting| waiting.number() < number);
            behind = state.waiting.split_off(count);
        }
        let gone = state.take_finished();
        drop(state);
        drop((gone, behind));
    }
}

impl<O: EventOps> State<O> {
    /// Removes the complete operations at the front. Drop the result after releasing the lock.
    fn take_finished(&mut self) -> Few<Tracked<O>> {
        match self.waiting.iter().take_while(|event| event.is_known_complete()).count() {
            0 => Few::None,
            1 => self.waiting.pop_front().map_or(Few::None, Few::One),
            several => Few::Several(self.waiting.drain(..several).collect()),
        }
    }
}
