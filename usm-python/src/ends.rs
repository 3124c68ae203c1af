//! The end of the interpreter: waits for work while the interpreter's threads can still run, before
//! their resources are freed. The end of the process waits for later work, from `__del__` for
//! instance.

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

/// `PyObject_Call`, which may unwind.
type Call = unsafe extern "C-unwind" fn(
    callable: *mut ffi::PyObject,
    args: *mut ffi::PyObject,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject;

/// `PyObject_Call` as a function that may unwind. pyo3 declares it as one that never does, and
/// link-time optimisation would take over that promise for every call whose target it can see.
fn object_call() -> Call {
    let declared: unsafe extern "C" fn(_, _, _) -> _ = ffi::PyObject_Call;
    // SAFETY: the same function and arguments. The two conventions differ in unwinding alone.
    std::hint::black_box(unsafe { std::mem::transmute::<_, Call>(declared) })
}

/// Stops the thread for good when it is dropped.
struct Stop;

impl Drop for Stop {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// Calls a function of the interpreter that may run Python code for any time, such as a method of
/// another library's object. `enter` calls it by its type with `extern "C-unwind"`.
///
/// Before Python 3.14 the end of the interpreter makes the C library unwind a daemon thread that
/// runs Python code. To go through the frames of this crate would abort the process, so the thread
/// stops here, as later versions of Python have it.
#[inline]
pub(crate) fn guard<R>(enter: impl FnOnce() -> R) -> R {
    let stop = Stop;
    let result = enter();
    std::mem::forget(stop);
    result
}

/// Calls Python code that may run for any time; see [`guard`].
pub(crate) fn call<'py>(
    function: &Bound<'py, PyAny>,
    arguments: &Bound<'py, PyTuple>,
    named: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let named = named.map_or(std::ptr::null_mut(), |named| named.as_ptr());
    // SAFETY: live objects, and this thread is attached to the interpreter.
    let result = guard(|| unsafe { object_call()(function.as_ptr(), arguments.as_ptr(), named) });
    // SAFETY: a new reference, or null with an exception.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), result) }
}

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
