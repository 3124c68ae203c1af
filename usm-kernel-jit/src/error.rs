//! Errors of compilation and of launches.

use core::fmt;

use usm_kernel::BuildError;

/// Why a text is no kernel: a message with `file:line:column` in front, as far as it has a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError(pub(crate) String);

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for CompileError {}

/// Why a launch did not run to its end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum LaunchError {
    /// Range or arguments do not fit the kernel, or a condition is not proven; nothing ran.
    Refused(String),
    /// An index was outside of its array. Items may have stored their results before.
    Outside {
        /// `file:line:column` of the access.
        place: String,
        /// The array's name.
        array: String,
        /// The index, in elements.
        index: i64,
        /// Elements of the array.
        len: u64,
    },
    /// A fault that [`check`](crate::Launch::check) found; nothing changed.
    Fault(String),
    /// The device takes no code of the kernel; nothing ran.
    Build(BuildError),
    /// The device refused the launch; nothing ran.
    Launch(usm_kernel::LaunchError),
    /// The launch was submitted and failed, or an argument could not be read.
    Device(usm_core::Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(message) | Self::Fault(message) => f.write_str(message),
            Self::Outside { place, array, index, len } => {
                write!(f, "{place}: index {index} of `{array}` is outside; it has {len} elements there")
            }
            Self::Build(error) => error.fmt(f),
            Self::Launch(error) => error.fmt(f),
            Self::Device(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Refused(_) | Self::Fault(_) | Self::Outside { .. } => None,
            Self::Build(error) => Some(error),
            Self::Launch(error) => Some(error),
            Self::Device(error) => Some(error),
        }
    }
}

impl From<BuildError> for LaunchError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl From<usm_kernel::LaunchError> for LaunchError {
    fn from(error: usm_kernel::LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<usm_core::Error> for LaunchError {
    fn from(error: usm_core::Error) -> Self {
        Self::Device(error)
    }
}
