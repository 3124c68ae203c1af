//! The progress of a search in a notebook.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use usm_plan::units;
use usm_plan::usm_pool::planner::Progress;

use crate::text::html::{self, notebook};

/// The shortest time between changes, and the time before the first: most plans are done by then.
const PERIOD: Duration = Duration::from_millis(250);

/// A line in a notebook's output, removed when the plan is ready. Does nothing elsewhere.
pub(crate) struct Line {
    display: Option<Py<PyAny>>,
    start: Instant,
    state: Mutex<LineState>,
}

struct LineState {
    /// The last result of the search.
    progress: Option<Progress>,
    /// The time of the last change.
    at: Instant,
    /// IPython's handle for changes.
    handle: Option<Py<PyAny>>,
}

impl Line {
    pub(crate) fn new(py: Python<'_>) -> Self {
        // A notebook with an unusual IPython gets a plan without progress.
        let display = notebook(py).ok().flatten().map(Bound::unbind);
        let start = Instant::now();
        Self { display, start, state: Mutex::new(LineState { progress: None, at: start, handle: None }) }
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.display.is_some()
    }

    /// Records a better plan or bound.
    pub(crate) fn note(&self, progress: Progress) {
        self.lock().progress = Some(progress);
    }

    /// Shows the time and the last record if the line is due. Called regularly, without the
    /// interpreter.
    pub(crate) fn tick(&self) {
        if self.display.is_none() {
            return;
        }
        let mut state = self.lock();
        if state.at.elapsed() < PERIOD {
            return;
        }
        state.at = Instant::now();
        let mut text = format!("searching for {:.1} s", self.start.elapsed().as_secs_f64());
        if let Some(Progress { peak, bound, nodes, .. }) = state.progress {
            let gap = 100.0 * peak.saturating_sub(bound) as f64 / bound.max(1) as f64;
            let peak = units::shown(peak);
            // Writing to a string cannot fail.
            let _ = write!(text, ": peak {peak}, {gap:.2} % above the bound, {nodes} nodes");
        }
        let _ = Python::attach(|py| self.write(py, &mut state, &text));
    }

    fn lock(&self) -> MutexGuard<'_, LineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, py: Python<'_>, state: &mut LineState, text: &str) -> PyResult<()> {
        let Some(display) = &self.display else { return Ok(()) };
        let display = display.bind(py);
        let page = display.getattr("HTML")?.call1((html::preformatted(text),))?;
        match &state.handle {
            Some(handle) => drop(handle.call_method1(py, "update", (page,))?),
            None => {
                let options = PyDict::new(py);
                options.set_item("display_id", true)?;
                let handle = display.call_method("display", (page,), Some(&options))?;
                state.handle = (!handle.is_none()).then(|| handle.unbind());
            }
        }
        Ok(())
    }

    /// Removes the line.
    pub(crate) fn end(&self, py: Python<'_>) {
        let state = self.lock();
        let (Some(handle), Some(display)) = (&state.handle, &self.display) else { return };
        let empty_page = display.bind(py).getattr("HTML").and_then(|html| html.call1(("",)));
        let _ = empty_page.and_then(|page| handle.call_method1(py, "update", (page,)));
    }
}
