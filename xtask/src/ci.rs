//! `cargo xtask ci`: the test run, then what is too slow for every change: documentation and feature combinations.

use crate::Failure;
use crate::command::{cargo, probe};
use crate::report::Report;
use crate::test;

pub(crate) fn run() -> Result<(), Failure> {
    let mut report = Report::new();
    test::all(&mut report);
    report.command(
        "documentation",
        cargo(["doc", "--quiet", "--no-deps", "--workspace", "--all-features"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
    features(&mut report);
    report.finish()
}

fn features(report: &mut Report) {
    if probe(&mut cargo(["hack", "--version"])).is_none() {
        report.missing("feature pairs", "cargo-hack not installed (cargo install cargo-hack)");
        return;
    }
    let mut hack = cargo(["hack", "check", "--quiet", "--feature-powerset", "--depth", "2", "--no-dev-deps"]);
    for name in test::NO_STD.iter().chain(&["level-zero-sys", "usm-cli"]) {
        hack.args(["-p", name]);
    }
    report.command("feature pairs", &mut hack);
}
