//! The end of the interpreter: waits for work while the interpreter's threads can still run, before
//! their resources are freed. The end of the process waits for later work, from `__del__` for
//! instance.

use pyo3::prelude::*;

/// Waits for the work of all contexts without the interpreter, at most each one's wait limit.
/// Ctrl-C ends the wait.
#[pyfunction]
fn _finish_work(py: Python<'_>) -> PyResult<()> {
    let mut signal = None;
    py.detach(|| {
        usm_core::ends::finish_work(|| {
            let checked = Python::attach(|py| py.check_signals());
            let goes_on = checked.is_ok();
            signal = checked.err();
            goes_on
        });
    });
    signal.map_or(Ok(()), Err)
}

/// Makes the interpreter call [`_finish_work`] at its end, after later registrations. Makes forks
/// wait until no block is in its turn.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // In this order: a thread in its turn takes locks of the core.
    usm_core::ends::watch_forks();
    crate::fork::prepare::<{ crate::fork::TURNS }>();
    let finish = wrap_pyfunction!(_finish_work, module)?;
    module.py().import("atexit")?.call_method1("register", (finish,)).map(drop)
}
