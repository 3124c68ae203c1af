//! Messages for Python's `logging`, under the logger `usm`.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Writes a message at level DEBUG to a logger, `usm.runtime` or `usm.kernel`. A program that has
/// not imported `logging` gets none, and pays for none. Handlers are the program's code and may
/// call this package: hold no lock. What a handler raises is shown as Python shows what it ignores.
pub(crate) fn debug(py: Python<'_>, logger: &str, text: impl FnOnce() -> String) {
    match write(py, logger, text) {
        Ok(()) => {}
        // A signal that came meanwhile is the program's: the next check finds it again.
        Err(error) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
            // SAFETY: only marks the signal as arrived.
            unsafe { ffi::PyErr_SetInterrupt() }
        }
        Err(error) => error.write_unraisable(py, None),
    }
}

fn write(py: Python<'_>, logger: &str, text: impl FnOnce() -> String) -> PyResult<()> {
    const DEBUG: u8 = 10;
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let Some(module) = modules.get_item("logging")? else { return Ok(()) };
    // A module that another thread imports just now may lack the function.
    let Ok(get_logger) = module.getattr("getLogger") else { return Ok(()) };
    let logger = get_logger.call1((logger,))?;
    if logger.call_method1("isEnabledFor", (DEBUG,))?.is_truthy()? {
        logger.call_method1("debug", ("%s", text()))?;
    }
    Ok(())
}
