//! How a backend takes part in the suite.

use usm_core::{Backend, Context};
use usm_kernel::Programmable;

/// What a case works with: contexts of one backend.
#[derive(Debug)]
pub struct Fixture<'f, B: Backend> {
    /// The context under test.
    pub context: &'f Context<B>,
    /// A second context of the same backend.
    pub other: &'f Context<B>,
    /// Whether the two are separate for the runtime too. SYCL gives every caller the same default context of a device.
    pub separate: bool,
}

/// Makes fixtures of one backend.
pub trait Provider {
    /// The backend.
    type Backend: Programmable + 'static;

    /// Calls `case` with a fresh fixture, or says why that cannot be.
    ///
    /// # Errors
    /// The reason for which the backend is not here; the caller prints it, and CI may require that there is none.
    fn with(case: impl FnOnce(Fixture<'_, Self::Backend>)) -> Result<(), String>;
}
