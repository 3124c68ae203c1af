//! The runtimes that this build knows, and the devices that selectors name.

use core::fmt;

use usm_core::backend::host::HostHeap;
use usm_core::backend::{Dyn, DynDevice};
use usm_core::{BackendKind, Context, DeviceInfo, ErrorKind, Selector};

use crate::error::{Error, Result};

/// Environment variable with the selector that is used when none is given.
pub(crate) const VARIABLE: &str = "USM_DEVICE";

/// One runtime, asked for its devices.
pub(crate) struct Runtime {
    /// Name as in selectors.
    pub(crate) name: &'static str,
    /// Whether this build can use it at all.
    pub(crate) compiled: bool,
    /// The library that was opened; none for the host.
    pub(crate) library: Option<String>,
    /// Its devices, or why there are none.
    pub(crate) devices: Result<Vec<DynDevice>, Absence>,
    backend: Option<Dyn>,
}

/// Lets SYCL find the OpenCL CPU runtime that pip installed beside it, which pip does not register. To be called first in `main`.
pub(crate) fn prepare() {
    #[cfg(feature = "dpctl")]
    if let Some(path) = usm_core::backend::dpctl::find_library() {
        // SAFETY: the program has only this thread yet.
        let _ = unsafe { usm_core::backend::dpctl::use_opencl_runtime_beside(&path) };
    }
}

/// Why a runtime cannot be used. Shown without its name, which stands beside it already.
#[derive(Clone, Copy)]
pub(crate) enum Absence {
    NotInThisBuild,
    Failed(usm_core::Error),
}

impl Absence {
    /// Without what was tried and what the system answered.
    pub(crate) fn in_short(self) -> String {
        match self {
            Self::Failed(usm_core::Error { kind: ErrorKind::LibraryNotFound { library, .. }, .. }) => {
                format!("library {library} could not be opened")
            }
            other => other.to_string(),
        }
    }
}

impl From<usm_core::Error> for Absence {
    fn from(error: usm_core::Error) -> Self {
        Self::Failed(error)
    }
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInThisBuild => f.write_str("not in this build"),
            Self::Failed(usm_core::Error { kind, native: Some(code), .. }) => {
                write!(f, "{kind} (native code {code})")
            }
            Self::Failed(error) => error.kind.fmt(f),
        }
    }
}

/// An opened backend and the file of its library.
type Opened = Result<(Dyn, Option<String>), Absence>;

/// How a runtime is opened; None: not in this build.
type Open = Option<fn() -> Opened>;

/// The runtimes in the order in which a default device is looked for.
const RUNTIMES: [(BackendKind, Open); 6] = [
    (BackendKind::Sycl, SYCL),
    (BackendKind::LevelZero, LEVEL_ZERO),
    (BackendKind::Cuda, CUDA),
    (BackendKind::OpenCl, OPENCL),
    (BackendKind::Hip, HIP),
    (BackendKind::Host, Some(|| Ok((Dyn::new(HostHeap::new()), None)))),
];

#[cfg(feature = "dpctl")]
const SYCL: Open = Some(|| {
    use usm_core::backend::dpctl::Dpctl;
    let backend = Dpctl::load()?;
    let path = backend.path().display().to_string();
    Ok((Dyn::new(backend), Some(path)))
});
#[cfg(not(feature = "dpctl"))]
const SYCL: Open = None;

#[cfg(feature = "level-zero")]
const LEVEL_ZERO: Open = Some(|| {
    use usm_core::backend::level_zero::LevelZero;
    let backend = LevelZero::load()?;
    let path = backend.path().display().to_string();
    Ok((Dyn::new(backend), Some(path)))
});
#[cfg(not(feature = "level-zero"))]
const LEVEL_ZERO: Open = None;

#[cfg(feature = "cuda")]
const CUDA: Open = Some(|| {
    use usm_core::backend::cuda::Cuda;
    let backend = Cuda::load()?;
    let path = backend.path().display().to_string();
    Ok((Dyn::new(backend), Some(path)))
});
#[cfg(not(feature = "cuda"))]
const CUDA: Open = None;

#[cfg(feature = "cuda")]
const HIP: Open = Some(|| {
    use usm_core::backend::cuda::Cuda;
    let backend = Cuda::load_hip()?;
    let path = backend.path().display().to_string();
    Ok((Dyn::new(backend), Some(path)))
});
#[cfg(not(feature = "cuda"))]
const HIP: Open = None;

#[cfg(feature = "opencl")]
const OPENCL: Open = Some(|| {
    use usm_core::backend::opencl::OpenCl;
    let backend = OpenCl::load();
    // pip installs a loader of OpenCL beside SYCL, where only SYCL finds it. A file that the user names is the only one that counts.
    #[cfg(feature = "dpctl")]
    let backend = backend.or_else(|error| {
        if std::env::var_os("USM_OPENCL_LIBRARY").is_some_and(|named| !named.is_empty()) {
            return Err(error);
        }
        let sycl = usm_core::backend::dpctl::find_library();
        let files = sycl.iter().flat_map(|path| path.ancestors()).map(|folder| folder.join("libOpenCL.so.1"));
        files.filter(|file| file.is_file()).find_map(|file| OpenCl::open(&file).ok()).ok_or(error)
    });
    let backend = backend?;
    let path = backend.path().display().to_string();
    Ok((Dyn::new(backend), Some(path)))
});
#[cfg(not(feature = "opencl"))]
const OPENCL: Open = None;

impl Runtime {
    /// Whether its library was opened; it may still have no devices, or fail to list them.
    pub(crate) fn found(&self) -> bool {
        self.backend.is_some()
    }

    fn ask(kind: BackendKind, open: Open) -> Self {
        let absent = || Err(Absence::NotInThisBuild);
        let (name, compiled) = (kind.name(), open.is_some());
        match open.map_or_else(absent, |open| open()) {
            Ok((backend, library)) => {
                let devices = backend.devices().map_err(Absence::from);
                Self { name, compiled, library, devices, backend: Some(backend) }
            }
            Err(absence) => Self { name, compiled, library: None, devices: Err(absence), backend: None },
        }
    }
}

/// All runtimes.
pub(crate) fn all() -> Vec<Runtime> {
    RUNTIMES.into_iter().map(|(kind, open)| Runtime::ask(kind, open)).collect()
}

/// A context over the device that `USM_DEVICE` names, or `fallback` when it is unset or empty.
pub(crate) fn from_environment(fallback: &str) -> Result<Context<Dyn>> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.is_empty() => select(&text).map_err(|error| error.in_field(VARIABLE)),
        Err(std::env::VarError::NotUnicode(_)) => Err(Error::bad("not UTF-8 text").in_field(VARIABLE)),
        _ => select(fallback),
    }
}

/// A context over the device that a selector names. Only runtimes that can answer it are opened.
pub(crate) fn select(text: &str) -> Result<Context<Dyn>> {
    let selector: Selector = text.parse().map_err(|error| Error::bad(format!("{text:?}: {error}")))?;
    let wanted = |kind: BackendKind| match selector.backend {
        _ if selector.sycl => kind == BackendKind::Sycl,
        Some(backend) => kind == backend,
        // HIP has never run on a GPU: who wants it says so.
        None => !matches!(kind, BackendKind::Sycl | BackendKind::Hip),
    };
    let asked: Vec<Runtime> = RUNTIMES
        .into_iter()
        .filter(|(kind, _)| wanted(*kind))
        .map(|(kind, open)| Runtime::ask(kind, open))
        .collect();
    let mut known = Vec::new();
    let mut matching = Vec::new();
    for runtime in &asked {
        match (&runtime.devices, &runtime.backend) {
            (Ok(devices), Some(backend)) => {
                known.extend(devices.iter().map(|device| name(&device.info())));
                let here = devices.iter().filter(|device| selector.matches(&device.info()));
                matching.extend(here.map(|device| (backend, device)));
            }
            (Err(reason), _) => known.push(format!("{}: {reason}", runtime.name)),
            (Ok(_), None) => {}
        }
    }
    let index = selector.index.unwrap_or(0) as usize;
    let Some((backend, device)) = matching.get(index) else {
        let reason = match matching.len() {
            0 => "no device matches".to_owned(),
            count => format!("index {index}, but {count} devices match"),
        };
        let hidden = named_only(&selector)
            .map(|hip| format!("; {hip} is used only where it is named"))
            .unwrap_or_default();
        return Err(Error::bad(format!("{text:?}: {reason}; found were {}{hidden}", known.join(", "))));
    };
    Context::new(*backend, *device).map_err(|error| Error::unable(format!("{text:?}: {error}")))
}

/// The first device that a selector would have matched, were it not HIP's.
fn named_only(selector: &Selector) -> Option<String> {
    if selector.sycl || selector.backend.is_some() {
        return None;
    }
    let devices = Runtime::ask(BackendKind::Hip, HIP).devices.ok()?;
    devices.iter().map(|device| device.info()).find(|info| selector.matches(info)).map(|info| name(&info))
}

/// The selector that names exactly this device.
pub(crate) fn name(info: &DeviceInfo) -> String {
    Selector::of(info).to_string()
}
