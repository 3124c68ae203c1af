//! `cargo xtask loom`: all interleavings of what is modelled.

use crate::Failure;
use crate::command::cargo;
use crate::environment;
use crate::report::Report;

/// Packages with a `tests/loom.rs`.
const PACKAGES: [&str; 2] = ["usm-nrt", "usm-core"];

pub(crate) fn run() -> Result<(), Failure> {
    let mut report = Report::new();
    parts(&mut report);
    report.finish()
}

pub(crate) fn parts(report: &mut Report) {
    for package in PACKAGES {
        let mut test =
            cargo(["test", "--release", "-p", package, "--all-features", "--test", "loom", "--target-dir"]);
        // A folder of its own: the flag rebuilds everything below.
        test.arg(environment::target_dir().join("loom")).env("RUSTFLAGS", "--cfg loom");
        report.command(&format!("loom: {package}"), &mut test);
    }
}
