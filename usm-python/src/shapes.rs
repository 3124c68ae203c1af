//! Shapes that an ONNX file does not state, by the package `onnx` where it is installed: for
//! `usm.plan` and for the command.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use usm_plan::onnx::infer::Inferred;

/// Whether the package can be imported.
pub(crate) fn is_there() -> bool {
    Python::attach(|py| py.import("onnx").is_ok())
}

/// What the package infers of the bytes of a model; nothing, with its words, where it raises.
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
        ask(py).unwrap_or_else(|error: PyErr| Inferred::nothing(format!("the package onnx says: {error}")))
    })
}
