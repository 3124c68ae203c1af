//! `usm.KernelFunction`: the decorator's result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};
use usm_kernel_ir::{emit, text};

use super::argument;
use super::code::Code;
use super::launch::{Mode, PyLaunch};
use super::range::Sizes;
use super::structure::Key;
use crate::process::fork::ReplacedState;
use crate::text::argument as arguments;
use crate::text::error::Class;

/// The most dimensions of an array, as in NumPy. A key has 8 bits for them.
const MOST_DIMENSIONS: u32 = 64;

/// A cell for one key. Its lock is held while its code is generated.
type Cell = Arc<ReplacedState<Option<Arc<Code>>>>;

/// A Python function that work-items run. ``k[global, local](*arguments)`` launches it and waits.
#[pyclass(frozen, weakref, module = "usm", name = "KernelFunction")]
#[derive(Debug)]
pub(crate) struct PyKernelFunction {
    function: Py<PyAny>,
    /// Generates nodes for a key.
    make: Py<PyAny>,
    /// Names of the parameters.
    pub(crate) parameters: Vec<String>,
    pub(crate) name: String,
    pub(crate) place: String,
    pub(crate) strict: bool,
    /// Whether its item is of a range with groups: numba-dpex's `NdItem`.
    pub(crate) needs_groups: bool,
    /// Shared with `check` and `proof`, which need the same code.
    codes: Arc<Mutex<HashMap<Key, Cell>>>,
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
        needs_groups: bool,
    ) -> Self {
        let (codes, mode) = (Arc::default(), Mode::Run);
        Self { function, make, parameters, name, place, strict, needs_groups, codes, mode }
    }

    /// The function, for calls from plain Python.
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
    /// items and groups, without a device. A race, an index outside or a divergent barrier
    /// is a `KernelError` with both places and work-items.
    #[getter]
    fn check(slf: Py<Self>, py: Python<'_>) -> Self {
        slf.get().with_mode(py, Mode::Check)
    }

    /// ``k.proof[global, local](*arguments)`` runs nothing. It returns ``"proven"``;
    /// ``"inspected"``, if all indices of this launch had to be computed and compared; or the
    /// unproven part: an index that is checked as it runs, with the missing condition, or two
    /// items that race or may race.
    #[getter]
    fn proof(slf: Py<Self>, py: Python<'_>) -> Self {
        slf.get().with_mode(py, Mode::Proof)
    }

    /// The kernel's code for arguments of these types, such as ``"float32[:,:], int64"``, over a
    /// range of `ndim` dimensions: ``"ir"``, ``"opencl-c"`` or ``"cuda-c"`` as text, ``"spir-v"``
    /// as bytes. The code does not check indices. Needs no device and no compiler.
    #[pyo3(signature = (target, signature, *, ndim=1))]
    fn code<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = arguments::target)] target: &str,
        #[pyo3(from_py_with = arguments::signature)] signature: &str,
        #[pyo3(from_py_with = arguments::ndim)] ndim: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let code = self.code_of(py, &self.signature_key(signature, ndim)?)?;
        let text = match target {
            "ir" => text::write(code.ir()),
            "opencl-c" => emit::opencl_c(code.ir()),
            "cuda-c" => emit::cuda_c(code.ir()),
            "spir-v" => return Ok(PyBytes::new(py, &emit::spirv(code.ir())).into_any()),
            other => {
                let message =
                    format!("{other:?} is no target: \"opencl-c\", \"cuda-c\", \"spir-v\" and \"ir\" are");
                return Err(self.error(&message));
            }
        };
        Ok(PyString::new(py, &text).into_any())
    }

    /// Size of a group's local memory in bytes, as far as it is known without a launch; 0 before
    /// the first launch.
    #[getter]
    fn local_mem_size(&self, py: Python<'_>) -> u64 {
        self.codes(py).iter().map(|code| code.program.local_bytes()).max().unwrap_or(0)
    }

    /// Largest number of work-items in a group on the devices used so far; ``None`` before the
    /// first launch on a device.
    #[getter]
    fn max_work_group_size(&self, py: Python<'_>) -> Option<u64> {
        self.codes(py).iter().filter_map(|code| code.group_limit(py)).min()
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
    fn with_mode(&self, py: Python<'_>, mode: Mode) -> Self {
        Self {
            function: self.function.clone_ref(py),
            make: self.make.clone_ref(py),
            parameters: self.parameters.clone(),
            name: self.name.clone(),
            place: self.place.clone(),
            strict: self.strict,
            needs_groups: self.needs_groups,
            codes: Arc::clone(&self.codes),
            mode,
        }
    }

    /// A message with the function's place in front.
    pub(crate) fn locate(&self, message: &str) -> String {
        format!("{}: kernel {}: {message}", self.place, self.name)
    }

    pub(crate) fn error(&self, message: &str) -> PyErr {
        Class::Kernel.error(self.locate(message))
    }

    /// All generated code.
    fn codes(&self, py: Python<'_>) -> Vec<Arc<Code>> {
        let Ok(codes) = self.codes.lock_py_attached(py) else { return Vec::new() };
        let cells: Vec<Cell> = codes.values().map(Arc::clone).collect();
        drop(codes);
        cells.iter().filter_map(|cell| cell.lock_of(py).lock_py_attached(py).ok()?.clone()).collect()
    }

    /// The key of a signature: types in order, arrays with `[:]`, one `:` for each dimension.
    fn signature_key(&self, signature: &str, ndim: u32) -> PyResult<Key> {
        if !(1..=3).contains(&ndim) {
            return Err(self.error(&format!("ndim {ndim}: a range has 1, 2 or 3 dimensions")));
        }
        let text = signature.trim();
        let inner = text.strip_prefix("void(").and_then(|text| text.strip_suffix(')')).unwrap_or(text);
        let mut parts = vec![String::new()];
        let mut inside = false;
        for letter in inner.chars().filter(|letter| !letter.is_whitespace()) {
            inside = (inside || letter == '[') && letter != ']';
            match letter {
                ',' if !inside => parts.push(String::new()),
                letter => parts.last_mut().into_iter().for_each(|part| part.push(letter)),
            }
        }
        parts.retain(|part| !part.is_empty());
        let (count, part_count) = (self.parameters.len(), parts.len());
        if count != part_count {
            let names = self.parameters.join(", ");
            return Err(self.error(&format!(
                "{count} types are needed ({names}), {part_count} are given: {signature:?}"
            )));
        }
        let mut key = vec![ndim];
        for part in &parts {
            let (name, axes) =
                part.split_once('[').map_or((part.as_str(), None), |(name, axes)| (name, Some(axes)));
            let element = argument::named_type(name);
            let axes = axes.map(|axes| {
                axes.strip_suffix(']').filter(|axes| axes.chars().all(|one| ":,1".contains(one)))
            });
            let (Some(element), None | Some(Some(_))) = (element, axes) else {
                return Err(self.error(&format!(
                    "{part:?} is no type: write such as \"float32\", and \"float32[:,:]\" for an array of two dimensions"
                )));
            };
            let dimensions = axes.flatten().map(|axes| axes.matches(',').count() as u32 + 1);
            if let Some(count) = dimensions.filter(|count| *count > MOST_DIMENSIONS) {
                return Err(self.error(&format!(
                    "an array of {count} dimensions in the signature: {MOST_DIMENSIONS} are the most"
                )));
            }
            key.push(dimensions.map_or(element, |count| argument::array_key(element, count, false, false)));
        }
        Ok(key)
    }

    /// The code for a key; the first caller generates it.
    pub(crate) fn code_of(&self, py: Python<'_>, key: &Key) -> PyResult<Arc<Code>> {
        let interrupted_error = || self.error("making its code was interrupted");
        let cell = {
            let mut codes = self.codes.lock_py_attached(py).map_err(|_| interrupted_error())?;
            match codes.get(key) {
                Some(cell) => Arc::clone(cell),
                None => Arc::clone(codes.entry(key.clone()).or_default()),
            }
        };
        let cell = cell.lock_of(py);
        let mut cell = cell.lock_py_attached(py).map_err(|_| interrupted_error())?;
        if let Some(code) = &*cell {
            return Ok(Arc::clone(code));
        }
        let is_unshared = key.first().is_some_and(|head| head >> 16 == 0);
        let code = self.make.bind(py).call1((key.clone(),))?;
        let code = Code::new(&code, is_unshared)?;
        Ok(Arc::clone(cell.insert(Arc::new(code))))
    }
}
