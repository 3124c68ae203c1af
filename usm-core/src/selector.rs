//! Device selectors: SYCL's filter strings `backend:type:index`, each part optional, with a leading
//! `sycl:` for devices reached through the SYCL runtime.

use core::fmt;
use core::str::FromStr;

use crate::{BackendKind, DeviceInfo, DeviceType};

/// A parsed selector. The index counts among the devices that match the other parts.
///
/// ```
/// use usm_core::{BackendKind, DeviceType, Selector};
///
/// let selector: Selector = "sycl:opencl:cpu:0".parse()?;
/// assert!(selector.sycl);
/// assert_eq!(selector.backend, Some(BackendKind::OpenCl));
/// assert_eq!(selector.device_type, Some(DeviceType::Cpu));
/// assert_eq!(selector.to_string(), "sycl:opencl:cpu:0");
/// assert_eq!("opencl:cup".parse::<Selector>().unwrap_err().to_string(),
///            "selector part 2 is not a backend, a device type or an index in this place");
/// # Ok::<(), usm_core::SelectorError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selector {
    /// Through the SYCL runtime rather than natively.
    pub sycl: bool,
    /// Runtime; `None` for any.
    pub backend: Option<BackendKind>,
    /// Device type; `None` for any.
    pub device_type: Option<DeviceType>,
    /// Index among the matches; `None` for the first.
    pub index: Option<u32>,
}

/// Why a selector was refused; `part` counts the colon-separated parts from 1. `Debug` prints the
/// sentence too.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SelectorError {
    /// An empty part between two colons, or an empty string.
    Empty {
        /// The part.
        part: usize,
    },
    /// A word that is unknown or in the wrong place.
    Unexpected {
        /// The part.
        part: usize,
    },
    /// An index above `u32::MAX`.
    IndexRange {
        /// The part.
        part: usize,
    },
}

impl fmt::Display for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Empty { part } => write!(f, "selector part {part} is empty"),
            Self::Unexpected { part } => {
                write!(f, "selector part {part} is not a backend, a device type or an index in this place")
            }
            Self::IndexRange { part } => write!(f, "selector part {part} is an index above {}", u32::MAX),
        }
    }
}

impl fmt::Debug for SelectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for SelectorError {}

impl Selector {
    /// The selector that names exactly this device, as `usm devices` prints it.
    #[must_use]
    pub fn of(info: &DeviceInfo) -> Self {
        Self {
            sycl: info.backend == BackendKind::Sycl,
            backend: Some(info.selector_backend),
            device_type: Some(info.device_type),
            index: Some(info.index),
        }
    }

    /// Whether the device matches all parts but the index.
    #[must_use]
    pub fn matches(&self, info: &DeviceInfo) -> bool {
        self.sycl == (info.backend == BackendKind::Sycl)
            && self.backend.is_none_or(|backend| backend == info.selector_backend)
            && self.device_type.is_none_or(|device_type| device_type == info.device_type)
    }
}

/// The runtime of a word. SYCL's stands before that of the runtime below it, and is read apart.
fn backend_word(word: &str) -> Option<BackendKind> {
    BackendKind::ALL.iter().copied().find(|kind| *kind != BackendKind::Sycl && kind.name() == word)
}

fn type_word(word: &str) -> Option<DeviceType> {
    match word {
        "acc" => Some(DeviceType::Accelerator),
        _ => [DeviceType::Cpu, DeviceType::Gpu, DeviceType::Accelerator, DeviceType::Host]
            .into_iter()
            .find(|device_type| device_type.name() == word),
    }
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut selector = Self::default();
        for (part, word) in (1..).zip(text.split(':')) {
            if word.is_empty() {
                return Err(SelectorError::Empty { part });
            }
            let nothing_yet =
                selector.backend.is_none() && selector.device_type.is_none() && selector.index.is_none();
            if part == 1 && word == "sycl" {
                selector.sycl = true;
            } else if let (true, Some(backend)) = (nothing_yet, backend_word(word)) {
                selector.backend = Some(backend);
            } else if let (None, None, Some(device_type)) =
                (selector.device_type, selector.index, type_word(word))
            {
                selector.device_type = Some(device_type);
            } else if selector.index.is_none() && word.bytes().all(|byte| byte.is_ascii_digit()) {
                selector.index = Some(word.parse().map_err(|_| SelectorError::IndexRange { part })?);
            } else {
                return Err(SelectorError::Unexpected { part });
            }
        }
        Ok(selector)
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        let mut part = |f: &mut fmt::Formatter<'_>, text: &dyn fmt::Display| {
            let result = write!(f, "{separator}{text}");
            separator = ":";
            result
        };
        if self.sycl {
            part(f, &"sycl")?;
        }
        if let Some(backend) = self.backend {
            part(f, &backend)?;
        }
        if let Some(device_type) = self.device_type {
            part(f, &device_type)?;
        }
        if let Some(index) = self.index {
            part(f, &index)?;
        }
        Ok(())
    }
}
