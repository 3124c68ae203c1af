//! What follows what, so that no failure is lost.
//!
//! Each operation remembers what it follows until that is known to be complete: those of an
//! in-order queue in one line for all of them, oldest first, others in a list of their own. Who
//! asks about an event asks about what is before it too, most of which was asked for already.
//!
//! The runtime is called, and events are given back to it, without a lock of this file held, but
//! for [`Lane`]'s turn, which is held over a submission. Nothing here names the runtime, so that
//! the models reach it.

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

/// Operations that a line may hold before the oldest are asked for: nobody else may ever.
const LONG: usize = if cfg!(loom) { 3 } else { 64 };

/// The event of an operation, with what that follows.
pub(super) struct Tracked<O>(Arc<Inner<O>>);

pub(super) struct Inner<O> {
    operation: O,
    /// Known to be complete, with all that it follows.
    over: AtomicBool,
    /// The line of its queue, and its number there.
    place: Option<(Arc<Line<O>>, u64)>,
    /// What else it follows and was not over when it was submitted.
    follows: Mutex<Vec<Tracked<O>>>,
    /// Whether it follows nothing but its line.
    lined: bool,
}

impl<O> Clone for Tracked<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O: fmt::Debug> fmt::Debug for Inner<O> {
    /// Not what it follows, which may lead anywhere.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation.fmt(f)
    }
}

impl<O> Drop for Inner<O> {
    /// A list behind a list behind a list, each dropped before the next: not by recursion.
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
    /// Of an operation behind `follows` alone.
    pub(super) fn new(operation: O, follows: Vec<Self>) -> Self {
        Self::known(operation, None, follows)
    }

    fn known(operation: O, place: Option<(Arc<Line<O>>, u64)>, follows: Vec<Self>) -> Self {
        let (over, lined) = (AtomicBool::new(false), follows.is_empty());
        let event = Self(Arc::new(Inner { operation, over, place, follows: Mutex::new(follows), lined }));
        if cfg!(loom) {
            // loom's are made by this thread.
            drop((event.is_over(), event.0.follows.lock()));
        }
        event
    }

    pub(super) fn inner(&self) -> &Arc<Inner<O>> {
        &self.0
    }

    /// Known to be complete, with all that it follows.
    pub(super) fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    fn is_complete(&self) -> bool {
        matches!(self.status(), Ok(EventStatus::Complete))
    }

    pub(super) fn status(&self) -> Result<EventStatus> {
        if self.is_over() {
            return Ok(EventStatus::Complete);
        }
        let mut way = Vec::new();
        let answer = self.look_back(&mut way);
        if let Err(error) = answer {
            // The lines of all that follows the failure know it.
            for event in [self].into_iter().chain(&way) {
                event.fail(error);
            }
        }
        answer
    }

    /// Its own operation first, then what is before it. Each event of the way waits for the next.
    fn look_back(&self, way: &mut Vec<Self>) -> Result<EventStatus> {
        if self.0.operation.status()? == EventStatus::Pending {
            return Ok(EventStatus::Pending);
        }
        loop {
            let event = way.last().unwrap_or(self);
            let Some(before) = event.before()? else {
                event.end();
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

    /// What it follows and is not over, if there is anything. Where it has ended itself and follows
    /// nothing but its line, it has left that then.
    fn before(&self) -> Result<Option<Self>> {
        if let Some((line, number)) = &self.0.place {
            if let Some(before) = line.before(self, *number)? {
                return Ok(Some(before));
            }
        }
        if self.0.lined {
            return Ok(None);
        }
        let mut follows = self.0.follows.lock();
        let kept = follows.iter().rposition(|event| !event.is_over()).map_or(0, |last| last + 1);
        let gone: Vec<_> = follows.drain(kept..).collect();
        let last = follows.last().cloned();
        drop(follows);
        drop(gone);
        Ok(last)
    }

    /// It has ended, and nothing is before it.
    fn end(&self) {
        if self.0.lined && self.0.place.is_some() {
            return;
        }
        self.0.over.store(true, Ordering::Release);
        if let Some((line, _)) = &self.0.place {
            line.sweep();
        }
    }

    fn fail(&self, error: Error) {
        if let Some((line, number)) = &self.0.place {
            line.fail(*number, error);
        }
    }

    fn number(&self) -> u64 {
        self.0.place.as_ref().map_or(0, |(_, number)| *number)
    }
}

/// What an in-order queue has of its operations.
pub(super) struct Lane<O> {
    line: Arc<Line<O>>,
    /// Number of the last operation. Held over a submission, so that numbers are in the order of
    /// the queue.
    turn: Mutex<u64>,
}

/// The operations of an in-order queue that are not known to be over, oldest first.
struct Line<O> {
    /// Whether an operation is known to have failed. Set with the state locked.
    failed: AtomicBool,
    state: Mutex<State<O>>,
}

struct State<O> {
    waiting: VecDeque<Tracked<O>>,
    /// The first operation that is known to have failed, and how. None behind it waits here.
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
        let line = Line { failed: AtomicBool::new(false), state: Mutex::new(state) };
        Self { line: Arc::new(line), turn: Mutex::new(0) }
    }

    /// Submits by `call`, behind `follows` and what was submitted before. With `refuse`, not behind
    /// an operation of the queue that is known to have failed.
    pub(super) fn submit(
        &self,
        refuse: bool,
        follows: Vec<Tracked<O>>,
        call: impl FnOnce() -> Result<O>,
    ) -> Result<Tracked<O>> {
        let mut turn = self.turn.lock();
        if refuse {
            self.line.check()?;
        }
        let operation = call()?;
        *turn += 1;
        let event = Tracked::known(operation, Some((Arc::clone(&self.line), *turn)), follows);
        let long = self.line.enter(event.clone());
        drop(turn);
        if long {
            self.line.ask_oldest();
        }
        Ok(event)
    }
}

impl<O: EventOps> Line<O> {
    /// The failure of an operation before whatever is submitted next.
    fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.state.lock().failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Whether it has become long.
    fn enter(&self, event: Tracked<O>) -> bool {
        let mut state = self.state.lock();
        if state.failed.is_none() {
            state.waiting.push_back(event);
        }
        state.waiting.len() > LONG
    }

    /// More go than come, once they have ended.
    fn ask_oldest(&self) {
        for _ in 0..2 {
            let oldest = self.state.lock().waiting.front().cloned();
            if !oldest.is_some_and(|event| event.is_complete()) {
                return;
            }
        }
    }

    fn sweep(&self) {
        let gone = self.state.lock().take_finished();
        drop(gone);
    }

    /// The first that is not over of those before `event`, which has ended, or the failure of one.
    /// Where there is none, and it follows nothing else, it is over and leaves.
    fn before(&self, event: &Tracked<O>, number: u64) -> Result<Option<Tracked<O>>> {
        loop {
            let earlier = self.earlier(event, number)?;
            if earlier.is_empty() {
                return Ok(None);
            }
            // Most follow nothing but the line, and nothing is before the first: many that have
            // ended are asked for in one go.
            for event in earlier {
                if !event.0.lined || !matches!(event.0.operation.status(), Ok(EventStatus::Complete)) {
                    return Ok(Some(event));
                }
                event.0.over.store(true, Ordering::Release);
            }
        }
    }

    /// Those that wait before `event`.
    fn earlier(&self, event: &Tracked<O>, number: u64) -> Result<Vec<Tracked<O>>> {
        // Dropped after the lock.
        let mut gone = [Few::None, Few::None];
        let mut state = self.state.lock();
        gone[0] = state.take_finished();
        if let Some((_, error)) = state.failed.filter(|(failed, _)| *failed < number) {
            return Err(error);
        }
        let count = state.waiting.partition_point(|waiting| waiting.number() < number);
        if count == 0 && event.0.lined {
            event.0.over.store(true, Ordering::Release);
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
    /// Those at the front that are over. To be dropped once the lock is released.
    fn take_finished(&mut self) -> Few<Tracked<O>> {
        match self.waiting.iter().take_while(|event| event.is_over()).count() {
            0 => Few::None,
            1 => self.waiting.pop_front().map_or(Few::None, Few::One),
            several => Few::Several(self.waiting.drain(..several).collect()),
        }
    }
}
