//! `cargo xtask ci`: the test run with ten times the random cases and with the wheel as it is
//! shipped, then the checks that are too slow for every change: the release program, the command
//! without unwinding, the C library of usm-plan as it is shipped, documentation, the oldest Rust,
//! packages, other platforms, public interfaces, models and feature combinations.

use crate::command::cargo;
use crate::report::Report;
use crate::{
    Failure, environment, features, folder, images, loom, msrv, packages, planner, platforms, public_api,
    release, test, wheel,
};

pub(crate) fn run() -> Result<(), Failure> {
    folder::claim(&environment::setup_dir())?;
    environment::set_effort(10);
    let mut report = Report::new();
    test::all(&mut report, wheel::install);
    test::doctests_by_default(&mut report);
    release::part(&mut report);
    test::without_unwinding(&mut report);
    images::lints(&mut report);
    wheel::as_shipped(&mut report);
    planner::as_shipped(&mut report);
    report.command(
        "documentation of everything",
        cargo(["doc", "--quiet", "--no-deps", "--workspace", "--all-features"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    );
    msrv::parts(&mut report);
    packages::parts(&mut report);
    platforms::parts(&mut report);
    public_api::parts(&mut report);
    loom::parts(&mut report);
    features::parts(&mut report, features::Depth::Pairs);
    report.finish()
}
