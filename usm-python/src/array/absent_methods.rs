//! Methods of NumPy's, CuPy's and torch's arrays that ours have not: the error says what to call.
//!
//! They are attributes of the class, because a `__getattr__` would make every call of a method
//! slower.

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;

use crate::array::Array;

#[cold]
fn missing(name: &str, remedy: &str) -> PyErr {
    PyAttributeError::new_err(format!("'usm.Array' object has no attribute '{name}': use {remedy}"))
}

macro_rules! elsewhere {
    ($($name:ident: $remedy:literal;)*) => {
        /// The names.
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        #[pymethods]
        impl Array {
            $(
                #[doc = concat!("Not here: use ", $remedy, ".")]
                #[getter]
                #[allow(clippy::unused_self, reason = "an attribute of Python's")]
                fn $name(&self) -> PyResult<()> {
                    Err(missing(stringify!($name), $remedy))
                }
            )*
        }
    };
}

elsewhere! {
    all: "usm.reduce(array, \"all\")";
    any: "usm.reduce(array, \"any\")";
    argmax: "usm.argmax(array)";
    argmin: "usm.argmin(array)";
    argsort: "usm.argsort(array)";
    clip: "usm.elementwise(\"min(max(x, low), high)\"), or numpy.clip(array, low, high) on the host";
    conj: "usm.elementwise(\"conj(x)\"), or numpy.conj(array) on the host";
    cpu: "usm.to_numpy(array), or array.copy(kind=\"host\", device=\"host\")";
    cuda: "array.to_device(\"cuda:gpu\")";
    cumsum: "usm.scan(array)";
    data: "array.pointer, or usm.to_numpy(array)";
    dot: "numpy.dot(array, other) of host memory, elsewhere the library of the device";
    flags: "array.is_c_contiguous and array.strides";
    flatten: "array.copy().ravel(), or array.ravel() where it is contiguous";
    get: "usm.to_numpy(array)";
    imag: "a kernel, or numpy.imag(array) on the host";
    max: "usm.reduce(array, \"max\")";
    mean: "usm.reduce(array) / array.size, or numpy.mean(array) on the host";
    min: "usm.reduce(array, \"min\")";
    nonzero: "numpy.nonzero(array) on the host";
    numpy: "usm.to_numpy(array)";
    prod: "usm.reduce(array, \"prod\")";
    ptr: "array.pointer";
    real: "a kernel, or numpy.real(array) on the host";
    round: "usm.elementwise(\"round(x)\"), or numpy.round(array) on the host";
    sort: "usm.sort(array)";
    squeeze: "array.reshape(shape)";
    std: "numpy.std(array) on the host";
    sum: "usm.reduce(array, \"sum\")";
    swapaxes: "array.transpose(axes)";
    to: "array.to_device(device)";
    to_numpy: "usm.to_numpy(array)";
    var: "numpy.var(array) on the host";
}

#[pymethods]
impl Array {
    /// The names of attributes, without those that only say what to call.
    fn __dir__<'py>(slf: &Bound<'py, Self>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let py = slf.py();
        let all = py.get_type::<PyAny>().call_method1("__dir__", (slf,))?;
        let mut places = Vec::new();
        for name in all.try_iter()? {
            let name = name?;
            if !NAMES.contains(&name.extract::<&str>()?) {
                places.push(name);
            }
        }
        Ok(places)
    }
}
