//! What is wrong with a kernel.

use alloc::string::String;
use core::fmt;

use crate::kernel::Place;

/// Why a kernel was refused: what is wrong, where, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, and what to write instead.
    pub message: String,
    /// Where.
    pub place: Place,
    /// A second place that takes part, such as the condition around a barrier.
    pub other: Option<Place>,
}

impl Refusal {
    pub(crate) fn new(place: Place, message: impl Into<String>) -> Self {
        Self { message: message.into(), place, other: None }
    }

    pub(crate) fn with(place: Place, other: Place, message: impl Into<String>) -> Self {
        Self { message: message.into(), place, other: Some(other) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column, .. } = self.place;
        write!(f, "{line}:{column}: {}", self.message)?;
        if let Some(Place { line, column, .. }) = self.other {
            write!(f, " (see {line}:{column})")?;
        }
        Ok(())
    }
}

impl core::error::Error for Refusal {}
