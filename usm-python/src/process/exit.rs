//! The end of the interpreter: waits for work while the interpreter's threads can still run, before
//! their resources are freed. The end of the process waits for later work, from `__del__` for
//! instance.

use pyo3::prelude::*;

/// Stops the thread for good when it is dropped.
struct Stop;

impl Drop for Stop {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls a function of the interpreter by a pointer whose type is `extern "C-unwind"`. Functions
/// that pyo3 declares come here by `calls.rs`.
///
/// Before Python 3.14 the end of the interpreter makes the C library unwind a daemon thread that
/// runs Python code. To go through the frames of this crate would abort the process, so the thread
/// stops here, as later versions of Python have it. A function that the optimiser sees declared
/// as one that never unwinds would have no guard: the two declarations become one.
#[inline]
pub(crate) fn guard<R>(enter: impl FnOnce() -> R) -> R {
    let stop = Stop;
    let result = enter();
    std::mem::forget(stop);
    result
}

/// Waits for the work of all contexts without the interpreter, at most each one's wait limit.
/// Ctrl-C ends the wait.
#[pyfunction]
fn _finish_work(py: Python<'_>) -> PyResult<()> {
    let mut signal = None;
    py.detach(|| {
        usm_core::ends::finish_work(|| {
            let signal_check = Python::attach(|py| py.check_signals());
            let goes_on = signal_check.is_ok();
            signal = signal_check.err();
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
    crate::process::fork::prepare::<{ crate::process::fork::TURNS }>();
    let finish = wrap_pyfunction!(_finish_work, module)?;
    module.py().import("atexit")?.call_method1("register", (finish,)).map(drop)
}
