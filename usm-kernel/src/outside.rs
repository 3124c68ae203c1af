//! Indices outside of their arrays, as checked code reports them.

use core::any::Any;
use core::fmt;

use usm_core::{Error, ErrorKind, ReportText, RunReport};

/// A place of a kernel where a launch may find something wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Name of the kernel.
    pub kernel: &'static str,
    /// `file:line:column`.
    pub place: &'static str,
    /// What is checked there.
    pub subject: Subject,
}

/// What checked code checks at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The index of the array with this name.
    Array(&'static str),
    /// The condition of an assertion, with its text.
    Assertion(&'static str),
}

impl ReportText for Place {
    fn write(&self, &[index, len]: &[u64; 2], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, place, subject } = self;
        write!(f, "kernel {kernel}, {place}: ")?;
        match subject {
            Subject::Array(name) => write!(f, "index {index} of `{name}`, which has {len} elements"),
            Subject::Assertion(text) => write!(f, "`assert {text}` is false"),
        }
    }
}

/// An index outside of its array, or an assertion that is false; nothing outside was touched.
///
/// A launch reports it as [`ErrorKind::Reported`]:
///
/// ```
/// # use usm_kernel::IndexOutside;
/// # fn handle(error: usm_core::Error) {
/// if let Some(outside) = IndexOutside::of(&error) {
///     eprintln!("index {} of {} elements", outside.index, outside.len);
/// }
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexOutside {
    /// Kernel, place in its source and array.
    pub at: &'static Place,
    /// The index, in elements.
    pub index: u64,
    /// Elements of the array.
    pub len: u64,
}

impl IndexOutside {
    /// The index that an error of a launch reports, if it reports one.
    #[must_use]
    pub fn of(error: &Error) -> Option<Self> {
        let ErrorKind::Reported(RunReport { text, values: [index, len] }) = error.kind else { return None };
        let at = (text as &dyn Any).downcast_ref()?;
        Some(Self { at, index, len })
    }
}

impl From<IndexOutside> for ErrorKind {
    fn from(IndexOutside { at, index, len }: IndexOutside) -> Self {
        Self::Reported(RunReport { text: at, values: [index, len] })
    }
}

impl fmt::Display for IndexOutside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.at.write(&[self.index, self.len], f)
    }
}
