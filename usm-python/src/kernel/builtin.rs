//! The table of built-in functions, for the compiler in Python.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_kernel_ir::BUILTINS;

/// The functions of `math`, NumPy and SciPy that are built-in functions of kernels: by its name in
/// Python, the name of the node, the number of arguments, and whether it counts bits of an integer.
#[pyfunction]
pub(crate) fn _builtins(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let names = PyDict::new(py);
    for builtin in BUILTINS {
        let function = builtin.function;
        let node = (function.name(), function.arguments(), function.counts());
        for name in builtin.python.split_whitespace() {
            names.set_item(name, node)?;
        }
    }
    Ok(names)
}
