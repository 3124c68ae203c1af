//! `cargo xtask nrt`: the C library of usm-nrt.

use std::path::PathBuf;

use crate::Failure;
use crate::command::{self, cargo};
use crate::environment;

/// Builds the C library and returns its path.
pub(crate) fn build() -> Result<PathBuf, String> {
    let outcome = command::run(&mut cargo([
        "rustc",
        "--quiet",
        "-p",
        "usm-nrt",
        "--release",
        "--crate-type",
        "cdylib",
        "--features",
        "std",
        // Only the C library exports the C names: two copies of the crate in one program must not clash.
        "--",
        "--cfg",
        "usm_nrt_export",
        // No panic may cross into C anyway. Said here, no function prepares for it: 1 ns of 6 a block.
        "-Cpanic=abort",
        // The exported names stay; the rest would be nine tenths of the file.
        "-Cstrip=symbols",
    ]));
    if !outcome.success {
        return Err(format!("building usm-nrt failed: {}", outcome.status));
    }
    let name = format!("{}usm_nrt{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let library = environment::target_dir().join("release").join(name);
    if library.exists() { Ok(library) } else { Err(format!("{} was not built", library.display())) }
}

/// The header of the library.
pub(crate) fn header() -> PathBuf {
    environment::root().join("usm-nrt/include/usm_nrt.h")
}

pub(crate) fn run() -> Result<(), Failure> {
    let library = build()?;
    println!("library  {}", library.display());
    println!("header   {}", header().display());
    Ok(())
}
