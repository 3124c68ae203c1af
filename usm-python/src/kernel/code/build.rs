//! Builds of a kernel for the host and for devices, at first need.

use std::sync::Arc;
use std::time::Instant;

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use usm_core::Selector;
use usm_core::backend::Dyn;
use usm_kernel::Function;
use usm_kernel_jit::device::Variant;
use usm_kernel_jit::host::{self, HostCode};
use usm_kernel_jit::{cache, program::Open};

use super::Code;
use crate::device::runtime::Stream;
use crate::text::log;

/// Reads settings while the caller is attached to the interpreter, so that no thread of it forks
/// meanwhile. Warns, once, of a cache that is not safe.
///
/// # Errors
/// The warning, if the program makes it an exception.
fn prepare(py: Python<'_>) -> PyResult<()> {
    host::prepare();
    let Some(text) = cache::warning() else { return Ok(()) };
    py.import("warnings")?.call_method1("warn", (text, py.get_type::<PyRuntimeWarning>(), 2)).map(drop)
}

impl Code {
    /// Machine code of the host that checks at least these indices, compiled once, and the indices
    /// that it checks; `None` where the kernel is interpreted.
    pub(crate) fn host_code(&self, py: Python<'_>, open: Open) -> PyResult<Option<(Arc<HostCode>, Open)>> {
        prepare(py)?;
        let host = self.host.lock_of(py);
        let mut host = host.lock_py_attached(py).map_err(|_| self.error("a compilation that failed"))?;
        let start = Instant::now();
        let (code, open, is_new) = if host.has(open) {
            host.get(&self.program, open, self.is_unshared)
        } else {
            let host = &mut *host;
            py.detach(|| host.get(&self.program, open, self.is_unshared))
        };
        drop(host);
        if is_new {
            log::debug(py, "usm.kernel", || {
                let how = match &code {
                    Ok(Some(code)) => code.to_string(),
                    Ok(None) => "the interpreter".to_owned(),
                    Err(reason) => format!("nothing: {reason}"),
                };
                let (name, time) = (&self.ir().name, start.elapsed());
                format!("{name} on the host by {how}, ready in {:.1} ms", time.as_secs_f64() * 1e3)
            });
        }
        let code = code.map_err(|reason| self.error(&reason))?;
        Ok(code.map(|code| (code, open)))
    }

    /// The code for the device of a queue, built once for its context.
    pub(crate) fn function(
        &self,
        py: Python<'_>,
        stream: &Arc<Stream>,
        variant: Variant,
    ) -> PyResult<Function<Dyn>> {
        let context = stream.context();
        prepare(py)?;
        let functions = self.functions.lock_of(py);
        let mut functions = functions.lock_py_attached(py).map_err(|_| self.error("a build that failed"))?;
        if let Some(function) = functions.find(context, variant) {
            return Ok(function);
        }
        let start = Instant::now();
        let function = py.detach(|| self.program.build(context, variant));
        let function = function.map_err(|error| self.error(&error.to_string()))?;
        functions.insert(variant, &function);
        drop(functions);
        log::debug(py, "usm.kernel", || {
            let (device, time) = (Selector::of(context.info()), start.elapsed());
            format!("{} on {device}, ready in {:.1} ms", self.ir().name, time.as_secs_f64() * 1e3)
        });
        Ok(function)
    }
}
