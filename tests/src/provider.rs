//! Providers: the connection of a backend to the suite.

use core::fmt;

use usm_core::{AllocKind, Backend, Context, Event, Queue};
use usm_kernel::Programmable;

/// An operation that fails when it runs, on a given queue: its event, and a function that makes it
/// fail now at the latest. Later work may be submitted before.
pub type Failing<B> = dyn Fn(&Queue<B>) -> (Event<B>, Box<dyn FnOnce()>) + Sync;

/// The contexts of one backend for a case.
pub struct Fixture<'f, B: Backend> {
    /// The context under test.
    pub context: &'f Context<B>,
    /// A second context of the same backend.
    pub other: &'f Context<B>,
    /// Whether the two are separate for the runtime too. SYCL returns the same default context of a
    /// device to every caller.
    pub separate: bool,
    /// Makes one operation fail. `None` if every failure of the runtime affects the rest of the
    /// process.
    pub failing: Option<&'f Failing<B>>,
}

impl<B: Backend> fmt::Debug for Fixture<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fixture").field("context", self.context).finish_non_exhaustive()
    }
}

impl<B: Backend> Fixture<'_, B> {
    /// The kinds of memory that the device supports.
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

    /// The runtime's name in the environment variable `USM_REQUIRE`. A runtime that is always
    /// present needs none.
    const RUNTIME: &'static str = "";

    /// Calls `case` with a fresh fixture, or returns the reason why it cannot.
    ///
    /// # Errors
    /// The reason why the backend is absent. The caller prints it; CI may require that there is
    /// none.
    fn with(case: impl FnOnce(Fixture<'_, Self::Backend>)) -> Result<(), String>;
}
