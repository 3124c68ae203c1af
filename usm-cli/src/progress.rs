//! A progress display on standard error, only if that is a terminal.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};
use usm_plan::units;

use crate::escape::EscapedText;

/// A spinner, with a bar while a gap closes; the drop erases it. Draws nothing if standard error is
/// no terminal.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// The first gap in bytes.
    widest: AtomicU64,
}

/// Number of parts of the bar: fine enough for a terminal.
const PARTS: u64 = 1000;

impl Progress {
    pub(crate) fn start(message: impl Into<String>) -> Self {
        // indicatif draws to standard error and stays silent when that is no terminal.
        let bar = ProgressBar::new_spinner().with_message(EscapedText(message.into()).to_string());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        // indicatif starts a thread, and panics if the system refuses it. A first thread, which has
        // ended, shows that the system allows one.
        let thread = || std::thread::Builder::new().spawn(|| ());
        if std::io::stderr().is_terminal() && thread().is_ok_and(|handle| handle.join().is_ok()) {
            bar.enable_steady_tick(Duration::from_millis(120));
        }
        Self { bar, widest: AtomicU64::new(0) }
    }

    /// Replaces the message.
    pub(crate) fn set_message(&self, message: impl core::fmt::Display) {
        self.bar.set_message(EscapedText(message).to_string());
    }

    /// Shows the closed fraction of the first gap between `peak` and `bound` (bytes), and the
    /// remaining gap.
    pub(crate) fn show_gap(&self, peak: u64, bound: u64, nodes: u64) {
        let gap = peak.saturating_sub(bound);
        let widest = self.widest.fetch_max(gap, Ordering::Relaxed).max(gap);
        if self.bar.length().is_none() {
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{bar:24}] [{elapsed}]") {
                self.bar.set_style(style.progress_chars("=> "));
            }
            self.bar.set_length(PARTS);
        }
        // At most PARTS.
        let closed_parts = u128::from(PARTS) * u128::from(widest - gap) / u128::from(widest.max(1));
        self.bar.set_position(if gap == 0 { PARTS } else { closed_parts as u64 });
        let percent = 100.0 * gap as f64 / bound.max(1) as f64;
        let peak = units::shown(peak);
        self.set_message(format!("searching: peak {peak}, {percent:.2} % above the bound, {nodes} nodes"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
