//! A sign of life on standard error, only when a person looks at it.

use core::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A spinner that is wiped away when dropped; nothing at all when standard error is no terminal.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn start(message: impl Into<String>) -> Self {
        // indicatif draws to standard error and stays silent when that is no terminal.
        let bar = ProgressBar::new_spinner().with_message(message.into());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(120));
        Self(bar)
    }

    /// Replaces the message.
    pub(crate) fn say(&self, message: String) {
        self.0.set_message(message);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
