//! The end of the interpreter: work is waited for while its threads can still run, before what they
//! use is taken apart. What is submitted later, by `__del__` for instance, the end of the process
//! waits for.

use pyo3::prelude::*;

/// Waits for the work of all contexts, each at most its wait limit, without the interpreter. Ctrl-C
/// ends the wait.
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

/// Has the interpreter call [`_finish_work`] at its end, after what is registered later, and forks
/// wait until no block is in its turn.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // In this order: who has a turn takes locks of the core.
    usm_core::ends::watch_forks();
    crate::fork::prepare::<{ crate::fork::TURNS }>();
    let finish = wrap_pyfunction!(_finish_work, module)?;
    module.py().import("atexit")?.call_method1("register", (finish,)).map(drop)
}
