//! Operators of `usm.Array`. An element computes as Python's numbers do; memory that the host can
//! access computes by NumPy, which makes the result. Device memory does not compute.

use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use crate::array::Array;
use crate::array::construct;
use crate::process::once::name;
use crate::text::error::Class;

/// An operator's sign, and its function in Python's module `operator`.
struct Operator {
    sign: &'static str,
    function: &'static str,
}

const fn operator(sign: &'static str, function: &'static str) -> Operator {
    Operator { sign, function }
}

type Answer<'py> = PyResult<Bound<'py, PyAny>>;

/// The ndarray over the same memory.
///
/// # Errors
/// [`Class::Access`] if the host cannot access the memory; `TypeError` without NumPy.
pub(crate) fn host_view<'py>(array: &Bound<'py, Array>, sign: &str) -> Answer<'py> {
    let kind = array.get().holding().kind();
    if !kind.is_host_accessible() {
        return Err(Class::Access.error(format!(
            "{kind} memory does not compute on the host: {sign} is not defined; use usm.to_numpy(array), a kernel, or \
             another library over the same memory (dpnp, cupy, torch)"
        )));
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
        Ok(array) if array.get().holding().view.ndim() == 0 => array.get().item(value.py()),
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
    if array.get().holding().view.ndim() > 0 && is_asked_next(other)? {
        return Ok(py.NotImplemented().into_bound(py));
    }
    let (one, two) = (operand(array.as_any(), operator.sign)?, operand(other, operator.sign)?);
    let operands = if is_reflected { (two, one) } else { (one, two) };
    let module = if operator.function == "divmod" { "builtins" } else { "operator" };
    py.import(module)?.getattr(operator.function)?.call1(operands)
}

/// Computes in the memory of `array`, with NumPy's rules for types.
fn apply_in_place(array: &Bound<'_, Array>, operator: &Operator, other: &Bound<'_, PyAny>) -> PyResult<()> {
    let view = host_view(array, operator.sign)?;
    let other = operand(other, operator.sign)?;
    let function = format!("i{}", operator.function.trim_end_matches('_'));
    array.py().import("operator")?.getattr(function)?.call1((view, other)).map(drop)
}

fn apply_to_one<'py>(array: &Bound<'py, Array>, operator: &Operator) -> Answer<'py> {
    let operand = operand(array.as_any(), operator.sign)?;
    array.py().import("operator")?.getattr(operator.function)?.call1((operand,))
}

#[pymethods]
impl Array {
    fn __richcmp__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        compare: CompareOp,
    ) -> Answer<'py> {
        let operator = match compare {
            CompareOp::Lt => operator("<", "lt"),
            CompareOp::Le => operator("<=", "le"),
            CompareOp::Eq => operator("==", "eq"),
            CompareOp::Ne => operator("!=", "ne"),
            CompareOp::Gt => operator(">", "gt"),
            CompareOp::Ge => operator(">=", "ge"),
        };
        apply(slf, &operator, other, false)
    }

    /// By identity: an array is a place in memory.
    fn __hash__(slf: &Bound<'_, Self>) -> usize {
        slf.as_ptr() as usize >> 4
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("+", "add"), other, false)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("+", "add"), other, true)
    }

    fn __iadd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("+=", "add"), other)
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("-", "sub"), other, false)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("-", "sub"), other, true)
    }

    fn __isub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("-=", "sub"), other)
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("*", "mul"), other, false)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("*", "mul"), other, true)
    }

    fn __imul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("*=", "mul"), other)
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("/", "truediv"), other, false)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("/", "truediv"), other, true)
    }

    fn __itruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("/=", "truediv"), other)
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("//", "floordiv"), other, false)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("//", "floordiv"), other, true)
    }

    fn __ifloordiv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("//=", "floordiv"), other)
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("%", "mod"), other, false)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("%", "mod"), other, true)
    }

    fn __imod__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("%=", "mod"), other)
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("@", "matmul"), other, false)
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("@", "matmul"), other, true)
    }

    fn __imatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("@=", "matmul"), other)
    }

    fn __divmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("divmod", "divmod"), other, false)
    }

    fn __rdivmod__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("divmod", "divmod"), other, true)
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("<<", "lshift"), other, false)
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("<<", "lshift"), other, true)
    }

    fn __ilshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("<<=", "lshift"), other)
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator(">>", "rshift"), other, false)
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator(">>", "rshift"), other, true)
    }

    fn __irshift__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator(">>=", "rshift"), other)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("&", "and_"), other, false)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("&", "and_"), other, true)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("&=", "and_"), other)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("|", "or_"), other, false)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("|", "or_"), other, true)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("|=", "or_"), other)
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("^", "xor"), other, false)
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> Answer<'py> {
        apply(slf, &operator("^", "xor"), other, true)
    }

    fn __ixor__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        apply_in_place(slf, &operator("^=", "xor"), other)
    }

    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> Answer<'py> {
        apply(slf, &operator("**", "pow"), other, false)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        _modulo: Option<&Bound<'py, PyAny>>,
    ) -> Answer<'py> {
        apply(slf, &operator("**", "pow"), other, true)
    }

    fn __ipow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        _modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        apply_in_place(slf, &operator("**=", "pow"), other)
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        apply_to_one(slf, &operator("-", "neg"))
    }

    fn __pos__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        apply_to_one(slf, &operator("+", "pos"))
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        apply_to_one(slf, &operator("~", "invert"))
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        apply_to_one(slf, &operator("abs", "abs"))
    }

    /// The element as an index; `TypeError` for other arrays and types.
    fn __index__<'py>(slf: &Bound<'py, Self>) -> Answer<'py> {
        let array = slf.get();
        if array.holding().view.ndim() > 0 {
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
        if slf.get().holding().view.ndim() == 0 {
            return py.import("builtins")?.getattr("format")?.call1((slf.get().item(py)?, spec));
        }
        if spec.is_truthy()? {
            return Err(PyTypeError::new_err(
                "an array of several elements has no format specification; format its elements, or array.tolist()",
            ));
        }
        slf.str().map(Bound::into_any)
    }
}
