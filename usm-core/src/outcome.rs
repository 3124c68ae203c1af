//! The outcomes of operations whose code reports its own failures.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::error::Result;
use crate::sync::{AtomicUsize, Mutex, Ordering};

/// Judges the words that the code of an operation wrote.
pub(crate) type Judge = Box<dyn Fn(&[u32]) -> Result<()> + Send + Sync>;

/// The outcome of an operation, for all waits for it. Its record is read once, when the operation
/// is known to be complete and before the record's memory is freed.
pub(crate) struct Outcome {
    /// Words of the record.
    pub(crate) len: usize,
    pub(crate) judge: Judge,
    /// Id of the in-order queue that ran it, 0 for an out-of-order queue.
    queue: u64,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    result: Option<Result<()>>,
    /// Whether the result stays: a host view keeps copies away for a time only.
    is_final: bool,
    /// A wait or an event has reported it.
    is_reported: bool,
}

impl Outcome {
    pub(crate) fn new(len: usize, judge: Judge, queue: u64) -> Self {
        Self {
            len,
            judge,
            queue,
            state: Mutex::new(State { result: None, is_final: false, is_reported: false }),
        }
    }

    /// Whether it is not known yet, or a failure that was not reported.
    pub(crate) fn is_unreported(&self) -> bool {
        let state = *self.state.lock();
        !state.is_reported && state.result != Some(Ok(()))
    }

    /// The known outcome, which then counts as reported.
    pub(crate) fn take_report(&self) -> Option<Result<()>> {
        let mut state = self.state.lock();
        state.is_reported |= state.is_final;
        state.result
    }

    /// States what reading the record gave.
    pub(crate) fn conclude(&self, result: Result<()>, is_final: bool) {
        let mut state = self.state.lock();
        (state.result, state.is_final) = (Some(result), is_final);
    }
}

/// The outcomes of a context that were not reported.
pub(crate) struct Outcomes {
    list: Mutex<Vec<Arc<Outcome>>>,
    /// Length of the list. The usual question, whether there is any, then costs one load.
    len: AtomicUsize,
}

impl fmt::Debug for Outcomes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outcomes").field("unreported", &self.len.load(Ordering::Relaxed)).finish()
    }
}

impl Outcomes {
    pub(crate) const fn new() -> Self {
        Self { list: Mutex::new(Vec::new()), len: AtomicUsize::new(0) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    pub(crate) fn push(&self, outcome: &Arc<Outcome>) {
        self.update(|list| list.push(Arc::clone(outcome)));
    }

    fn update(&self, change: impl FnOnce(&mut Vec<Arc<Outcome>>)) {
        let mut list = self.list.lock();
        list.retain(|outcome| outcome.is_unreported());
        change(&mut list);
        self.len.store(list.len(), Ordering::Release);
    }

    /// The first failure that is known of such queues; all of them count as reported.
    pub(crate) fn report(&self, of: impl Fn(u64) -> bool) -> Result<()> {
        let mut first = Ok(());
        if !self.is_empty() {
            self.update(|list| {
                for outcome in list.iter().filter(|outcome| of(outcome.queue)) {
                    first = first.and(outcome.take_report().unwrap_or(Ok(())));
                }
            });
        }
        first
    }
}
