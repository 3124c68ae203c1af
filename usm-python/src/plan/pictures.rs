//! Pictures of a plan, drawn by usm-pool: in a notebook, as a file, in a browser.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_plan::usm_pool::html::{self, Page};
use usm_plan::usm_pool::svg;

use crate::plan::PyPlan;
use crate::storage::snapshot::named;
use crate::text::argument;
use crate::text::html::{bundle, notebook};

bundle!(PyPlan, "image/svg+xml", |plan, py| plan._repr_svg_(py));

#[pymethods]
impl PyPlan {
    /// The picture in notebooks: time across, address up, one block for each tensor.
    fn _repr_svg_(&self, py: Python<'_>) -> PyResult<String> {
        let outcome = self.feasible_outcome()?;
        Ok(py.detach(|| svg::render(&outcome.plan, outcome.graph.as_ref(), self.title())))
    }

    /// Writes the picture that notebooks show. ``OSError`` if the file cannot be written.
    fn to_svg(&self, py: Python<'_>, #[pyo3(from_py_with = argument::path)] path: PathBuf) -> PyResult<()> {
        let picture = self._repr_svg_(py)?;
        py.detach(|| std::fs::write(&path, picture)).map_err(|error| named(&error, path))
    }

    /// Writes the plan as one page for a browser, without network access: zoom with the wheel, a
    /// search field, what is live at each time, and block details on a click. A second plan,
    /// ``compare_with``, is shown beside it, at the same scale of bytes. ``OSError`` if the file
    /// cannot be written.
    #[pyo3(signature = (path, *, compare_with=None))]
    fn to_html(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = argument::path)] path: PathBuf,
        compare_with: Option<PyRef<'_, Self>>,
    ) -> PyResult<()> {
        let page = self.page(py, compare_with.as_deref())?;
        py.detach(|| std::fs::write(&path, page)).map_err(|error| named(&error, path))
    }

    /// Shows the page of :meth:`to_html`: in a notebook; elsewhere in a browser, as a temporary
    /// file whose path is returned.
    fn show(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let page = self.page(py, None)?;
        if let Some(display) = notebook(py)? {
            let frame = py.import("html")?.call_method1("escape", (page,))?;
            let frame: String = frame.extract()?;
            let text = format!(
                "<iframe srcdoc=\"{frame}\" sandbox=\"allow-scripts\" width=\"100%\" height=\"720\" \
                 style=\"border:0\"></iframe>"
            );
            display.call_method1("display", (display.getattr("HTML")?.call1((text,))?,))?;
            return Ok(None);
        }
        let options = PyDict::new(py);
        options.set_item("prefix", "usm-plan-")?;
        options.set_item("suffix", ".html")?;
        let temporary = py.import("tempfile")?.call_method("mkstemp", (), Some(&options))?;
        let (file, path): (i32, String) = temporary.extract()?;
        py.import("os")?.call_method1("close", (file,))?;
        std::fs::write(&path, page).map_err(|error| named(&error, PathBuf::from(&path)))?;
        let address = py.import("pathlib")?.getattr("Path")?.call1((&path,))?.call_method0("as_uri")?;
        py.import("webbrowser")?.call_method1("open", (address,))?;
        Ok(Some(path))
    }
}

impl PyPlan {
    fn page(&self, py: Python<'_>, other: Option<&Self>) -> PyResult<String> {
        let mut pages = Vec::new();
        for plan in [Some(self), other].into_iter().flatten() {
            let outcome = plan.feasible_outcome()?;
            pages.push(Page { plan: &outcome.plan, graph: outcome.graph.as_ref(), title: plan.title() });
        }
        Ok(py.detach(|| html::render_all(&pages)))
    }
}
