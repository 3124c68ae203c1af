//! Records in which the code of an operation reports a failure of its own.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::allocation::Allocation;
use crate::backend::{Backend, Block, ContextOps, QueueOrder};
use crate::context::Context;
use crate::deferred::{Release, Unread};
use crate::error::{ErrorKind, Result};
use crate::event::Event;
use crate::kind::Device;
use crate::outcome::{Judge, Outcome};
use crate::pending::Pending;
use crate::queue::{Queue, Usage};
use crate::typed::UsmVec;
use crate::watch::Watch;

type Words<B> = UsmVec<u32, Device, B>;

/// Words of device memory, zero at first, in which the code of an operation tells how it went. Who
/// wrote the code judges them, once, after the operation and before their memory is freed.
pub struct RunRecord<B: Backend> {
    words: Words<B>,
    judge: Judge,
}

impl<B: Backend> fmt::Debug for RunRecord<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRecord").field("words", &self.words).finish_non_exhaustive()
    }
}

impl<B: Backend> RunRecord<B> {
    /// A record of `len` words. `judge` gets what the code wrote, and returns
    /// [`ErrorKind::Reported`](crate::ErrorKind::Reported) for a failure.
    ///
    /// # Errors
    /// Those of an allocation.
    pub fn new(
        queue: &Queue<B>,
        len: usize,
        judge: impl Fn(&[u32]) -> Result<()> + Send + Sync + 'static,
    ) -> Result<Self> {
        Ok(Self { words: UsmVec::zeroed(queue, len)?, judge: Box::new(judge) })
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

    /// Makes a failure that the judge finds the failure of `event`, whose code wrote the record.
    /// The event reports it every time. It is also reported once, by whichever comes first: the
    /// next wait for an object of these usages, [`synchronize`](Context::synchronize), or the wait
    /// for an in-order queue. Work that is ordered after the event sees only the operation's end.
    pub fn watch(mut self, queue: &Queue<B>, usages: &[Usage<'_, B>], event: Event<B>) -> Event<B> {
        let context = queue.context();
        let outcome = Arc::new(Outcome::new(self.words.len(), self.judge, queue.id()));
        context.shared().outcomes().push(&outcome);
        for usage in usages {
            usage.add_outcome(&outcome);
        }
        // SAFETY: the allocation stays the array's own, and is dropped with it below.
        unsafe { self.words.allocation_mut() }.read_outcome_on_drop(Arc::clone(&outcome), read);
        event.with_watched(Watch { context: context.clone(), outcome })
    }
}

/// Reads a record and frees its memory; keeps it while a host view forbids copies.
///
/// # Safety
/// `block` is the block of `context` that this describes, which nothing uses.
unsafe fn read<B: Backend>(context: &B::Context, block: Block, unread: Box<Unread<B>>) {
    let context = Context::<B>::from_raw(context.clone());
    let words = Allocation::owned(context.clone(), block, unread.serial);
    let outcome = Arc::clone(&unread.outcome);
    // SAFETY: the code wrote whole words into memory that began as zeros.
    let words = match unsafe { Words::<B>::from_allocation(words, outcome.len) } {
        Ok(words) => words,
        Err((_, error)) => {
            outcome.conclude(Err(error), true);
            return;
        }
    };
    let mut retry = RetryOnDrop { context: &context, block, rest: Some((words, unread)) };
    let Some((words, _)) = &retry.rest else { return };
    let record_words = copy(&outcome, &context, words);
    // A host view keeps copies away for a time only.
    let is_final =
        !matches!(&record_words, Err(error) if matches!(error.kind, ErrorKind::HostViewLive { .. }));
    outcome.conclude(record_words.and_then(|record_words| (outcome.judge)(&record_words)), is_final);
    if is_final {
        drop(retry.rest.take());
    }
}

fn copy<B: Backend>(outcome: &Outcome, context: &Context<B>, words: &Words<B>) -> Result<Vec<u32>> {
    // A separate queue: in the queue of the operation the copy would wait for later work.
    let queue = context.queue(QueueOrder::OutOfOrder)?;
    let mut values = vec![0; outcome.len];
    queue.read_to_slice(&mut values, words)?;
    Ok(values)
}

/// If it is dropped with its words, the record is read again later: a host view forbade the copy,
/// or an observer panicked during the read.
struct RetryOnDrop<'r, B: Backend> {
    context: &'r Context<B>,
    block: Block,
    rest: Option<(Words<B>, Box<Unread<B>>)>,
}

impl<B: Backend> Drop for RetryOnDrop<'_, B> {
    fn drop(&mut self) {
        let Some((words, unread)) = self.rest.take() else { return };
        if let Some(deferred) = self.context.raw().deferred() {
            words.into_allocation().release_ownership();
            deferred.push(Pending::none(), Release::Record(self.block, unread));
        }
    }
}
