//! Why no device was opened.

use core::fmt;

use usm_core::SelectorError;

use crate::Absence;

/// Why a selector gave no context. `Debug` prints the sentence, for
/// `fn main() -> Result<(), usm::OpenError>`.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenError {
    /// The text is no selector.
    Selector {
        /// The text.
        text: String,
        /// Its first part that is wrong.
        error: SelectorError,
    },
    /// No device matches.
    NoDevice {
        /// The selector; empty where none was given.
        text: String,
        /// Every runtime that could have had the device, in the order in which they were asked.
        attempts: Vec<Attempt>,
        /// Selector of a device that matches, of a runtime that is used only where it is named and
        /// was opened already.
        hidden_runtime: Option<String>,
    },
    /// The device was found, and its runtime made no context.
    Context {
        /// The device's selector.
        text: String,
        /// The runtime's error.
        error: usm_core::Error,
    },
    /// The environment variable `USM_DEVICE` is not UTF-8 text.
    NotUnicode,
    /// A name for a runtime that a selector cannot say, or that is taken.
    Name {
        /// The name.
        name: String,
    },
}

/// A runtime that was asked for a device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The runtime's name in selectors.
    pub runtime: String,
    /// Why it does not have the device.
    pub reason: Reason,
}

/// Why a runtime does not have the requested device.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The runtime cannot be used.
    Absent(Absence),
    /// The runtime has other devices, or none.
    NoSuchDevice {
        /// Selectors of the devices that it has.
        has: Vec<String>,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(absence) => absence.fmt(f),
            Self::NoSuchDevice { has } if has.is_empty() => f.write_str("no such device, it has none"),
            Self::NoSuchDevice { has } => write!(f, "no such device, it has {}", has.join(", ")),
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Selector { text, error } => write!(f, "device selector {text:?}: {error}"),
            Self::NoDevice { text, attempts, hidden_runtime } => {
                if text.is_empty() {
                    f.write_str("no device")?;
                } else {
                    write!(f, "no device matches {text:?}")?;
                }
                let mut before = ": ";
                for Attempt { runtime, reason } in attempts {
                    write!(f, "{before}{runtime}: {reason}")?;
                    before = "; ";
                }
                hidden_runtime
                    .iter()
                    .try_for_each(|name| write!(f, "{before}{name} is used only where it is named"))
            }
            Self::Context { text, error } => write!(f, "{text:?}: {error}"),
            Self::NotUnicode => f.write_str("USM_DEVICE is not UTF-8 text"),
            Self::Name { name } => {
                write!(f, "{name:?} cannot name a runtime: selectors have that word, or could not say it")
            }
        }
    }
}

impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Selector { error, .. } => Some(error),
            Self::Context { error, .. } => Some(error),
            _ => None,
        }
    }
}
