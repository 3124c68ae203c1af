//! Reports a case that cannot run on this machine, in the form that `cargo xtask test` counts:
//! `skipped: CASE: REASON` on standard error, past the capture of the test harness, which counts
//! such a case as passed. The tests of every crate use this one file.

#![forbid(unsafe_code)]
#![allow(clippy::std_instead_of_alloc, reason = "a crate with std")]

use core::cell::RefCell;
use core::fmt::Display;
use core::panic::Location;
use std::collections::BTreeSet;
use std::io::Write as _;

thread_local! {
    /// The case of this thread, if its harness named it.
    static CASE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body` as the case of this name.
pub fn named<T>(case: &str, body: impl FnOnce() -> T) -> T {
    let before = CASE.replace(Some(case.to_owned()));
    let result = body();
    CASE.set(before);
    result
}

/// The case of this thread: its harness's name for it, or the thread's name. If one thread runs all
/// cases, the place of the caller.
fn case(place: &Location<'_>) -> String {
    let thread = std::thread::current();
    let named = CASE.with_borrow(Clone::clone);
    let named = named.or_else(|| thread.name().filter(|name| *name != "main").map(str::to_owned));
    named.unwrap_or_else(|| format!("{}:{}", place.file(), place.line()))
}

/// Whether the environment variable `USM_REQUIRE`, a list of names with commas, contains this
/// runtime. A machine without it is then a failure.
#[must_use]
pub fn is_required(runtime: &str) -> bool {
    std::env::var("USM_REQUIRE").unwrap_or_default().split(',').any(|name| name == runtime)
}

/// Reports that this case does not run because a runtime is missing.
///
/// # Panics
/// If the runtime is required.
#[track_caller]
pub fn missing(runtime: &str, reason: impl Display) {
    assert!(!is_required(runtime), "required: {runtime}: {reason}");
    announce(&case(Location::caller()), format_args!("{runtime}: {reason}"));
}

/// Reports that this case does not run because the runtime lacks an ability.
#[track_caller]
pub fn limit(what: impl Display, reason: impl Display) {
    announce(&case(Location::caller()), format_args!("{what}: {reason}"));
}

/// Reports that a part of this case does not run. The case itself counts as run.
#[track_caller]
pub fn part(what: impl Display, reason: impl Display) {
    let case = case(Location::caller());
    write_line(&format!("skipped in part: {case}: {what}: {reason}"));
}

/// Reports that the case of this name does not run.
pub fn announce(case: &str, reason: impl Display) {
    write_line(&format!("skipped: {case}: {reason}"));
}

/// Writes a line by one call of the system: the error stream has no buffer, so the harness's lines
/// would come between the pieces of a format.
fn write_line(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Repeats another process's reports of skipped cases, and returns their number.
#[must_use]
pub fn repeat(errors: &str) -> usize {
    let lines = errors.lines().filter(|line| line.starts_with("skipped"));
    lines
        .inspect(|line| {
            write_line(line);
        })
        .filter_map(|line| line.strip_prefix("skipped: ")?.split_once(": "))
        .map(|(case, _)| case)
        .collect::<BTreeSet<_>>()
        .len()
}

/// The number of random cases of a test: the environment variable `variable` where it is set, else
/// `usual` times `USM_EFFORT` (1 without it; `cargo xtask ci` sets 10, the nightly run 100).
///
/// # Panics
/// If one of the two variables is no number.
#[must_use]
pub fn cases(variable: &str, usual: u64) -> u64 {
    number(variable).unwrap_or_else(|| usual.saturating_mul(effort()))
}

/// How much a test tries: `USM_EFFORT`, 1 without it.
///
/// # Panics
/// If it is no number.
#[must_use]
pub fn effort() -> u64 {
    number("USM_EFFORT").unwrap_or(1)
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
}
