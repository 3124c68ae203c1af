//! Python while a search runs: its signals, remarks as warnings, and progress in a notebook.

use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use usm_plan::escape::EscapedText;
use usm_plan::usm_pool::planner::Progress;

use crate::plan::progress::Line;

/// The interval at which a search checks for Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(50);

pub(crate) struct Watch {
    start: Instant,
    /// The caller's thread. Only the main thread can check for signals.
    thread: ThreadId,
    line: Line,
    signal: Mutex<Signal>,
    remarks: Mutex<Vec<String>>,
}

struct Signal {
    /// The time of the last check.
    time: Instant,
    /// The exception that it raised.
    exception: Option<PyErr>,
}

impl Watch {
    pub(crate) fn new(py: Python<'_>, start: Instant) -> Self {
        Self {
            start,
            thread: thread::current().id(),
            line: Line::new(py),
            signal: Mutex::new(Signal { time: Instant::now(), exception: None }),
            remarks: Mutex::default(),
        }
    }

    /// Removes the line of progress, and passes remarks on.
    ///
    /// # Errors
    /// The exception of a signal, and a warning that is an error.
    pub(crate) fn end(self, py: Python<'_>) -> PyResult<()> {
        self.line.end(py);
        if let Some(exception) = lock(&self.signal).exception.take() {
            return Err(exception);
        }
        for remark in self.remarks.into_inner().unwrap_or_else(PoisonError::into_inner) {
            // Without control characters, of which zero is one.
            let text = CString::new(EscapedText(remark).to_string()).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        }
        Ok(())
    }
}

impl usm_plan::Watch for Watch {
    fn start(&self) -> Instant {
        self.start
    }

    fn is_interrupted(&self) -> bool {
        self.line.tick();
        let mut signal = lock(&self.signal);
        let is_due = signal.exception.is_none() && signal.time.elapsed() >= SIGNALS;
        if is_due && thread::current().id() == self.thread {
            signal.exception = Python::attach(|py| py.check_signals()).err();
            signal.time = Instant::now();
        }
        signal.exception.is_some()
    }

    fn wants_progress(&self) -> bool {
        self.line.is_shown()
    }

    fn progress(&self, progress: Progress) {
        self.line.note(progress);
    }

    fn remark(&self, remark: &str) {
        lock(&self.remarks).push(remark.to_owned());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
