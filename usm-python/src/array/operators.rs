//! Operators of `usm.Array`. An element computes as Python's numbers do; memory that the host can
//! access computes by NumPy, which makes the result. Device memory does not compute.

use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use crate::array::Array;
use crate::array::construct;
use crate::process::once::name;
use crate::text::error::Class;

/// An operator's sign, and what it does with two numbers or arrays of NumPy.
struct Operator {
    sign: &'static str,
    function: for<'py> fn(&Bound<'py, PyAny>, &Bound<'py, PyAny>) -> Answer<'py>,
}

const POWER: Operator = Operator { sign: "**", function: |a, b| a.pow(b, a.py().None()) };

/// A mask or a list of integers, among the signs.
pub(crate) const INDEX: &str = "an index of values";

type Answer<'py> = PyResult<Bound<'py, PyAny>>;

/// The ndarray over the same memory.
///
/// # Errors
/// [`Class::Access`] if the host cannot access the memory; `TypeError` without NumPy.
pub(crate) fn host_view<'py>(array: &Bound<'py, Array>, sign: &str) -> Answer<'py> {
    let kind = array.get().holding().kind();
    if !kind.is_host_accessible() {
        return Err(Class::Access.error(match sign {
            "ctypes" => format!(
                "the host cannot read {kind} memory: usm.to_numpy(array) copies it, array.pointer is its address"
            ),
            INDEX => format!(
                "{kind} memory has no index of values on the host: write usm.to_numpy(array)[index], or a kernel"
            ),
            sign => format!(
                "{kind} memory does not compute on the host: {sign} is not defined; use \
                 usm.elementwise(\"x + y\")(a, b) and its like, usm.to_numpy(array), a kernel, or another \
                 library over the same memory (dpnp, cupy, torch)"
            ),
        }));
    }
    construct::to_numpy(array.as_any()).map_err(|error| {
        match error.is_instance_of::<PyImportError>(array.py()) {
            true => PyTypeError::new_err(format!(
                "usm.Array computes by NumPy, which is not installed: {sign} is not defined"
            )),
            false => error,
        }
    })
}

/// A number for an element, an ndarray for other arrays; other objects are left as they are.
fn operand<'py>(value: &Bound<'py, PyAny>, sign: &str) -> Answer<'py> {
    match value.cast::<Array>() {
        Ok(array) if array.get().is_element() => array.get().item(value.py()),
        Ok(array) => host_view(array, sign),
        Err(_) => Ok(value.clone()),
    }
}

/// Whether Python must ask the other operand: it computes itself, or wants to be asked by its
/// attribute of `None`.
fn is_asked_next(other: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = other.py();
    let asks = other.get_type().getattr_opt(name!(py, "__array_ufunc__"))?.is_some();
    Ok(asks && !other.is_instance_of::<Array>())
}

fn apply<'py>(
    array: &Bound<'py, Array>,
    operator: &Operator,
    other: &Bound<'py, PyAny>,
    is_reflected: bool,
) -> Answer<'py> {
    let py = array.py();
    if !array.get().is_element() && is_asked_next(other)? {
        return Ok(py.NotImplemented().into_bound(py));
    }
    let (one, two) = (operand(array.as_any(), operator.sign)?, operand(other, operator.sign)?);
    if is_reflected { (operator.function)(&two, &one) } else { (operator.function)(&one, &two) }
}

/// Computes in the memory of `array`, with NumPy's rules for types.
fn apply_in_place(
    array: &Bound<'_, Array>,
    sign: &str,
    function: &str,
    other: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let view = host_view(array, sign)?;
    let other = operand(other, sign)?;
    array.py().import("operator")?.getattr(function)?.call1((view, other)).map(drop)
}

fn apply_to_one<'py>(
    array: &Bound<'py, Array>,
    sign: &str,
    function: impl Fn(&Bound<'py, PyAny>) -> Answer<'py>,
) -> Answer<'py> {
    function(&operand(array.as_any(), sign)?)
}

#[pymethods]
impl Array {
    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        compare: CompareOp,
    ) -> Answer<'py> {
        let operator = match compare {
            CompareOp::Lt => Operator { sign: "<", function: |a, b| a.rich_compare(b, CompareOp::Lt) },
            CompareOp::Le => Operator { sign: "<=", function: |a, b| a.rich_compare(b, CompareOp::Le) },
            CompareOp::Eq => Operator { sign: "==", function: |a, b| a.rich_compare(b, CompareOp::Eq) },
            CompareOp::Ne => Operator { sign: "!=", function: |a, b| a.rich_compare(b, CompareOp::Ne) },
            CompareOp::Gt => Operator { sign: ">", function: |a, b| a.rich_compare(b, CompareOp::Gt) },
            CompareOp::Ge => Operator { sign: ">=", function: |a, b| a.rich_compare(b, CompareOp::Ge) },
        };
        apply(slf, &operator, other, false)
    }

    /// By identity: an array is a place in memory.
    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "+", function: |a, b| a.add(b) }, other, false)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "+", function: |a, b| a.add(b) }, other, true)
    }

    fn __iadd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "+=", "iadd", other)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "-", function: |a, b| a.sub(b) }, other, false)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "-", function: |a, b| a.sub(b) }, other, true)
    }

    fn __isub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "-=", "isub", other)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "*", function: |a, b| a.mul(b) }, other, false)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "*", function: |a, b| a.mul(b) }, other, true)
    }

    fn __imul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "*=", "imul", other)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "/", function: |a, b| a.div(b) }, other, false)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "/", function: |a, b| a.div(b) }, other, true)
    }

    fn __itruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "/=", "itruediv", other)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "//", function: |a, b| a.floor_div(b) }, other, false)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "//", function: |a, b| a.floor_div(b) }, other, true)
    }

    fn __ifloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "//=", "ifloordiv", other)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "%", function: |a, b| a.rem(b) }, other, false)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "%", function: |a, b| a.rem(b) }, other, true)
    }

    fn __imod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "%=", "imod", other)
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "@", function: |a, b| a.matmul(b) }, other, false)
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "@", function: |a, b| a.matmul(b) }, other, true)
    }

    fn __imatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "@=", "imatmul", other)
    }

    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "divmod", function: |a, b| a.divmod(b) }, other, false)
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "divmod", function: |a, b| a.divmod(b) }, other, true)
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "<<", function: |a, b| a.lshift(b) }, other, false)
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "<<", function: |a, b| a.lshift(b) }, other, true)
    }

    fn __ilshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "<<=", "ilshift", other)
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: ">>", function: |a, b| a.rshift(b) }, other, false)
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: ">>", function: |a, b| a.rshift(b) }, other, true)
    }

    fn __irshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, ">>=", "irshift", other)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "&", function: |a, b| a.bitand(b) }, other, false)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "&", function: |a, b| a.bitand(b) }, other, true)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "&=", "iand", other)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "|", function: |a, b| a.bitor(b) }, other, false)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "|", function: |a, b| a.bitor(b) }, other, true)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "|=", "ior", other)
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "^", function: |a, b| a.bitxor(b) }, other, false)
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &Operator { sign: "^", function: |a, b| a.bitxor(b) }, other, true)
    }

    fn __ixor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, "^=", "ixor", other)
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> Answer<'py> {
        apply(slf, &POWER, other, false)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> Answer<'py> {
        apply(slf, &POWER, other, true)
    }

    fn __ipow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        apply_in_place(slf, "**=", "ipow", other)
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        apply_to_one(slf, "-", |operand| operand.neg())
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        apply_to_one(slf, "+", |operand| operand.pos())
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        apply_to_one(slf, "~", |operand| operand.bitnot())
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        apply_to_one(slf, "abs", |operand| operand.abs())
    }

    /// The element as an index; `TypeError` for other arrays and types.
    fn __index__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        let array = slf.get();
        if !array.is_element() {
            return Err(PyTypeError::new_err("only an array of 0 dimensions is an index"));
        }
        slf.py().import("operator")?.getattr("index")?.call1((array.item(slf.py())?,))
    }

    fn __complex__<'py>(&self, py: Python<'py>) -> Answer<'py> {
        py.get_type::<pyo3::types::PyComplex>().call1((self.item(py)?,))
    }

    /// An element formats as its number.
    fn __format__<'py>(slf: &Bound<'py, Self>, spec: &Bound<'py, PyAny>) -> Answer<'py> {
        let py = slf.py();
        if slf.get().is_element() {
            return slf.get().item(py)?.call_method1(name!(py, "__format__"), (spec,));
        }
        if spec.is_truthy()? {
            return Err(PyTypeError::new_err(
                "an array of several elements has no format specification; format its elements, or array.tolist()",
            ));
        }
        slf.str().map(Bound::into_any)
    }
}
