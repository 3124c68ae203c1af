//! Contexts shared with code that calls the runtime by itself: what this crate allocates is theirs to copy, what they
//! allocate is ours, and each side releases what belongs to it.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

mod cuda;
mod ipc;
mod level_zero;
mod opencl;
mod sycl;

/// Runs a case, or says why it cannot be; `USM_REQUIRE` turns that into a failure.
fn run(runtime: &str, case: &str, outcome: Result<(), String>) {
    if let Err(reason) = outcome {
        let required = std::env::var("USM_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name == runtime), "required: {reason}");
        eprintln!("skipped: {runtime}::{case}: {reason}");
    }
}

/// Bytes that tell places apart.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8 + 1).collect()
}
