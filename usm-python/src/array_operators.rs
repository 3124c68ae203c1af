//! Operators that `usm.Array` does not support: comparison and arithmetic. Python's defaults would
//! compare identities, or fail without a remedy.

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use crate::array::Array;

/// Refuses an operator, unless the other operand implements it.
#[cold]
fn refuse(sign: &str, other: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
    if let Some(other) = other
        && other
            .get_type()
            .getattr_opt(intern!(other.py(), "__array_ufunc__"))?
            .is_some_and(|it| !it.is_none())
    {
        return Ok(other.py().NotImplemented());
    }
    let identity = if matches!(sign, "==" | "!=") { "; `is` compares identity" } else { "" };
    Err(PyTypeError::new_err(format!(
        "usm.Array moves memory and does not compute: {sign} is not defined; use usm.to_numpy(array), or another library \
         over the same memory (dpnp, cupy, torch){identity}"
    )))
}

type Answer = PyResult<Py<PyAny>>;

#[pymethods]
impl Array {
    fn __richcmp__(&self, other: &Bound<'_, PyAny>, operator: CompareOp) -> Answer {
        let sign = match operator {
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        };
        refuse(sign, Some(other))
    }

    /// By identity: an array is a place in memory.
    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __add__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("+", Some(other))
    }

    fn __radd__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("+", Some(other))
    }

    fn __sub__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("-", Some(other))
    }

    fn __rsub__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("-", Some(other))
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("*", Some(other))
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("*", Some(other))
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("/", Some(other))
    }

    fn __rtruediv__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("/", Some(other))
    }

    fn __floordiv__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("//", Some(other))
    }

    fn __rfloordiv__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("//", Some(other))
    }

    fn __mod__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("%", Some(other))
    }

    fn __rmod__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("%", Some(other))
    }

    fn __matmul__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("@", Some(other))
    }

    fn __rmatmul__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("@", Some(other))
    }

    fn __divmod__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("divmod", Some(other))
    }

    fn __rdivmod__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("divmod", Some(other))
    }

    fn __lshift__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("<<", Some(other))
    }

    fn __rlshift__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("<<", Some(other))
    }

    fn __rshift__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse(">>", Some(other))
    }

    fn __rrshift__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse(">>", Some(other))
    }

    fn __and__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("&", Some(other))
    }

    fn __rand__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("&", Some(other))
    }

    fn __or__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("|", Some(other))
    }

    fn __ror__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("|", Some(other))
    }

    fn __xor__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("^", Some(other))
    }

    fn __rxor__(&self, other: &Bound<'_, PyAny>) -> Answer {
        refuse("^", Some(other))
    }

    fn __pow__(&self, other: &Bound<'_, PyAny>, _modulo: Option<&Bound<'_, PyAny>>) -> Answer {
        refuse("**", Some(other))
    }

    fn __rpow__(&self, other: &Bound<'_, PyAny>, _modulo: Option<&Bound<'_, PyAny>>) -> Answer {
        refuse("**", Some(other))
    }

    fn __neg__(&self) -> Answer {
        refuse("-", None)
    }

    fn __pos__(&self) -> Answer {
        refuse("+", None)
    }

    fn __invert__(&self) -> Answer {
        refuse("~", None)
    }

    fn __abs__(&self) -> Answer {
        refuse("abs", None)
    }
}
