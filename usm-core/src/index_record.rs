//! The record of a kernel's checked code: the first index that was outside its array.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::allocation::Allocation;
use crate::backend::{Backend, Block, ContextOps, QueueOrder};
use crate::context::Context;
use crate::deadline::Deadline;
use crate::deferred::Release;
use crate::error::{Error, ErrorKind, IndexPlace, Result};
use crate::event::Event;
use crate::kind::Device;
use crate::pending::Pending;
use crate::queue::{Queue, Usage};
use crate::sync::{AtomicUsize, Mutex, Ordering};
use crate::typed::UsmVec;

/// Device memory of five words. The first is the number of a place, from 1, or 0 as long as all
/// indices are inside. The index and the length of the array follow, 64 bits each, the low word
/// first. The item that atomically changes the first word from 0 writes the others.
pub struct IndexRecord<B: Backend> {
    words: UsmVec<u32, Device, B>,
    places: &'static [IndexPlace],
}

/// Words of a record.
const WORDS: usize = 5;

impl<B: Backend> fmt::Debug for IndexRecord<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IndexRecord").field("words", &self.words).finish_non_exhaustive()
    }
}

impl<B: Backend> IndexRecord<B> {
    /// A record for code that numbers `places` from 1.
    ///
    /// # Errors
    /// Those of an allocation.
    pub fn new(queue: &Queue<B>, places: &'static [IndexPlace]) -> Result<Self> {
        let words = UsmVec::zeroed(queue, WORDS)?;
        Ok(Self { words, places })
    }

    /// Its address, for the code.
    #[must_use]
    pub fn address(&self) -> usize {
        self.words.as_ptr() as usize
    }

    /// The use that the code makes of it.
    #[must_use]
    pub fn usage(&self) -> Usage<'_, B> {
        Usage::write(self.words.allocation())
    }

    /// Makes an index outside the failure of `event`, whose code wrote the record. The event
    /// reports it every time. It is also reported once, by whichever comes first: the next wait for
    /// an object of these usages, [`synchronize`](Context::synchronize), or the wait for an
    /// in-order queue. Work that is ordered after the event sees only the operation's end.
    pub fn watch(mut self, queue: &Queue<B>, usages: &[Usage<'_, B>], event: Event<B>) -> Event<B> {
        let context = queue.context();
        let outcome = Arc::new(Outcome {
            places: self.places,
            queue: queue.id(),
            state: Mutex::new(State { found: None, reported: false }),
        });
        context.shared().outcomes().push(&outcome);
        for usage in usages {
            usage.add_checked_launch(&outcome);
        }
        // SAFETY: the allocation stays the array's own, and is dropped with it below.
        unsafe { self.words.allocation_mut() }.read_outcome_on_drop(Arc::clone(&outcome));
        event.with_watched(Watched { context: context.clone(), outcome })
    }
}

/// The outcome of a checked launch, for all waits for it. The record is read once, when the launch
/// is known to be complete and before its memory is freed.
pub(crate) struct Outcome {
    places: &'static [IndexPlace],
    /// Id of the in-order queue that ran it, 0 for an out-of-order queue.
    queue: u64,
    state: Mutex<State>,
}

#[derive(Clone, Copy)]
struct State {
    found: Option<Result<()>>,
    /// A wait or an event has reported it.
    reported: bool,
}

impl Outcome {
    /// Whether it is not known yet, or a failure that was not reported.
    pub(crate) fn is_unreported(&self) -> bool {
        let state = *self.state.lock();
        !state.reported && state.found != Some(Ok(()))
    }

    /// The known outcome, which then counts as reported.
    fn take_report(&self) -> Option<Result<()>> {
        let mut state = self.state.lock();
        // A host view keeps copies away for a time only.
        let is_final = !matches!(state.found, Some(Err(error)) if is_temporary(&error));
        state.reported |= state.found.is_some() && is_final;
        state.found
    }

    /// Reads the record and frees its memory; keeps it while a host view forbids copies.
    ///
    /// # Safety
    /// `block` is a block of `context` with this serial number, which nothing uses.
    pub(crate) unsafe fn read<B: Backend>(self: Arc<Self>, context: &B::Context, block: Block, serial: u64) {
        let context = Context::<B>::from_raw(context.clone());
        let words = Allocation::owned(context.clone(), block, serial);
        // SAFETY: the code wrote whole words into memory that began as zeros.
        let words = match unsafe { UsmVec::<u32, Device, B>::from_allocation(words, WORDS) } {
            Ok(words) => words,
            Err((_, error)) => return self.state.lock().found = Some(Err(error)),
        };
        let mut again = Again { context: &context, block, serial, outcome: &self, words: Some(words) };
        let Some(words) = &again.words else { return };
        let found = self.copy_outcome(&context, words);
        let is_final = !matches!(found, Err(error) if is_temporary(&error));
        self.state.lock().found = Some(found);
        if is_final {
            drop(again.words.take());
        }
    }

    fn copy_outcome<B: Backend>(&self, context: &Context<B>, words: &UsmVec<u32, Device, B>) -> Result<()> {
        // A separate queue: in the launch's queue the copy would wait for later work.
        let queue = context.queue(QueueOrder::OutOfOrder)?;
        let mut found = [0; WORDS];
        queue.read_to_slice(&mut found, words)?;
        let [place, found @ ..] = found;
        let Some(place) = (place as usize).checked_sub(1) else { return Ok(()) };
        let wide = |low: u32, high: u32| u64::from(high) << 32 | u64::from(low);
        let (index, len) = (wide(found[0], found[1]), wide(found[2], found[3]));
        const UNKNOWN: &IndexPlace = &IndexPlace { kernel: "?", place: "?", array: "?" };
        let at = self.places.get(place).unwrap_or(UNKNOWN);
        Err(ErrorKind::IndexOutside { at, index, len }.into())
    }
}

/// If it is dropped with its words, the record is read again later: a host view forbade the copy,
/// or an observer panicked during the read.
struct Again<'r, B: Backend> {
    context: &'r Context<B>,
    block: Block,
    serial: u64,
    outcome: &'r Arc<Outcome>,
    words: Option<UsmVec<u32, Device, B>>,
}

impl<B: Backend> Drop for Again<'_, B> {
    fn drop(&mut self) {
        let Some(words) = self.words.take() else { return };
        if let Some(deferred) = self.context.raw().deferred() {
            words.into_allocation().release_ownership();
            let release = Release::Record(self.block, self.serial, Arc::clone(self.outcome));
            deferred.push(Pending::none(), release);
        }
    }
}

fn is_temporary(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::HostViewLive { .. })
}

/// An event's part of a checked launch.
pub(crate) struct Watched<B: Backend> {
    context: Context<B>,
    outcome: Arc<Outcome>,
}

impl<B: Backend> Clone for Watched<B> {
    fn clone(&self) -> Self {
        Self { context: self.context.clone(), outcome: Arc::clone(&self.outcome) }
    }
}

impl<B: Backend> Watched<B> {
    /// Call once the launch is complete.
    pub(crate) fn check(&self, limit: Duration) -> Result<()> {
        wait_for_report(&self.context, &self.outcome, &Deadline::after(limit))
    }
}

/// The outcome; waits for a thread that is reading the record.
fn wait_for_report<B: Backend>(context: &Context<B>, outcome: &Outcome, deadline: &Deadline) -> Result<()> {
    loop {
        if let Some(found) = outcome.take_report() {
            return found;
        }
        context.collect();
        if let Some(found) = outcome.take_report() {
            return found;
        }
        if deadline.remaining().is_zero() {
            return Err(Error::timeout(deadline.limit()));
        }
        crate::sync::spin();
    }
}

/// The first failure of launches that a wait found complete; all of them count as reported.
pub(crate) fn report<B: Backend>(
    context: &Context<B>,
    unreported: &[Arc<Outcome>],
    limit: Duration,
) -> Result<()> {
    let deadline = Deadline::after(limit);
    let mut first = Ok(());
    for outcome in unreported.iter().filter(|outcome| outcome.is_unreported()) {
        first = first.and(wait_for_report(context, outcome, &deadline));
    }
    first
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

    fn push(&self, outcome: &Arc<Outcome>) {
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
