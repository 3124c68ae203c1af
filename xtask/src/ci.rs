//! `cargo xtask ci`: the test run, then the checks that are too slow for every change:
//! documentation, public interfaces, models and feature combinations.

use crate::command::cargo;
use crate::report::Report;
use crate::{Failure, features, loom, public_api, test};

pub(crate) fn run() -> Result<(), Failure> {
    let mut report = Report::new();
    test::all(&mut report);
    report.command(
        "documentation",
        cargo(["doc", "--quiet", "--no-deps", "--workspace", "--all-features"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
    public_api::parts(&mut report);
    loom::parts(&mut report);
    features::parts(&mut report, features::Depth::Pairs);
    report.finish()
}
