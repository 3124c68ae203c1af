//! `cargo xtask ci`: the test run, then what is too slow for every change: documentation and feature combinations.

use crate::command::cargo;
use crate::report::Report;
use crate::{Failure, features, test};

pub(crate) fn run() -> Result<(), Failure> {
    let mut report = Report::new();
    test::all(&mut report);
    report.command(
        "documentation",
        cargo(["doc", "--quiet", "--no-deps", "--workspace", "--all-features"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
    features::parts(&mut report);
    report.finish()
}
