//! The reasons why an operation on arrays was refused.

use std::fmt;

use usm_core::ErrorKind;

use crate::axes::Axes;

/// The result of an operation on arrays.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on an array was refused, or failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The destination is read-only.
    ReadOnly,
    /// The process cannot allocate this many bytes.
    NoMemory(usize),
    /// A shape cannot be broadcast to another: extents are equal or 1 from the last axis on.
    Broadcast {
        /// The extents of the array.
        from: Axes,
        /// The extents that were asked for.
        to: Axes,
    },
    /// The elements cannot be seen in another shape.
    Reshape {
        /// The extents of the array.
        from: Axes,
        /// The extents that were asked for.
        to: Axes,
        /// What does not fit.
        reason: &'static str,
    },
    /// An index that the axis does not have.
    Index {
        /// Number of the axis.
        axis: usize,
        /// The index that was asked for.
        index: isize,
        /// Elements of the axis.
        extent: usize,
    },
    /// An axis that the array does not have.
    Axis {
        /// Number of the axis that was asked for.
        axis: usize,
        /// Number of dimensions.
        ndim: usize,
    },
    /// A step of 0 between several elements.
    Step {
        /// Number of the axis.
        axis: usize,
        /// Number of elements.
        count: usize,
    },
    /// A number of values that is not the number of elements.
    Length {
        /// Number of elements.
        expected: usize,
        /// Number of values.
        found: usize,
    },
    /// Memory, a queue or a runtime refused.
    Core(usm_core::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("the memory is read-only; a copy of it can be written"),
            Self::NoMemory(size) => write!(f, "the process has no memory for {size} bytes"),
            Self::Broadcast { from, to } => write!(f, "shape {from:?} cannot be broadcast to {to:?}"),
            Self::Reshape { from, to, reason } => write!(f, "cannot reshape {from:?} to {to:?}: {reason}"),
            Self::Index { axis, index, extent } => {
                write!(f, "index {index} is out of bounds for axis {axis} of {extent} elements")
            }
            Self::Axis { axis, ndim } => write!(f, "axis {axis} of an array of {ndim} dimensions"),
            Self::Step { axis, count } => write!(f, "a step of 0 for {count} elements of axis {axis}"),
            Self::Length { expected, found } => write!(f, "{found} values for {expected} elements"),
            Self::Core(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Core(error) => Some(error),
            _ => None,
        }
    }
}

impl From<usm_core::Error> for Error {
    fn from(error: usm_core::Error) -> Self {
        Self::Core(error)
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Self {
        Self::Core(kind.into())
    }
}
