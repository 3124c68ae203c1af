//! Reports a case that cannot run on this machine, in the form that `cargo xtask test` counts. Each
//! published crate has a copy of this file, so that its tests need only its package.
//! `tests/tests/skips.rs` compares the copies and refuses other ways to skip.

use core::fmt::Display;
use core::panic::Location;
use std::io::Write as _;

/// Reports that this case does not run because a runtime or data is missing. Prints
/// `skipped: CASE: WHAT: REASON` past the capture of the test harness, which counts the case as
/// passed. Fails if the environment variable `USM_REQUIRE` names the missing part.
#[track_caller]
pub(crate) fn missing(what: &str, reason: impl Display) {
    let required = std::env::var("USM_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name == what), "required: {what}: {reason}");
    let (thread, place, mut out) = (std::thread::current(), Location::caller(), std::io::stderr());
    // The case is its test's name; if all tests run on one thread, its place in the source.
    let _ = match thread.name().filter(|name| *name != "main") {
        Some(case) => writeln!(out, "skipped: {case}: {what}: {reason}"),
        None => writeln!(out, "skipped: {}:{}: {what}: {reason}", place.file(), place.line()),
    };
}
