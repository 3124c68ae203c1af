//! `cargo xtask planner`: the C library of usm-plan.

use std::path::PathBuf;

use crate::Failure;
use crate::command::{self, cargo};
use crate::environment;

/// The path of the built library. The variable in [`environment::variables`] passes it to tests.
pub(crate) fn library() -> PathBuf {
    let name = format!("{}usm_plan{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    environment::target_dir().join("small").join(name)
}

/// Builds the C library and returns its path.
pub(crate) fn build() -> Result<PathBuf, String> {
    let mut build = cargo([
        "rustc",
        "--quiet",
        "-p",
        "usm-plan",
        "--profile",
        "small",
        "--crate-type",
        "cdylib",
        "--features",
        "capi",
        "--",
        // Only the C library exports the C names: two copies of the crate in one program must not
        // conflict.
        "--cfg",
        "usm_plan_export",
    ]);
    if cfg!(target_os = "linux") {
        // A program that links to the file needs its name, not its path at build time.
        build.arg("-Clink-arg=-Wl,-soname,libusm_plan.so");
    }
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        // Folds identical functions. rust-lld, the linker, supports it.
        build.arg("-Clink-arg=-Wl,--icf=all");
    }
    let outcome = command::run(&mut build);
    if !outcome.success {
        return Err(format!("building usm-plan failed: {}", outcome.status));
    }
    let library = library();
    if library.exists() { Ok(library) } else { Err(format!("{} was not built", library.display())) }
}

pub(crate) fn run() -> Result<(), Failure> {
    println!("library  {}", build()?.display());
    println!("header   {}", environment::root().join("usm-plan/include/usm_plan.h").display());
    Ok(())
}
