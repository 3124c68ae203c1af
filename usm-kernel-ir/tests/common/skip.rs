//! A case that cannot run here says so, in the one way that the summary of `cargo xtask test`
//! counts. Each published crate has this file, so that its tests need nothing but its package;
//! `tests/tests/skips.rs` keeps the copies equal, and other ways out.

use core::fmt::Display;
use core::panic::Location;
use std::io::Write as _;

/// This case does not run, because a runtime, or data, is not here: `skipped: CASE: WHAT: REASON`,
/// past the capture of the test harness, which calls the case passed. A failure where the
/// environment variable `USM_REQUIRE` names what is missing.
#[track_caller]
pub(crate) fn missing(what: &str, reason: impl Display) {
    let required = std::env::var("USM_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name == what), "required: {what}: {reason}");
    let (thread, place, mut out) = (std::thread::current(), Location::caller(), std::io::stderr());
    // By the name of its test; where all run on one thread, by its place.
    let _ = match thread.name().filter(|name| *name != "main") {
        Some(case) => writeln!(out, "skipped: {case}: {what}: {reason}"),
        None => writeln!(out, "skipped: {}:{}: {what}: {reason}", place.file(), place.line()),
    };
}
