//! Failures that the code of an operation reports, in the words of whoever wrote the code.

use core::any::Any;
use core::fmt;
use core::panic::RefUnwindSafe;

/// What a failure is, with its place. The crate that writes the code knows the words.
pub trait ReportText: Any + Send + Sync + RefUnwindSafe {
    /// Writes one sentence about these values.
    ///
    /// # Errors
    /// Those of the formatter.
    fn write(&self, values: &[u64; 2], f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// A failure that the code of an operation reports: [`ErrorKind::Reported`](crate::ErrorKind).
#[derive(Clone, Copy)]
pub struct RunReport {
    /// What failed, and where.
    pub text: &'static dyn ReportText,
    /// The numbers of the sentence.
    pub values: [u64; 2],
}

impl PartialEq for RunReport {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::addr_eq(self.text, other.text) && self.values == other.values
    }
}

impl Eq for RunReport {}

impl fmt::Display for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.text.write(&self.values, f)
    }
}

impl fmt::Debug for RunReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
