//! `cargo xtask planner`: the C library of usm-plan.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Failure;
use crate::command::{self, cargo};
use crate::report::Report;
use crate::{environment, folder, lints};

/// Maximum size of the library in bytes.
const MOST: u64 = 1_230_000;

/// The library of the tests, compiled as they are. The variable in [`environment::variables`]
/// passes it to them.
pub(crate) fn library() -> PathBuf {
    environment::library_of(&environment::target_dir(), "usm_plan")
}

/// The library that users get.
fn shipped() -> PathBuf {
    let file = library();
    environment::target_dir().join("small").join(file.file_name().unwrap_or_default())
}

/// Builds the library of the tests. `cargo xtask ci` repeats the C programs with that of users.
pub(crate) fn build_for_tests() -> Result<(), String> {
    build("dev", &library())
}

fn build(profile: &str, library: &Path) -> Result<(), String> {
    // Only the C library exports the C names: two copies of the crate in one program must not
    // conflict.
    let mut build = cargo(["rustc", "--quiet", "-p", "usm-plan", "--profile", profile]);
    build.args(["--crate-type", "cdylib", "--features", "capi", "--", "--cfg", "usm_plan_export"]);
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
    if library.exists() { Ok(()) } else { Err(format!("{} was not built", library.display())) }
}

/// The library as users get it: its size, and the tests in C on it.
pub(crate) fn as_shipped(report: &mut Report) {
    if report.check("C library of usm-plan as shipped", || build("small", &shipped()).and_then(|()| size())) {
        let mut test = cargo(["test", "--quiet"]);
        lints::on(&mut test).args(["--workspace", "--all-features", "--test", "capi", "--", "--show-output"]);
        report.command("tests of usm-plan in C, as shipped", test.env("USM_PLAN_LIBRARY", shipped()));
    }
}

fn size() -> Result<(), String> {
    let file = shipped();
    let size = fs::metadata(&file).map_err(|error| folder::at(&file, &error))?.len();
    println!("{size} bytes of at most {MOST}");
    if size <= MOST { Ok(()) } else { Err(format!("the library has {size} bytes, {MOST} are allowed")) }
}

pub(crate) fn run() -> Result<(), Failure> {
    build("small", &shipped())?;
    size()?;
    println!("library  {}", shipped().display());
    println!("header   {}", environment::root().join("usm-plan/include/usm_plan.h").display());
    Ok(())
}
