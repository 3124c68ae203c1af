//! The queues of a context, for waiting for all of its work: those that live, and the last events of those that do not.

use alloc::sync::{Arc, Weak};
use alloc::vec::Vec;
use core::time::Duration;
use std::time::Instant;

use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;

/// What a roster needs of a backend's event.
pub(super) trait Completion: Clone {
    fn is_complete(&self) -> bool;
    fn wait(&self, limit: Duration) -> Result<()>;
}

/// Queues `Q` with events `E`.
#[derive(Debug)]
pub(super) struct Roster<Q, E> {
    queues: Mutex<Vec<Weak<Q>>>,
    /// Work of queues that are gone goes on.
    orphans: Mutex<Vec<E>>,
}

impl<Q, E: Completion> Roster<Q, E> {
    pub(super) const fn new() -> Self {
        Self { queues: Mutex::new(Vec::new()), orphans: Mutex::new(Vec::new()) }
    }

    pub(super) fn remember(&self, queue: &Arc<Q>) {
        let mut queues = self.queues.lock();
        queues.retain(|queue| queue.strong_count() > 0);
        queues.push(Arc::downgrade(queue));
    }

    /// Keeps the last event of a queue that is being dropped.
    pub(super) fn inherit(&self, event: E) {
        let old = core::mem::take(&mut *self.orphans.lock());
        let unfinished = old.into_iter().filter(|event| !event.is_complete());
        let kept: Vec<_> = unfinished.chain([event]).filter(|event| !event.is_complete()).collect();
        self.orphans.lock().extend(kept);
    }

    /// Blocks until all work has finished, at most `limit`; `last` gives an event after everything in a queue.
    pub(super) fn synchronize(&self, limit: Duration, last: impl Fn(&Arc<Q>) -> Result<E>) -> Result<()> {
        let start = Instant::now();
        let queues: Vec<_> = self.queues.lock().iter().filter_map(Weak::upgrade).collect();
        let mut events = self.orphans.lock().clone();
        for queue in &queues {
            events.push(last(queue)?);
        }
        for event in &events {
            event.wait(limit.saturating_sub(start.elapsed())).map_err(|error| match error.kind {
                ErrorKind::Timeout { .. } => Error { kind: Error::timeout(limit).kind, ..error },
                _ => error,
            })?;
        }
        self.orphans.lock().retain(|event| !event.is_complete());
        Ok(())
    }
}
