//! Paths: the workspace, the set-up folder, cargo's programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{nrt, planner};

/// The workspace root.
pub(crate) fn root() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    folder.parent().unwrap_or(folder).to_path_buf()
}

/// Cargo's output folder.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => root().join(path),
        None => root().join("target"),
    }
}

/// The cargo that runs xtask.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The set-up folder: `USM_SETUP_DIR`, by default `.setup` in the workspace root. Never committed.
pub(crate) fn setup_dir() -> PathBuf {
    match std::env::var_os("USM_SETUP_DIR") {
        Some(path) => std::path::absolute(&path).unwrap_or_else(|_| path.into()),
        None => root().join(".setup"),
    }
}

/// The virtual environment of the tests.
pub(crate) fn venv() -> PathBuf {
    setup_dir().join("venv")
}

/// The virtual environment's interpreter.
pub(crate) fn venv_python() -> PathBuf {
    if cfg!(windows) { venv().join("Scripts").join("python.exe") } else { venv().join("bin").join("python") }
}

/// The folder of downloaded ONNX models, flat.
pub(crate) fn models() -> PathBuf {
    setup_dir().join("models")
}

/// The folder of the older NumPy.
pub(crate) fn numpy_1() -> PathBuf {
    setup_dir().join("numpy-1")
}

/// The folder of unpacked Debian packages.
pub(crate) fn debian() -> PathBuf {
    setup_dir().join("debian")
}

/// Intel's OpenCL CPU runtime inside the virtual environment.
pub(crate) fn opencl_cpu_library() -> PathBuf {
    if cfg!(windows) {
        venv().join("Library").join("bin").join("intelocl64_emu.dll")
    } else {
        venv().join("lib").join("libintelocl.so")
    }
}

/// The C library of dpctl inside the virtual environment.
pub(crate) fn dpctl_library() -> Option<PathBuf> {
    in_site_packages("dpctl/libDPCTLSyclInterface.so")
}

/// A file of a Python package, if it is installed.
fn in_site_packages(file: &str) -> Option<PathBuf> {
    let versions = std::fs::read_dir(venv().join("lib")).ok()?;
    versions
        .filter_map(|entry| Some(entry.ok()?.path().join("site-packages").join(file)))
        .find(|file| file.exists())
}

/// Zig's program, whose linker knows the symbols of older C libraries.
pub(crate) fn zig() -> Option<PathBuf> {
    in_site_packages("ziglang/zig")
}

/// The environment with the wheel and NumPy alone.
pub(crate) fn bare() -> PathBuf {
    setup_dir().join("bare")
}

/// NVRTC inside the virtual environment.
fn nvrtc_library() -> Option<PathBuf> {
    in_site_packages("nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2")
}

/// The folders of runtimes that open parts of themselves by name, for the loader's search path.
/// They look beside themselves. Under a sanitizer, whose `dlopen` makes the call, the loader looks
/// beside the test program instead.
pub(crate) fn runtime_folders() -> OsString {
    let ours = [Some(opencl_cpu_library()), nvrtc_library()];
    let ours = ours.into_iter().flatten().filter(|library| library.exists());
    let mut folders: Vec<PathBuf> =
        ours.filter_map(|library| Some(library.parent()?.to_path_buf())).collect();
    if let Some(path) = std::env::var_os("LD_LIBRARY_PATH") {
        folders.extend(std::env::split_paths(&path));
    }
    std::env::join_paths(folders).unwrap_or_default()
}

/// The tests' drivers, which execute on the host: their cargo packages, and the variables for their
/// files.
pub(crate) const DRIVERS: [(&str, &str); 2] =
    [("usm-level-zero-driver", "USM_LEVEL_ZERO_DRIVER"), ("usm-cuda-driver", "USM_CUDA_DRIVER")];

/// The library of a test driver in cargo's output folder.
pub(crate) fn driver(target: &Path, package: &str) -> PathBuf {
    library_of(target, &package.replace('-', "_"))
}

/// The shared library that cargo made of a library target, without optimisation.
pub(crate) fn library_of(target: &Path, name: &str) -> PathBuf {
    let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    target.join("debug").join(format!("{prefix}{name}{suffix}"))
}

/// The parts that tests require in CI, by their names in the tests.
const REQUIRED: &str = "opencl,sycl,level_zero,cuda_on_host,nvrtc,hip,numpy,numba,cc,models,corpora";

/// The set-up's variables for every test and benchmark.
///
/// The OpenCL runtime's wheel has an ICD file with an unrelocated path, so this names the library.
pub(crate) fn variables() -> Vec<(&'static str, OsString)> {
    let mut variables = Vec::new();
    if let Some(factor) = EFFORT.get().filter(|_| std::env::var_os("USM_EFFORT").is_none()) {
        variables.push(("USM_EFFORT", factor.to_string().into()));
    }
    if opencl_cpu_library().exists() && std::env::var_os("OCL_ICD_FILENAMES").is_none() {
        variables.push(("OCL_ICD_FILENAMES", opencl_cpu_library().into_os_string()));
    }
    if let Some(library) = dpctl_library() {
        variables.push(("USM_DPCTL_LIBRARY", library.into_os_string()));
    }
    let loader = venv().join("lib/libOpenCL.so.1");
    if loader.exists() && std::env::var_os("USM_OPENCL_LIBRARY").is_none() {
        variables.push(("USM_OPENCL_LIBRARY", loader.into_os_string()));
    }
    if let Some(library) = nvrtc_library().filter(|_| std::env::var_os("USM_NVRTC_LIBRARY").is_none()) {
        variables.push(("USM_NVRTC_LIBRARY", library.into_os_string()));
    }
    // A developer's machine may lack a runtime; CI has all except a GPU.
    if is_ci() && std::env::var_os("USM_REQUIRE").is_none() {
        variables.push(("USM_REQUIRE", REQUIRED.into()));
    }
    // A process that uses one of these runtimes puts the folder on LD_LIBRARY_PATH itself.
    let libraries = debian().join("usr/lib/x86_64-linux-gnu");
    if libraries.exists() {
        variables.push(("USM_DEBIAN_LIBRARIES", libraries.into_os_string()));
        variables.push(("LEVEL_ZERO_INCLUDE", debian().join("usr/include").into_os_string()));
    }
    for (package, variable) in DRIVERS {
        if driver(&target_dir(), package).exists() {
            variables.push((variable, driver(&target_dir(), package).into_os_string()));
        }
    }
    // It contains a hipRTC too, whose output its HIP half executes.
    let hiprtc = driver(&target_dir(), "usm-cuda-driver");
    if hiprtc.exists() && std::env::var_os("USM_HIPRTC_LIBRARY").is_none() {
        variables.push(("USM_HIPRTC_LIBRARY", hiprtc.into_os_string()));
    }
    if planner::library().exists() && std::env::var_os("USM_PLAN_LIBRARY").is_none() {
        variables.push(("USM_PLAN_LIBRARY", planner::library().into_os_string()));
    }
    // Not the users' variable `USM_NRT_LIBRARY`: Python takes the library in its own package.
    if nrt::library().exists() {
        variables.push(("USM_NRT_TEST_LIBRARY", nrt::library().into_os_string()));
    }
    if venv_python().exists() {
        variables.push(("USM_PYTHON", venv_python().into_os_string()));
    }
    if numpy_1().exists() {
        variables.push(("USM_NUMPY_1", numpy_1().into_os_string()));
    }
    if models().exists() {
        variables.push(("USM_ONNX_MODELS", models().into_os_string()));
    }
    variables
}

/// The factor of random tests, unless the caller's environment sets one.
static EFFORT: OnceLock<u32> = OnceLock::new();

/// Sets the factor for the number of cases of random and long tests.
pub(crate) fn set_effort(factor: u32) {
    let _ = EFFORT.set(factor);
}

/// Whether this is a CI run, where a missing required part is a failure.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value != "false" && value != "0" && !value.is_empty())
}
