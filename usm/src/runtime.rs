//! One runtime: how it is opened, and what came of that.

use core::fmt;
use std::path::{Path, PathBuf};

use usm_core::backend::host::HostHeap;
use usm_core::backend::{Dyn, DynDevice};
use usm_core::ends::ForkOnce;
use usm_core::{BackendKind, ErrorKind};

/// A runtime of this build, or why it is none. Its library is opened when one of its devices is
/// first asked for.
pub struct Runtime {
    name: String,
    /// `None` for a backend of the caller's.
    pub(crate) kind: Option<BackendKind>,
    /// `None` when it is not in this build.
    pub(crate) open: Option<Box<Open>>,
    state: ForkOnce<State>,
}

pub(crate) type Open = dyn Fn() -> Result<OpenRuntime, Absence> + Send + Sync;

/// A backend that was opened.
#[derive(Debug)]
pub struct OpenRuntime {
    /// The backend.
    pub backend: Dyn,
    /// The file of its library; `None` for a backend that needs no library.
    pub library: Option<PathBuf>,
}

impl OpenRuntime {
    /// A backend, and the file of its library where it has one.
    #[must_use]
    pub fn new(backend: Dyn, library: Option<&Path>) -> Self {
        Self { backend, library: library.map(Path::to_path_buf) }
    }
}

/// Why a runtime cannot be used. Shown without its name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Absence {
    /// The feature of that name is off.
    NotInThisBuild,
    /// Its library, a function in it, or the list of its devices is missing: the error says which.
    Failed(usm_core::Error),
    /// The result of the function that opens the runtime.
    Other(String),
}

struct State {
    backend: Option<Dyn>,
    library: Option<PathBuf>,
    devices: Result<Vec<DynDevice>, Absence>,
}

impl Runtime {
    pub(crate) fn new(name: String, kind: Option<BackendKind>, open: Option<Box<Open>>) -> Self {
        Self { name, kind, open, state: ForkOnce::new() }
    }

    /// The runtime of this kind, opened in the usual way, where it is in this build.
    pub(crate) fn of(kind: BackendKind) -> Self {
        Self::new(kind.name().to_owned(), Some(kind), opener(kind))
    }

    /// The name in selectors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which of our runtimes it is; `None` for a backend of the caller's.
    #[must_use]
    pub fn kind(&self) -> Option<BackendKind> {
        self.kind
    }

    /// Whether this build can use it at all.
    #[must_use]
    pub fn is_compiled(&self) -> bool {
        self.open.is_some()
    }

    /// Whether it was asked for its devices already. Every other question but those for its name
    /// asks it.
    #[must_use]
    pub fn is_opened(&self) -> bool {
        self.state.get().is_some()
    }

    /// The backend, if its library was opened. It may still have no devices, or fail to list them.
    #[must_use]
    pub fn backend(&self) -> Option<&Dyn> {
        self.state().backend.as_ref()
    }

    /// The file that was opened; `None` where none was, or none is needed.
    #[must_use]
    pub fn library(&self) -> Option<&Path> {
        self.state().library.as_deref()
    }

    /// Its devices in its own order.
    ///
    /// # Errors
    /// Why it cannot be used. [`ErrorKind::Forked`] in a child that was forked while a thread of
    /// its parent opened the runtime, or after that.
    pub fn devices(&self) -> Result<&[DynDevice], &Absence> {
        self.state().devices.as_deref()
    }

    fn state(&self) -> &State {
        // A runtime refuses a child that was forked while it was opened; the host does not.
        self.state.get_or_make(|| {
            let result = self.open.as_ref().map_or(Err(Absence::NotInThisBuild), |open| open());
            match result {
                Ok(OpenRuntime { backend, library }) => {
                    let devices = backend.devices().map_err(Absence::from);
                    State { backend: Some(backend), library, devices }
                }
                Err(absence) => State { backend: None, library: None, devices: Err(absence) },
            }
        })
    }
}

impl fmt::Debug for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runtime").field("name", &self.name).field("compiled", &self.is_compiled()).finish()
    }
}

impl From<usm_core::Error> for Absence {
    fn from(error: usm_core::Error) -> Self {
        Self::Failed(error)
    }
}

impl Absence {
    /// The first half of the message, without the files that were tried and the system's reason.
    #[must_use]
    pub fn in_short(&self) -> String {
        match self {
            Self::Failed(usm_core::Error { kind: ErrorKind::LibraryNotFound { library, .. }, .. }) => {
                format!("library {library} could not be opened")
            }
            other => other.to_string(),
        }
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
            Self::Other(reason) => f.write_str(reason),
        }
    }
}

impl core::error::Error for Absence {}

/// How a runtime is opened; `None`: not in this build. The only place that names the types of
/// runtimes.
fn opener(kind: BackendKind) -> Option<Box<Open>> {
    let open: fn() -> Result<OpenRuntime, Absence> = match kind {
        BackendKind::Host => || Ok(OpenRuntime::new(Dyn::new(HostHeap::new()), None)),
        #[cfg(feature = "sycl")]
        BackendKind::Sycl => || {
            let backend = usm_sycl::Dpctl::load()?;
            Ok(OpenRuntime::new(Dyn::new(backend), Some(backend.path())))
        },
        #[cfg(feature = "level-zero")]
        BackendKind::LevelZero => || {
            let backend = usm_level_zero::LevelZero::load()?;
            Ok(OpenRuntime::new(Dyn::new(backend), Some(backend.path())))
        },
        #[cfg(feature = "cuda")]
        BackendKind::Cuda => || {
            let backend = usm_cuda::Cuda::load()?;
            Ok(OpenRuntime::new(Dyn::new(backend), Some(backend.path())))
        },
        #[cfg(feature = "hip")]
        BackendKind::Hip => || {
            let backend = usm_cuda::Cuda::load_hip()?;
            Ok(OpenRuntime::new(Dyn::new(backend), Some(backend.path())))
        },
        #[cfg(feature = "opencl")]
        BackendKind::OpenCl => || {
            let backend = open_cl()?;
            Ok(OpenRuntime::new(Dyn::new(backend), Some(backend.path())))
        },
        _ => return None,
    };
    Some(Box::new(open))
}

/// pip installs a loader of OpenCL beside Intel's runtime and SYCL, where the system does not look.
/// A loader beside a runtime that `OCL_ICD_FILENAMES` names comes first: it reads that variable,
/// and others, such as Debian's, do not. A file that the user names is the only one that counts.
#[cfg(feature = "opencl")]
fn open_cl() -> usm_core::Result<usm_opencl::OpenCl> {
    use usm_opencl::OpenCl;

    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let first_of = |files: Vec<PathBuf>| {
        files.iter().filter(|file| file.is_file()).find_map(|file| OpenCl::open(file).ok())
    };
    if set("USM_OPENCL_LIBRARY").is_some() {
        return OpenCl::load();
    }
    // The Python package sets it.
    let runtimes = set("OCL_ICD_FILENAMES").unwrap_or_default();
    if let Some(backend) = first_of(loaders_beside(&runtimes)) {
        return Ok(backend);
    }
    let beside_sycl = || {
        #[cfg(feature = "sycl")]
        let library = usm_sycl::find_library();
        #[cfg(not(feature = "sycl"))]
        let library: Option<PathBuf> = None;
        let folders = library.iter().flat_map(|path| path.ancestors());
        first_of(folders.map(|folder| folder.join(LOADER)).collect())
    };
    OpenCl::load().or_else(|error| beside_sycl().ok_or(error))
}

/// OpenCL's loader, where pip installs one.
#[cfg(feature = "opencl")]
const LOADER: &str = "libOpenCL.so.1";

/// The places of a loader beside each of the runtimes in a list of files. A runtime without a
/// folder has none.
#[cfg(feature = "opencl")]
fn loaders_beside(runtimes: &std::ffi::OsStr) -> Vec<PathBuf> {
    let files = std::env::split_paths(runtimes);
    files.filter(|file| file.is_absolute()).map(|file| file.with_file_name(LOADER)).collect()
}

#[cfg(all(test, feature = "opencl"))]
mod tests {
    use super::*;

    #[test]
    fn a_loader_is_sought_beside_each_runtime_with_a_folder() {
        let here = std::env::temp_dir();
        let list = [here.join("a/libintelocl.so"), "libother.so".into(), here.join("b/one.so")];
        let found = loaders_beside(&std::env::join_paths(list).unwrap());
        assert_eq!(found, [here.join("a").join(LOADER), here.join("b").join(LOADER)]);
        assert!(loaders_beside("".as_ref()).is_empty());
    }
}
