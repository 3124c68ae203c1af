//! The runtimes, and the requirements of their processes.

use std::ffi::OsString;
use std::path::PathBuf;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::backend::{Dyn, DynDevice};
use usm_core::{Backend, Result};
use usm_cuda::Cuda;
use usm_level_zero::LevelZero;
use usm_opencl::OpenCl;
use usm_sycl::Dpctl;

type Variables = Vec<(&'static str, OsString)>;

pub(crate) struct Runtime {
    pub(crate) name: &'static str,
    /// Its name in `USM_REQUIRE`.
    pub(crate) required_as: &'static str,
    /// The environment of its process, or the missing part.
    pub(crate) variables: fn() -> Result<Variables, String>,
    pub(crate) device: fn() -> DynDevice,
    pub(crate) never_answers: bool,
}

const fn on(
    name: &'static str,
    required_as: &'static str,
    variables: fn() -> Result<Variables, String>,
    device: fn() -> DynDevice,
) -> Runtime {
    Runtime { name, required_as, variables, device, never_answers: false }
}

pub(crate) const RUNTIMES: &[Runtime] = &[
    on("host", "", nothing, || first(HostHeap::new())),
    on("mock", "", nothing, || first(Mock::new(Progress::OnWait))),
    Runtime {
        never_answers: true,
        ..on("mock_that_never_answers", "", nothing, || first(Mock::new(Progress::Manual)))
    },
    on("opencl", "opencl", || if_opened(OpenCl::load()), || first(OpenCl::load().expect("OpenCL"))),
    on("sycl", "sycl", || if_opened(Dpctl::load()), || first(Dpctl::load().expect("dpctl"))),
    on("level_zero", "level_zero", level_zero, || first(LevelZero::load().expect("the loader"))),
    on("cuda_on_host", "cuda_on_host", cuda, || first(Cuda::load().expect("the driver"))),
    on("hip_on_host", "cuda_on_host", cuda, || first(Cuda::load_hip().expect("the driver"))),
];

fn first<B: Backend + Send + Sync + 'static>(backend: B) -> DynDevice {
    Dyn::new(backend).devices().expect("devices").into_iter().next().expect("a device")
}

fn nothing() -> Result<Variables, String> {
    Ok(Vec::new())
}

fn if_opened<B>(opened: Result<B>) -> Result<Variables, String> {
    opened.map(|_| Vec::new()).map_err(|error| error.to_string())
}

fn path(variable: &str, hint: &str) -> Result<PathBuf, String> {
    let named = std::env::var_os(variable).map(PathBuf::from);
    let path = named.ok_or_else(|| format!("{variable} not set ({hint})"))?;
    if path.exists() { Ok(path) } else { Err(format!("{} not found ({hint})", path.display())) }
}

/// The driver that executes on the host, behind the unmodified loader; work starts as late as
/// possible.
fn level_zero() -> Result<Variables, String> {
    let folder = path("USM_DEBIAN_LIBRARIES", "cargo xtask setup")?;
    let driver = path("USM_LEVEL_ZERO_DRIVER", "cargo build -p usm-level-zero-driver")?;
    Ok(vec![
        ("USM_LEVEL_ZERO_LIBRARY", folder.join("libze_loader.so.1").into()),
        ("ZE_ENABLE_ALT_DRIVERS", driver.into()),
        ("LD_LIBRARY_PATH", folder.into()),
        ("USM_ZE_LAZY", "1".into()),
    ])
}

/// The driver that executes on the host, in place of NVIDIA's and AMD's; work starts when its state
/// is queried.
fn cuda() -> Result<Variables, String> {
    let driver = path("USM_CUDA_DRIVER", "cargo build -p usm-cuda-driver")?;
    Ok(vec![
        ("USM_CUDA_LIBRARY", driver.clone().into()),
        ("USM_HIP_LIBRARY", driver.into()),
        ("USM_CUDA_SETTINGS", "late".into()),
    ])
}
