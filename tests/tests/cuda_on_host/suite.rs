//! The conformance suite with work as early and as late as a driver may run it, and without
//! concurrent access. All of it runs behind the erased backend, whose calls are those of `Cuda`.

use usm_core::backend::Dyn;
use usm_cuda::Cuda;
use usm_tests::{Failing, Fixture, Provider, conformance_suite};

use crate::driver::{Driver, RUNTIME};
use crate::failures::without_a_record;

fn on(settings: &str, case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
    let driver = Driver::start(settings, Cuda::open)?;
    let (context, other) = (driver.erased_context(), driver.erased_context());
    let failing = Some(&without_a_record as &Failing<Dyn>);
    case(Fixture { context: &context, other: &other, separate: false, failing });
    Ok(())
}

/// Work starts at once, concurrently.
struct Prompt;

impl Provider for Prompt {
    type Backend = Dyn;
    const RUNTIME: &'static str = RUNTIME;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        on("", case)
    }
}

/// Work starts when its state is queried, the newest ready operation first.
struct Late;

impl Provider for Late {
    type Backend = Dyn;
    const RUNTIME: &'static str = RUNTIME;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        on("late", case)
    }
}

/// During work, managed memory is closed to the host: an access ends the process.
struct Exclusive;

impl Provider for Exclusive {
    type Backend = Dyn;
    const RUNTIME: &'static str = RUNTIME;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        on("late,exclusive", case)
    }
}

conformance_suite!(cuda_on_host, Prompt);
conformance_suite!(cuda_on_host_late, Late);
conformance_suite!(cuda_on_host_exclusive, Exclusive);
