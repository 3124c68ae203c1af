//! Tables for notebooks, and what shows them. This file escapes all text.

use std::fmt::Write;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_plan::usm_pool::svg::escaped;

/// Names with their values.
pub(crate) fn properties(rows: &[(&str, String)]) -> String {
    let mut out = String::from("<table>");
    for (name, value) in rows {
        // Writing to a string cannot fail.
        let _ = write!(out, "<tr><th>{}</th><td>{}</td></tr>", escaped(name), escaped(value));
    }
    out.push_str("</table>");
    out
}

/// Rows under their headings.
pub(crate) fn table<const N: usize>(heads: &[&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut out = String::from("<table><tr>");
    for head in heads {
        let _ = write!(out, "<th>{}</th>", escaped(head));
    }
    out.push_str("</tr>");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = write!(out, "<td>{}</td>", escaped(&cell));
        }
        out.push_str("</tr>");
    }
    out.push_str("</table>");
    out
}

/// Text whose lines and spaces are kept.
pub(crate) fn preformatted(text: &str) -> String {
    format!("<pre>{}</pre>", escaped(text))
}

/// All forms of an object for a notebook: its text, and a page or a picture of this type.
pub(crate) fn forms<'py>(
    object: &Bound<'py, PyAny>,
    media_type: &str,
    html: String,
) -> PyResult<Bound<'py, PyDict>> {
    let forms = PyDict::new(object.py());
    forms.set_item("text/plain", object.repr()?)?;
    forms.set_item(media_type, html)?;
    Ok(forms)
}

/// Defines the method that notebooks ask for all forms of an object: `bundle!(Class, "text/html",
/// |object| ..)` with the function that makes the page or the picture.
macro_rules! bundle {
    ($class:ty, $media_type:literal, $show:expr) => {
        #[pyo3::pymethods]
        impl $class {
            /// The forms for notebooks, which choose among them themselves.
            #[pyo3(signature = (include=None, exclude=None))]
            fn _repr_mimebundle_<'py>(
                slf: &pyo3::Bound<'py, Self>,
                include: Option<&pyo3::Bound<'_, pyo3::PyAny>>,
                exclude: Option<&pyo3::Bound<'_, pyo3::PyAny>>,
            ) -> pyo3::PyResult<pyo3::Bound<'py, pyo3::types::PyDict>> {
                let _ = (include, exclude);
                let show: fn(&Self, pyo3::Python<'py>) -> pyo3::PyResult<String> = $show;
                $crate::text::html::forms(slf.as_any(), $media_type, show(slf.get(), slf.py())?)
            }
        }
    };
}
pub(crate) use bundle;

/// `IPython.display` in a notebook, which has already imported IPython.
pub(crate) fn notebook(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Some(ipython) = modules.cast::<PyDict>()?.get_item("IPython")? else { return Ok(None) };
    let shell = ipython.call_method0("get_ipython")?;
    if shell.is_none() || !shell.hasattr("kernel")? {
        return Ok(None);
    }
    py.import("IPython.display").map(|module| Some(module.into_any()))
}
