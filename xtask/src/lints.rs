//! Clippy on all of our code.
//!
//! The compiler of the test programs is clippy's own, which generates code as rustc does: one pass
//! over the source lints and compiles. A check of everything by `cargo clippy` took another tenth
//! of the test run.

use std::path::PathBuf;
use std::process::Command;

use crate::command::{self, cargo, probe};
use crate::report::Report;
use crate::test::NO_STD;

/// What cargo starts in place of rustc for the members of the workspace.
const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// Clippy's compiler, if it is installed.
fn compiler() -> Option<PathBuf> {
    let sysroot = probe(command::command(rustc()).args(["--print", "sysroot"]))?;
    let name = format!("clippy-driver{}", std::env::consts::EXE_SUFFIX);
    let file = PathBuf::from(sysroot.trim()).join("bin").join(name);
    file.exists().then_some(file)
}

fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Makes cargo compile the members with lints. All builds that share compilations must have it, or
/// none. Nothing changes where clippy is not installed; [`part`] reports that.
pub(crate) fn on(cargo: &mut Command) -> &mut Command {
    match compiler() {
        Some(compiler) => cargo.env(WRAPPER, compiler),
        None => cargo,
    }
}

/// The verdict over a build by [`on`] that printed so many warnings; none if it failed.
pub(crate) fn part(report: &mut Report, name: &str, warnings: Option<usize>) {
    if compiler().is_none() {
        return report.missing(name, "clippy (rustup component clippy) not installed");
    }
    report.check(name, || match warnings {
        Some(0) => Ok(()),
        Some(count) => Err(format!("{count} warnings, which the compilation printed")),
        None => Err("the compilation failed".into()),
    });
}

/// The libraries without std, with fewer features than any other build has.
pub(crate) fn small_builds(report: &mut Report) {
    if probe(&mut cargo(["clippy", "--version"])).is_none() {
        return report.missing("lints: fewer features", "clippy (rustup component clippy) not installed");
    }
    for (name, features) in [("lints: no feature", ""), ("lints: alloc", "alloc")] {
        let mut lints = cargo(["clippy", "--quiet", "--no-default-features", "--lib"]);
        lints.args(["--features", features]).args(NO_STD.into_iter().flat_map(|name| ["-p", name]));
        report.command(name, lints.args(["--", "-D", "warnings"]));
    }
}
