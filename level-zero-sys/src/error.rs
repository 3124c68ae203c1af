//! What can go wrong below every call.

use core::fmt;

use crate::result::ze_result_t;
use crate::version::ze_api_version_t;

/// Why a call through the table did not do what it was asked.
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
        /// Its answer.
        result: ze_result_t,
    },
    /// The driver speaks a version of the interface that this crate does not know.
    UnsupportedVersion {
        /// What the driver said.
        found: ze_api_version_t,
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
            Self::UnsupportedVersion { found } => write!(
                formatter,
                "the Level Zero driver has version {}.{}; {}.{} or a later minor version is needed",
                found.major(),
                found.minor(),
                ze_api_version_t::MINIMUM.major(),
                ze_api_version_t::MINIMUM.minor(),
            ),
        }
    }
}

impl core::error::Error for Error {}
