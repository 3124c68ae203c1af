//! What the tests share.

use std::io::Write as _;

/// Says that a test is skipped, past the capture of the test harness; a failure where `USM_REQUIRE` names Level Zero.
pub(crate) fn skip(reason: &str) {
    let required = std::env::var("USM_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name == "level_zero"), "required: {reason}");
    writeln!(std::io::stderr(), "skipped: {reason}").expect("standard error");
}
