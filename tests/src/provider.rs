//! How a backend takes part in the suite.

use core::fmt;

use usm_core::{AllocKind, Backend, Context, Event, Queue};
use usm_kernel::Programmable;

/// An operation that fails when it runs, on a queue that is given: its event, and what lets it fail
/// now at the latest. What follows may be submitted before.
pub type Failing<B> = dyn Fn(&Queue<B>) -> (Event<B>, Box<dyn FnOnce()>) + Sync;

/// What a case works with: contexts of one backend.
pub struct Fixture<'f, B: Backend> {
    /// The context under test.
    pub context: &'f Context<B>,
    /// A second context of the same backend.
    pub other: &'f Context<B>,
    /// Whether the two are separate for the runtime too. SYCL gives every caller the same default
    /// context of a device.
    pub separate: bool,
    /// Makes one operation fail; none where nothing of the runtime can fail without taking the rest
    /// of the process along.
    pub failing: Option<&'f Failing<B>>,
}

impl<B: Backend> fmt::Debug for Fixture<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("context", self.context).finish_non_exhaustive()
    }
}

impl<B: Backend> Fixture<'_, B> {
    /// The kinds of memory that the device knows.
    #[must_use]
    pub fn kinds(&self) -> Vec<AllocKind> {
        let capabilities = self.context.info().capabilities;
        AllocKind::ALL.into_iter().filter(|kind| !capabilities.of(*kind).is_empty()).collect()
    }
}

/// Makes fixtures of one backend.
pub trait Provider {
    /// The backend.
    type Backend: Programmable + 'static;

    /// What the environment variable `USM_REQUIRE` calls the runtime. One that is always here needs
    /// no name.
    const RUNTIME: &'static str = "";

    /// Calls `case` with a fresh fixture, or says why that cannot be.
    ///
    /// # Errors
    /// The reason for which the backend is not here; the caller prints it, and CI may require that
    /// there is none.
    fn with(case: impl FnOnce(Fixture<'_, Self::Backend>)) -> Result<(), String>;
}
