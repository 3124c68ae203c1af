//! The queues of a context: the live ones, and the last events of dropped ones. A wait for all work
//! of the context goes through this list.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use std::time::Instant;

use crate::backend::EventOps;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Mutex, next_id, take_out, yield_thread};

#[cfg(all(test, loom))]
mod models;
#[cfg(test)]
mod tests;

/// Maximum number of failed last events kept for dropped queues. Older ones fold into one permanent
/// error, so repeated failures cannot exhaust memory. A kept event may still tell that its work has
/// ended; a folded one cannot.
const MAX_FAILURES: usize = if cfg!(loom) { 0 } else { 64 };

/// Queues `Q` with events `E`.
#[derive(Debug)]
pub struct QueueList<Q, E> {
    /// The live queues. A queue that is being dropped stays until [`remove`](Self::remove).
    queues: Mutex<Vec<Weak<Q>>>,
    /// The last events of dropped queues, whose work may go on.
    last_events: Mutex<Vec<LastEvent<E>>>,
    /// Set once a dropped queue has work without an event, or once an event was folded: nothing can
    /// tell any more when that work ends. Read last, because work moves from the other lists to
    /// here.
    unknown_outcome: Mutex<Option<UnknownOutcome>>,
}

/// The last event of a dropped queue.
#[derive(Clone, Debug)]
struct LastEvent<E> {
    /// Unique in the process.
    number: u64,
    event: E,
    /// The program has received the event's failure.
    is_reported: bool,
}

/// The error that stands for work of dropped queues that no event speaks for.
#[derive(Clone, Copy, Debug)]
struct UnknownOutcome {
    /// Changes with each further queue, so that a report of the old error does not cover the new.
    number: u64,
    error: Error,
    /// The program has received the error.
    is_reported: bool,
}

/// Everything that a wait must wait for.
struct OpenWork<E> {
    unknown_outcome: Option<UnknownOutcome>,
    last_events: Vec<LastEvent<E>>,
    /// For each live queue an event after all of its work, or `None` for an idle queue. A queue
    /// whose work failed may answer with an error.
    queues: Vec<Result<Option<E>>>,
}

impl<Q, E: EventOps + Clone> QueueList<Q, E> {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            queues: Mutex::new(Vec::new()),
            last_events: Mutex::new(Vec::new()),
            unknown_outcome: Mutex::new(None),
        }
    }

    /// Adds a new queue. Its `Drop` calls [`remove`](Self::remove).
    pub fn insert(&self, queue: &Arc<Q>) {
        self.queues.lock().push(Arc::downgrade(queue));
    }

    /// Replaces a queue by its last event; its `Drop` calls this. `None` stands for an idle queue.
    /// The work is always in at least one of the two lists. An error means that the queue has work
    /// and gave no event: from then on every wait for the context fails with this error.
    pub fn remove(&self, queue: *const Q, last: Result<Option<E>>) {
        match last {
            Ok(Some(event)) => {
                self.last_events.lock().push(LastEvent { number: next_id(), event, is_reported: false })
            }
            Ok(None) => {}
            Err(error) => self.fold(error, false),
        }
        let removed_queues = take_out(&mut self.queues.lock(), |listed_queue| listed_queue.as_ptr() == queue);
        drop(removed_queues);
        self.prune();
    }

    /// Folds `error` into the permanent error of the context. The first unreported error stands for
    /// all unreported ones.
    fn fold(&self, error: Error, is_reported: bool) {
        let mut unknown_outcome = self.unknown_outcome.lock();
        if is_reported && unknown_outcome.is_some() {
            return;
        }
        let error =
            unknown_outcome.filter(|outcome| !outcome.is_reported).map_or(error, |outcome| outcome.error);
        *unknown_outcome = Some(UnknownOutcome { number: next_id(), error, is_reported });
    }

    /// Removes complete events and surplus failures. Calls the driver without the lock.
    fn prune(&self) {
        let mut last_events = self.last_events.lock().clone();
        let mut leave = take_out(&mut last_events, |last| last.event.is_complete());
        leave.append(&mut self.take_oldest_failures(last_events));
        let leaves = |last_event: &LastEvent<E>| leave.iter().any(|last| last.number == last_event.number);
        let removed_events = take_out(&mut self.last_events.lock(), leaves);
        drop(removed_events);
    }

    /// Folds the oldest failures of `last_events` above [`MAX_FAILURES`] and returns their events.
    /// A permanent failure of the device stays, because every wait reports it.
    fn take_oldest_failures(&self, mut last_events: Vec<LastEvent<E>>) -> Vec<LastEvent<E>> {
        if last_events.len() <= MAX_FAILURES {
            return Vec::new();
        }
        let failures: Vec<_> = last_events.iter().map(|last| last.event.status().err()).collect();
        let mut surplus = failures.iter().flatten().count().saturating_sub(MAX_FAILURES);
        let is_for_good = |index: &usize| {
            failures[*index].is_some_and(|error| last_events[*index].event.is_for_good(&error))
        };
        let last_for_good = (0..failures.len()).rev().find(is_for_good);
        let mut leave = Vec::with_capacity(surplus);
        for (index, error) in failures.iter().enumerate() {
            if let (Some(error), true) = (error, surplus > 0 && Some(index) != last_for_good) {
                self.fold(*error, last_events[index].is_reported);
                leave.push(last_events[index].number);
                surplus -= 1;
            }
        }
        last_events.retain(|last| leave.contains(&last.number));
        last_events
    }

    /// The live queues. Waits at most `limit` while a dropped queue moves to the other list.
    fn live_queues(&self, limit: Duration, start: Instant) -> Result<Vec<Arc<Q>>> {
        loop {
            // Dropping the last handle of a queue takes the lock, so that is done outside of it.
            let mut queues: Vec<_> = self.queues.lock().iter().map(Weak::upgrade).collect();
            if crate::process::is_closed() {
                // The drop of a queue is refused then, so its entry stays.
                queues.retain(Option::is_some);
            }
            match queues.into_iter().collect() {
                Some(queues) => return Ok(queues),
                None if start.elapsed() >= limit => return Err(Error::timeout(limit)),
                None => yield_thread(),
            }
        }
    }

    /// Events after all work submitted before. `last` returns an event after everything in a queue,
    /// or `None` for an idle queue. Blocks only while a dropped queue moves to the other list, at
    /// most `limit`.
    pub fn pending(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<Option<E>>) -> Result<Vec<E>> {
        self.pending_where(limit, last, |_reported| false)
    }

    /// [`pending`](Self::pending) without the failures that the program has received.
    pub fn pending_unreported(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
    ) -> Result<Vec<E>> {
        self.pending_where(limit, last, |is_reported| is_reported)
    }

    fn pending_where(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
        is_left_out: impl Fn(bool) -> bool,
    ) -> Result<Vec<E>> {
        let OpenWork { unknown_outcome, last_events, queues } = self.find(limit, last)?;
        if let Some(outcome) = unknown_outcome.filter(|outcome| !is_left_out(outcome.is_reported)) {
            return Err(outcome.error);
        }
        let last_events =
            last_events.into_iter().filter(|last| !is_left_out(last.is_reported)).map(|last| Ok(last.event));
        last_events.chain(queues.into_iter().filter_map(Result::transpose)).collect()
    }

    fn find(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<Option<E>>) -> Result<OpenWork<E>> {
        let queues = self.live_queues(limit, Instant::now())?;
        let last_events = self.last_events.lock().clone();
        let unknown_outcome = *self.unknown_outcome.lock();
        Ok(OpenWork { unknown_outcome, last_events, queues: queues.iter().map(last).collect() })
    }

    /// Blocks until all work is complete, at most `limit`. `last` returns an event after everything
    /// in a queue. Returns the first failure after all other work is complete, and returns it on
    /// every call: failed work may still touch memory.
    pub fn synchronize(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<E>) -> Result<()> {
        self.wait_for_all(limit, last, |_reported, failure| Err(failure)).0
    }

    /// [`synchronize`](Self::synchronize) for the program: reports a dropped queue's failure once.
    /// Concurrent calls may all report it. A failure of the device is permanent and every call
    /// reports it. A timeout reports no failure.
    pub fn report_failures(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<E>) -> Result<()> {
        let (outcome, failures, unknown_outcome) =
            self.wait_for_all(
                limit,
                last,
                |is_reported, failure| if is_reported { Ok(()) } else { Err(failure) },
            );
        if matches!(outcome, Err(Error { kind: ErrorKind::Timeout { .. }, .. })) {
            return outcome;
        }
        if !failures.is_empty() {
            let mut last_events = self.last_events.lock();
            last_events.iter_mut().for_each(|last| last.is_reported |= failures.contains(&last.number));
        }
        if let (Some(snapshot), Some(current)) = (unknown_outcome, &mut *self.unknown_outcome.lock()) {
            current.is_reported |= current.number == snapshot.number;
        }
        outcome
    }

    /// `judge(reported, error)` decides whether a dropped queue's failure counts. Returns the
    /// outcome, the numbers of the failed last events, and the unknown outcome that it read.
    fn wait_for_all(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<E>,
        judge: impl Fn(bool, Error) -> Result<()>,
    ) -> (Result<()>, Vec<u64>, Option<UnknownOutcome>) {
        let start = Instant::now();
        let OpenWork { unknown_outcome, last_events, queues } =
            match self.find(limit, |queue| last(queue).map(Some)) {
                Ok(open_work) => open_work,
                Err(error) => return (Err(error), Vec::new(), None),
            };
        let wait = |event: &E| {
            event.wait(limit.saturating_sub(start.elapsed())).map_err(|error| match error.kind {
                ErrorKind::Timeout { .. } => Error { kind: Error::timeout(limit).kind, ..error },
                _ => error,
            })
        };
        let mut failures = Vec::new();
        let mut outcome = unknown_outcome
            .map_or(Ok(()), |outcome_read| judge(outcome_read.is_reported, outcome_read.error));
        for last in &last_events {
            outcome = outcome.and(match wait(&last.event) {
                Err(error) if matches!(error.kind, ErrorKind::Timeout { .. }) => Err(error),
                Err(error) if last.event.is_for_good(&error) => Err(error),
                Err(error) => {
                    failures.push(last.number);
                    judge(last.is_reported, error)
                }
                Ok(()) => Ok(()),
            });
        }
        for event in queues {
            outcome = outcome.and(event.and_then(|event| event.as_ref().map_or(Ok(()), wait)));
        }
        self.prune();
        (outcome, failures, unknown_outcome)
    }
}
