//! `cargo xtask nrt`: the C library of usm-nrt.

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::command::{self, cargo};
use crate::environment;

/// The path of the built library. The variable in [`environment::variables`] passes it to tests.
pub(crate) fn library() -> PathBuf {
    environment::target_dir().join("library").join(file_name())
}

fn file_name() -> String {
    format!("{}usm_nrt{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// Builds the C library and returns its path.
pub(crate) fn build() -> Result<PathBuf, String> {
    build_with("capi", &environment::target_dir(), None)
}

/// [`build`] by `linker`, for the wheel.
pub(crate) fn build_for_wheel(linker: &Path) -> Result<PathBuf, String> {
    build_with("capi", &environment::target_dir().join("nrt-wheel"), Some(linker))
}

/// [`build`] with the checks of the feature `debug`, into another folder, so that it is not shipped
/// by mistake.
fn build_debug() -> Result<PathBuf, String> {
    build_with("capi,debug", &environment::target_dir().join("nrt-debug"), None)
}

fn build_with(features: &str, target: &Path, linker: Option<&Path>) -> Result<PathBuf, String> {
    let mut build = cargo([
        "rustc",
        "--quiet",
        "-p",
        "usm-nrt",
        "--profile",
        "library",
        "--crate-type",
        "cdylib",
        "--features",
        features,
    ]);
    build.arg("--target-dir").arg(target).args([
        // Only the C library exports the C names: two copies of the crate in one program must not
        // conflict.
        "--",
        "--cfg",
        "usm_nrt_export",
        // No panic may enter C. With this flag no function prepares for one: 1 ns of 6 for a block.
        "-Cpanic=abort",
    ]);
    if cfg!(target_os = "linux") {
        // A program that links to the file needs its name, not its path at build time.
        build.arg("-Clink-arg=-Wl,-soname,libusm_nrt.so");
    }
    if let Some(linker) = linker {
        build.arg(format!("-Clinker={}", linker.display()));
    }
    let outcome = command::run(&mut build);
    if !outcome.success {
        return Err(format!("building usm-nrt failed: {}", outcome.status));
    }
    let library = target.join("library").join(file_name());
    if library.exists() { Ok(library) } else { Err(format!("{} was not built", library.display())) }
}

/// The header of the library.
pub(crate) fn header() -> PathBuf {
    environment::root().join("usm-nrt/include/usm_nrt.h")
}

pub(crate) fn run(arguments: &[String]) -> Result<(), Failure> {
    let library = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => build()?,
        ["--debug"] => build_debug()?,
        _ => return Err(Failure::Usage(format!("nrt does not take `{}`", arguments.join(" ")))),
    };
    println!("library  {}", library.display());
    println!("header   {}", header().display());
    Ok(())
}
