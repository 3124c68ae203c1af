//! The pages of the libraries: every warning of rustdoc, such as a broken link, is an error.

use crate::command::cargo;
use crate::members;
use crate::report::Report;

/// Those whose pages `cargo xtask ci` makes alone: rustdoc checks all their dependencies, which are
/// a code generator and an inference engine.
const LATER: [&str; 3] = ["usm-kernel-jit", "usm", "usm-cli"];

pub(crate) fn part(report: &mut Report) {
    let crates = members::published().iter().filter(|name| !LATER.contains(name));
    let packages = crates.flat_map(|name| ["-p", name]);
    report.command(
        "documentation of the libraries",
        cargo(["doc", "--quiet", "--no-deps", "--lib", "--all-features"])
            .args(packages)
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
}
