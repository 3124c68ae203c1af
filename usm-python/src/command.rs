//! The command `usm` inside of the module: what is beside it in a wheel would have all of its code
//! once more.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use usm_plan::onnx::infer::Inferred;

/// Runs the command with these arguments, the first of which is its name, without the interpreter:
/// its exit code. Output goes to the process's own standard output and error, and Ctrl-C is the
/// process's.
#[pyfunction]
pub(crate) fn _run_command(py: Python<'_>, arguments: Vec<OsString>) -> PyResult<u8> {
    let onnx = py.import("importlib.util")?.call_method1("find_spec", ("onnx",))?;
    let inference = (!onnx.is_none()).then_some(infer_shapes as usm_cli::Inference);
    usm_cli::infer_shapes_with(inference, "the package onnx does: pip install onnx");
    Ok(py.detach(|| usm_cli::run_command(arguments)))
}

/// What the package onnx infers.
fn infer_shapes(model: &[u8]) -> Inferred {
    let ask = |py: Python<'_>| {
        let options = pyo3::types::PyDict::new(py);
        options.set_item("data_prop", true)?;
        let package = py.import("onnx.shape_inference")?;
        let answer = package.call_method("infer_shapes", (PyBytes::new(py, model),), Some(&options))?;
        let bytes = answer.call_method0("SerializeToString").unwrap_or(answer);
        Ok(Inferred::of_model(bytes.extract::<&[u8]>().map_err(PyErr::from)?))
    };
    Python::attach(|py| {
        ask(py).unwrap_or_else(|error: PyErr| Inferred::nothing(format!("the package onnx says: {error}")))
    })
}
