//! Errors of a kernel.

use alloc::string::String;
use core::fmt;

use crate::kernel::Place;

/// The reason for refusing a kernel: the fault, its place and the correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The fault, and its correction.
    pub message: String,
    /// The place.
    pub place: Place,
    /// A second place of the fault, such as the condition around a barrier.
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
