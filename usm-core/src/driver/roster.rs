//! The queues of a context, for waiting for all of its work: those that live, and the last events
//! of those that do not.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use std::time::Instant;

use crate::backend::EventOps;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Mutex, give_way, next_id, take_out};

#[cfg(all(test, loom))]
mod models;
#[cfg(test)]
mod tests;

/// So many failures of queues that are gone are kept with their events, one of which may yet say
/// that its work has ended: a program whose queues fail again and again shall not fill memory. What
/// the older ones say is kept as one.
const KEPT: usize = if cfg!(loom) { 0 } else { 64 };

/// Queues `Q` with events `E`.
#[derive(Debug)]
pub struct Roster<Q, E> {
    /// One that is being dropped stays until it has [left](Self::leave).
    queues: Mutex<Vec<Weak<Q>>>,
    /// Work of queues that are gone goes on.
    orphans: Mutex<Vec<Orphan<E>>>,
    /// Nothing says any more when the work of a queue ends that went without an event, or whose
    /// event was given up. Read after the others: what leaves them comes here before.
    lost: Mutex<Option<Lost>>,
}

/// The last event of a queue that is gone.
#[derive(Clone, Debug)]
struct Orphan<E> {
    /// Its own.
    number: u64,
    event: E,
    /// Whether the program was told that it failed.
    told: bool,
}

/// Why there is no event after the work of a queue that is gone.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// Another one with each queue that the program is to be told of.
    number: u64,
    error: Error,
    /// Whether the program was told.
    told: bool,
}

/// What there is to wait for.
struct Found<E> {
    lost: Option<Lost>,
    orphans: Vec<Orphan<E>>,
    /// After everything in a queue that lives; none where it is idle. One whose work failed may
    /// refuse to say.
    queues: Vec<Result<Option<E>>>,
}

impl<Q, E: EventOps + Clone> Roster<Q, E> {
    /// Without queues.
    #[must_use]
    pub const fn new() -> Self {
        Self { queues: Mutex::new(Vec::new()), orphans: Mutex::new(Vec::new()), lost: Mutex::new(None) }
    }

    /// A new queue: to be [taken out](Self::leave) when it is dropped.
    pub fn remember(&self, queue: &Arc<Q>) {
        self.queues.lock().push(Arc::downgrade(queue));
    }

    /// For the `Drop` of a queue: keeps its last event instead, none where the queue is idle. At no
    /// moment is the queue's work in neither list. Where there is work and no event can be had, the
    /// context's work is never known to be done from now on, and that error says why.
    pub fn leave(&self, queue: *const Q, last: Result<Option<E>>) {
        match last {
            Ok(Some(event)) => self.orphans.lock().push(Orphan { number: next_id(), event, told: false }),
            Ok(None) => {}
            Err(error) => self.lose(error, false),
        }
        let gone = take_out(&mut self.queues.lock(), |known| known.as_ptr() == queue);
        drop(gone);
        self.forget_finished();
    }

    /// From now on some work of the context is never known to have ended. The first error that was
    /// not told stands for all that were not.
    fn lose(&self, error: Error, told: bool) {
        let mut lost = self.lost.lock();
        if told && lost.is_some() {
            return;
        }
        let error = lost.filter(|known| !known.told).map_or(error, |known| known.error);
        *lost = Some(Lost { number: next_id(), error, told });
    }

    /// The driver is called without the lock held.
    fn forget_finished(&self) {
        let mut known = self.orphans.lock().clone();
        let mut leave = take_out(&mut known, |orphan| orphan.event.is_complete());
        leave.append(&mut self.give_up(known));
        let leaves = |known: &Orphan<E>| leave.iter().any(|orphan| orphan.number == known.number);
        let gone = take_out(&mut self.orphans.lock(), leaves);
        drop(gone);
    }

    /// What is to leave of `unfinished`, because more than [`KEPT`] have failed: the oldest, which
    /// were [lost](Self::lose) first. That of a device, which is told every time, stays.
    fn give_up(&self, mut unfinished: Vec<Orphan<E>>) -> Vec<Orphan<E>> {
        if unfinished.len() <= KEPT {
            return Vec::new();
        }
        let failures: Vec<_> = unfinished.iter().map(|orphan| orphan.event.status().err()).collect();
        let mut surplus = failures.iter().flatten().count().saturating_sub(KEPT);
        let is_for_good = |index: &usize| {
            failures[*index].is_some_and(|error| unfinished[*index].event.is_for_good(&error))
        };
        let last_for_good = (0..failures.len()).rev().find(is_for_good);
        let mut leave = Vec::with_capacity(surplus);
        for (index, error) in failures.iter().enumerate() {
            if let (Some(error), true) = (error, surplus > 0 && Some(index) != last_for_good) {
                self.lose(*error, unfinished[index].told);
                leave.push(unfinished[index].number);
                surplus -= 1;
            }
        }
        unfinished.retain(|orphan| leave.contains(&orphan.number));
        unfinished
    }

    /// The queues that live, once none is on its way from the one list to the other.
    fn settled(&self, limit: Duration, start: Instant) -> Result<Vec<Arc<Q>>> {
        loop {
            // Dropping the last handle of a queue takes the lock, so that is done outside of it.
            let queues: Vec<_> = self.queues.lock().iter().map(Weak::upgrade).collect();
            match queues.into_iter().collect() {
                Some(queues) => return Ok(queues),
                None if start.elapsed() >= limit => return Err(Error::timeout(limit)),
                None => give_way(),
            }
        }
    }

    /// Events after all work that was submitted before; `last` gives one after everything in a
    /// queue that is not idle. Blocks only while a queue is on its way from the one list to the
    /// other, at most `limit`.
    pub fn pending(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<Option<E>>) -> Result<Vec<E>> {
        self.pending_but(limit, last, |_told| false)
    }

    /// [`pending`](Self::pending) without what the program knows to have failed.
    pub fn pending_untold(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
    ) -> Result<Vec<E>> {
        self.pending_but(limit, last, |told| told)
    }

    fn pending_but(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<Option<E>>,
        is_left_out: impl Fn(bool) -> bool,
    ) -> Result<Vec<E>> {
        let Found { lost, orphans, queues } = self.find(limit, last)?;
        if let Some(lost) = lost.filter(|lost| !is_left_out(lost.told)) {
            return Err(lost.error);
        }
        let orphans =
            orphans.into_iter().filter(|orphan| !is_left_out(orphan.told)).map(|orphan| Ok(orphan.event));
        orphans.chain(queues.into_iter().filter_map(Result::transpose)).collect()
    }

    fn find(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<Option<E>>) -> Result<Found<E>> {
        let queues = self.settled(limit, Instant::now())?;
        let orphans = self.orphans.lock().clone();
        let lost = *self.lost.lock();
        Ok(Found { lost, orphans, queues: queues.iter().map(last).collect() })
    }

    /// Blocks until all work has finished, at most `limit`; `last` gives an event after everything
    /// in a queue. The first failure is the answer, once everything else has finished too: every
    /// time, because nothing says that work which failed has ended.
    pub fn synchronize(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<E>) -> Result<()> {
        self.wait_for_all(limit, last, |_told, failure| Err(failure)).0
    }

    /// [`synchronize`](Self::synchronize) for the program. The failure of a queue that is gone is
    /// told by the calls that began before the first of them told it; that of a device, which stays
    /// as it is, every time. A wait that ran out tells nothing else.
    pub fn settle(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<E>) -> Result<()> {
        let (outcome, failed, lost) =
            self.wait_for_all(limit, last, |told, failure| if told { Ok(()) } else { Err(failure) });
        if matches!(outcome, Err(Error { kind: ErrorKind::Timeout { .. }, .. })) {
            return outcome;
        }
        if !failed.is_empty() {
            let mut orphans = self.orphans.lock();
            orphans.iter_mut().for_each(|orphan| orphan.told |= failed.contains(&orphan.number));
        }
        if let (Some(seen), Some(now)) = (lost, &mut *self.lost.lock()) {
            now.told |= now.number == seen.number;
        }
        outcome
    }

    /// `judge` says what the failure of a queue that is gone is taken for, and gets whether it was
    /// told. Beside the outcome, what failed of such queues.
    fn wait_for_all(
        &self,
        limit: Duration,
        last: impl Fn(&Arc<Q>) -> Result<E>,
        judge: impl Fn(bool, Error) -> Result<()>,
    ) -> (Result<()>, Vec<u64>, Option<Lost>) {
        let start = Instant::now();
        let Found { lost, orphans, queues } = match self.find(limit, |queue| last(queue).map(Some)) {
            Ok(found) => found,
            Err(error) => return (Err(error), Vec::new(), None),
        };
        let wait = |event: &E| {
            event.wait(limit.saturating_sub(start.elapsed())).map_err(|error| match error.kind {
                ErrorKind::Timeout { .. } => Error { kind: Error::timeout(limit).kind, ..error },
                _ => error,
            })
        };
        let mut failed = Vec::new();
        let mut outcome = lost.map_or(Ok(()), |lost| judge(lost.told, lost.error));
        for orphan in &orphans {
            outcome = outcome.and(match wait(&orphan.event) {
                Err(error) if matches!(error.kind, ErrorKind::Timeout { .. }) => Err(error),
                Err(error) if orphan.event.is_for_good(&error) => Err(error),
                Err(error) => {
                    failed.push(orphan.number);
                    judge(orphan.told, error)
                }
                Ok(()) => Ok(()),
            });
        }
        for event in queues {
            outcome = outcome.and(event.and_then(|event| event.as_ref().map_or(Ok(()), wait)));
        }
        self.forget_finished();
        (outcome, failed, lost)
    }
}
