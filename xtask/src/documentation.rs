//! The pages of the libraries: every warning of rustdoc, such as a broken link, is an error.

use crate::command::cargo;
use crate::public_api::CRATES;
use crate::report::Report;

pub(crate) fn part(report: &mut Report) {
    let packages = CRATES.iter().flat_map(|name| ["-p", name]);
    report.command(
        "documentation of the libraries",
        cargo(["doc", "--quiet", "--no-deps", "--lib", "--all-features"])
            .args(packages)
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
}
