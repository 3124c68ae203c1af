//! Errors of all calls.

use core::fmt;

use crate::result::ze_result_t;
use crate::version::ze_api_version_t;

/// The reason why a call through the table failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The library does not export this function.
    MissingSymbol {
        /// The function.
        name: &'static str,
    },
    /// The function answered a failure code.
    Call {
        /// The function.
        function: &'static str,
        /// Its result code.
        result: ze_result_t,
    },
    /// This crate does not support the driver's version of the interface.
    UnsupportedVersion {
        /// The driver's version.
        version: ze_api_version_t,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingSymbol { name } => {
                write!(formatter, "the Level Zero library does not export {name}")
            }
            Self::Call { function, result } => {
                write!(formatter, "{function} answered {result:?} ({:#x})", result.0)
            }
            Self::UnsupportedVersion { version } => write!(
                formatter,
                "the Level Zero driver has version {}.{}; {}.{} or a later minor version is needed",
                version.major(),
                version.minor(),
                ze_api_version_t::MINIMUM.major(),
                ze_api_version_t::MINIMUM.minor(),
            ),
        }
    }
}

impl core::error::Error for Error {}
