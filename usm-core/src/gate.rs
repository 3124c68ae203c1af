//! Keeps host views and launches apart on memory that host and device must not touch at the same time.

use core::time::Duration;

use crate::backend::Backend;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;

#[derive(Debug)]
struct State {
    /// Live views. A forgotten view stays counted: launches are then refused for ever, which is sound.
    views: usize,
    /// Submissions between their check and their return.
    submitting: usize,
}

/// One gate a context; used only where a kind lacks concurrent access.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
}

impl Gate {
    pub(crate) const fn new() -> Self {
        Self { state: Mutex::new(State { views: 0, submitting: 0 }) }
    }

    /// Lets a submission pass, or says how many views forbid it.
    pub(crate) fn submit(&self) -> Result<SubmitGuard<'_>> {
        let mut state = self.state.lock();
        if state.views > 0 {
            return Err(ErrorKind::HostViewLive { views: state.views }.into());
        }
        state.submitting += 1;
        Ok(SubmitGuard { gate: self })
    }

    /// Closes the gate for new submissions, then waits for all work of the context.
    pub(crate) fn view<B: Backend>(&self, context: &B::Context, limit: Duration) -> Result<ViewGuard<'_>> {
        self.state.lock().views += 1;
        let guard = ViewGuard { gate: Some(self) };
        // A submission that passed the gate before it closed is a few driver calls long; there is no clock without
        // `std`, so its wait is bounded by a count.
        let mut spins = 0_u32;
        while self.state.lock().submitting > 0 {
            spins += 1;
            if spins == u32::MAX {
                return Err(Error::timeout(limit));
            }
            crate::sync::spin();
        }
        B::synchronize(context, limit)?;
        Ok(guard)
    }
}

#[derive(Debug)]
pub(crate) struct SubmitGuard<'g> {
    gate: &'g Gate,
}

impl Drop for SubmitGuard<'_> {
    fn drop(&mut self) {
        self.gate.state.lock().submitting -= 1;
    }
}

/// Held by a host view; empty where the memory is concurrent.
#[derive(Debug)]
pub(crate) struct ViewGuard<'g> {
    gate: Option<&'g Gate>,
}

impl ViewGuard<'_> {
    pub(crate) const NONE: Self = Self { gate: None };
}

impl Drop for ViewGuard<'_> {
    fn drop(&mut self) {
        if let Some(gate) = self.gate {
            gate.state.lock().views -= 1;
        }
    }
}
