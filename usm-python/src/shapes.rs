//! Infers shapes that an ONNX file does not state, with the package `onnx` if it is installed: for
//! `usm.plan` and for the command.

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use usm_plan::onnx::infer::Inferred;

/// Whether the package can be imported. Does not import it, which would take a second or more.
pub(crate) fn is_installed() -> bool {
    Python::attach(|py| {
        let find = || py.import("importlib.util")?.call_method1("find_spec", ("onnx",));
        find().is_ok_and(|spec| !spec.is_none())
    })
}

/// The package's inference from the bytes of a model; its message if it raises.
pub(crate) fn infer(model: &[u8]) -> Inferred {
    let ask = |py: Python<'_>| {
        let options = PyDict::new(py);
        options.set_item("data_prop", true)?;
        let package = py.import("onnx.shape_inference")?;
        let answer = package.call_method("infer_shapes", (PyBytes::new(py, model),), Some(&options))?;
        let bytes = answer.call_method0("SerializeToString").unwrap_or(answer);
        Ok(Inferred::of_model(bytes.extract::<&[u8]>().map_err(PyErr::from)?))
    };
    Python::attach(|py| {
        ask(py).unwrap_or_else(|error: PyErr| {
            if error.is_instance_of::<PyKeyboardInterrupt>(py) {
                // For the next check: by the planner, which then stops, or by Python itself.
                let _ = py.import("_thread").and_then(|module| module.call_method0("interrupt_main"));
            }
            Inferred::nothing(format!("the package onnx says: {error}"))
        })
    })
}
