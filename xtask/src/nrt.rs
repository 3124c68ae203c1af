//! `cargo xtask nrt`: the C library of usm-nrt.

use std::path::{Path, PathBuf};

use crate::Failure;
use crate::command::{self, cargo};
use crate::{environment, folder};

/// The path of the built library. The variable in [`environment::variables`] passes it to tests.
pub(crate) fn library() -> PathBuf {
    environment::target_dir().join("library").join(file_name())
}

fn file_name() -> String {
    format!("{}usm_nrt{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// Builds the C library and returns its path.
pub(crate) fn build() -> Result<PathBuf, String> {
    build_with("capi", &environment::target_dir(), None, None)
}

/// [`build`] by `linker`, for the wheel of a platform, by default of this one.
pub(crate) fn build_for_wheel(linker: &Path, platform: Option<&str>) -> Result<PathBuf, String> {
    build_with("capi", &environment::target_dir().join("nrt-wheel"), Some(linker), platform)
}

/// [`build`] by `linker`, for tests on another platform.
pub(crate) fn build_for_platform(linker: &Path, platform: &str) -> Result<PathBuf, String> {
    build_with("capi", &environment::target_dir().join("platforms"), Some(linker), Some(platform))
}

/// [`build`] with the checks of the feature `debug`, into another folder, so that it is not shipped
/// by mistake.
fn build_debug() -> Result<PathBuf, String> {
    build_with("capi,debug", &environment::target_dir().join("nrt-debug"), None, None)
}

fn build_with(
    features: &str,
    target: &Path,
    linker: Option<&Path>,
    platform: Option<&str>,
) -> Result<PathBuf, String> {
    // The build backend of the Python package reads the same arguments. Only the C library exports
    // the C names: two copies of the crate in one program must not conflict. No panic may enter C;
    // with `panic=abort` no function prepares for one: 1 ns of 6 for a block.
    let arguments = folder::read(&environment::root().join("usm-nrt/c-library.args"))?;
    let mut build = cargo(["rustc", "--quiet", "-p", "usm-nrt", "--target-dir"]);
    build.arg(target).args(platform.iter().flat_map(|platform| ["--target", platform]));
    build.args(arguments.lines().map(|word| if word == "capi" { features } else { word }));
    let is_linux = platform.map_or(cfg!(target_os = "linux"), |platform| platform.contains("-linux-"));
    if is_linux {
        // A program that links to the file needs its name, not its path at build time.
        build.arg("-Clink-arg=-Wl,-soname,libusm_nrt.so");
    }
    if let Some(platform) = platform.filter(|platform| platform.ends_with("-musl")) {
        // A library cannot contain the C library of the program that opens it. In cargo's own
        // variable: it asks the compiler with these flags whether the target has such libraries.
        let variable = platform.to_uppercase().replace('-', "_");
        build.env(format!("CARGO_TARGET_{variable}_RUSTFLAGS"), "-Ctarget-feature=-crt-static");
    }
    if let Some(linker) = linker {
        build.arg(format!("-Clinker={}", linker.display()));
    }
    let outcome = command::run(&mut build);
    if !outcome.success {
        return Err(format!("building usm-nrt failed: {}", outcome.status));
    }
    let library = target.join(platform.unwrap_or_default()).join("library").join(file_name());
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
