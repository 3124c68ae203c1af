//! Waits for the outcome of an operation with a record.

use alloc::sync::Arc;
use core::time::Duration;

use crate::backend::Backend;
use crate::context::Context;
use crate::deadline::Deadline;
use crate::error::{Error, Result};
use crate::outcome::Outcome;
use crate::sync::spin;

/// An event's part of an operation with a record.
pub(crate) struct Watch<B: Backend> {
    pub(crate) context: Context<B>,
    pub(crate) outcome: Arc<Outcome>,
}

impl<B: Backend> Clone for Watch<B> {
    fn clone(&self) -> Self {
        Self { context: self.context.clone(), outcome: Arc::clone(&self.outcome) }
    }
}

impl<B: Backend> Watch<B> {
    /// Call once the operation is complete.
    pub(crate) fn check(&self, limit: Duration) -> Result<()> {
        wait_for_report(&self.context, &self.outcome, &Deadline::after(limit))
    }
}

/// The outcome; waits for a thread that is reading the record.
fn wait_for_report<B: Backend>(context: &Context<B>, outcome: &Outcome, deadline: &Deadline) -> Result<()> {
    loop {
        if let Some(result) = outcome.take_report() {
            return result;
        }
        context.collect();
        if let Some(result) = outcome.take_report() {
            return result;
        }
        if deadline.remaining().is_zero() {
            return Err(Error::timeout(deadline.limit()));
        }
        spin();
    }
}

/// The first failure of operations that a wait found complete; all of them count as reported.
pub(crate) fn report<B: Backend>(
    context: &Context<B>,
    outcomes: &[Arc<Outcome>],
    limit: Duration,
) -> Result<()> {
    let deadline = Deadline::after(limit);
    let mut first = Ok(());
    for outcome in outcomes.iter().filter(|outcome| outcome.is_unreported()) {
        first = first.and(wait_for_report(context, outcome, &deadline));
    }
    first
}
