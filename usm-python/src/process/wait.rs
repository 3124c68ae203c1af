//! Waits for devices between which the interpreter's signal handlers run, so that Ctrl-C ends them.

use std::cell::Cell;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use usm_core::backend::Dyn;
use usm_core::{Access, BackendKind, Error, ErrorKind, Event, Result};

use crate::storage::Storage;
use crate::text::error::OrRaise;

/// Time between two runs of the signal handlers.
pub(crate) const UNTIL_SIGNALS: Duration = Duration::from_millis(100);

/// Waits for the end of work, without a limit of its own.
pub(crate) fn for_event(py: Python<'_>, event: &Event<Dyn>) -> PyResult<()> {
    in_slices(py, |limit| event.wait_for(limit))
}

/// Waits until no work on the memory conflicts with an access of the host or of a queue, without a
/// limit of its own. Host memory's work is over when its calls return.
pub(crate) fn for_uses(py: Python<'_>, storage: &Storage, access: Access) -> PyResult<()> {
    if storage.context().info().backend == BackendKind::Host {
        return Ok(());
    }
    if let Some((address, at)) = RAISED.take()
        && address == storage.address()
        && at.elapsed() < Duration::from_secs(1)
    {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    in_slices(py, |limit| storage.wait_for_uses_within(access, limit)).inspect_err(|error| {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            RAISED.set(Some((storage.address(), Instant::now())));
        }
    })
}

thread_local! {
    /// The memory of a wait that Ctrl-C ended, and the time. NumPy drops an exception of the buffer
    /// protocol and asks for the memory by the next protocol at once, which raises it again.
    static RAISED: Cell<Option<(usize, Instant)>> = const { Cell::new(None) };
}

fn in_slices(py: Python<'_>, wait: impl Fn(Duration) -> Result<()> + Sync) -> PyResult<()> {
    loop {
        match py.detach(|| wait(UNTIL_SIGNALS)) {
            Err(Error { kind: ErrorKind::Timeout { .. }, .. }) => py.check_signals()?,
            outcome => return outcome.or_raise(),
        }
    }
}
