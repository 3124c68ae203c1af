//! `usm.KernelFunction`: what the decorator makes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyTuple};

use super::code::Code;
use super::launch::{Mode, PyLaunch};
use super::range::Sizes;
use crate::error::Class;

/// What code is made for: dimensions of the range, the way it is made, and the sorts of the
/// arguments.
pub(crate) type Key = Vec<u32>;

/// A cell for one key, whose lock is held while its code is made.
type Cell = Arc<Mutex<Option<Arc<Code>>>>;

/// A Python function that work-items run. ``k[global, local](*arguments)`` launches it and waits.
#[pyclass(frozen, weakref, module = "usm", name = "KernelFunction")]
#[derive(Debug)]
pub(crate) struct PyKernelFunction {
    function: Py<PyAny>,
    /// Gives nodes for a key.
    make: Py<PyAny>,
    /// Names of the parameters.
    pub(crate) parameters: Vec<String>,
    pub(crate) name: String,
    pub(crate) place: String,
    pub(crate) strict: bool,
    codes: Mutex<HashMap<Key, Cell>>,
    mode: Mode,
}

#[pymethods]
impl PyKernelFunction {
    #[new]
    fn new(
        function: Py<PyAny>,
        make: Py<PyAny>,
        parameters: Vec<String>,
        name: String,
        place: String,
        strict: bool,
    ) -> Self {
        let (codes, mode) = (Mutex::default(), Mode::Run);
        Self { function, make, parameters, name, place, strict, codes, mode }
    }

    /// The function, which plain Python may call.
    #[getter]
    fn __wrapped__(&self, py: Python<'_>) -> Py<PyAny> {
        self.function.clone_ref(py)
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    /// ``k[global, local]``: a launch, which waits for its arguments.
    fn __getitem__(slf: Py<Self>, index: &Bound<'_, PyAny>) -> PyResult<PyLaunch> {
        let (sizes, mode) = (Sizes::of(index)?, slf.get().mode);
        Ok(PyLaunch::new(slf, sizes, mode))
    }

    /// ``k.check[global, local](*arguments)`` interprets the launch on copies, in three orders of
    /// items and groups, without a device: a race, an index outside, memory without a value or a
    /// divergent barrier is a `KernelError` with both places and work-items.
    #[getter]
    fn check(slf: Py<Self>, py: Python<'_>) -> Self {
        slf.get().other(py, Mode::Check)
    }

    /// ``k.proof[global, local](*arguments)`` runs nothing. It is ``"proven"``, or says what of
    /// this launch is not: an index that is checked as it runs, or two items that may race.
    #[getter]
    fn proof(slf: Py<Self>, py: Python<'_>) -> Self {
        slf.get().other(py, Mode::Proof)
    }

    #[pyo3(signature = (*_arguments, **_keywords))]
    fn __call__(
        &self,
        _arguments: &Bound<'_, PyTuple>,
        _keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let name = &self.name;
        Err(self.error(&format!("a kernel is launched over a range: write {name}[global, local](..)")))
    }

    fn __repr__(&self) -> String {
        format!("<usm.KernelFunction {} at {}>", self.name, self.place)
    }
}

impl PyKernelFunction {
    fn other(&self, py: Python<'_>, mode: Mode) -> Self {
        Self {
            function: self.function.clone_ref(py),
            make: self.make.clone_ref(py),
            parameters: self.parameters.clone(),
            name: self.name.clone(),
            place: self.place.clone(),
            strict: self.strict,
            codes: Mutex::default(),
            mode,
        }
    }

    /// A message with the place of the function in front.
    pub(crate) fn located(&self, message: &str) -> String {
        format!("{}: kernel {}: {message}", self.place, self.name)
    }

    pub(crate) fn error(&self, message: &str) -> PyErr {
        Class::Kernel.error(self.located(message))
    }

    /// The code for a key, made by whoever asks first.
    pub(crate) fn code(&self, py: Python<'_>, key: &Key) -> PyResult<Arc<Code>> {
        let broken = || self.error("making its code was interrupted");
        let cell = {
            let mut codes = self.codes.lock_py_attached(py).map_err(|_| broken())?;
            match codes.get(key) {
                Some(cell) => Arc::clone(cell),
                None => Arc::clone(codes.entry(key.clone()).or_default()),
            }
        };
        let mut cell = cell.lock_py_attached(py).map_err(|_| broken())?;
        if let Some(code) = &*cell {
            return Ok(Arc::clone(code));
        }
        let made = Code::new(self.make.bind(py).call1((key.clone(),))?.as_any())?;
        Ok(Arc::clone(cell.insert(Arc::new(made))))
    }
}
