//! Contexts shared with code that calls the runtime by itself: what this crate allocates is theirs to copy, what they
//! allocate is ours, and each side releases what belongs to it.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

mod cuda;
mod ipc;
mod level_zero;
mod opencl;
mod sycl;

use std::path::Path;

use usm_core::backend::cuda::Cuda;

/// Runs a case, or says why it cannot be; `USM_REQUIRE` turns that into a failure.
fn run(runtime: &str, case: &str, outcome: Result<(), String>) {
    if let Err(reason) = outcome {
        assert!(!is_required(runtime), "required: {reason}");
        eprintln!("skipped: {runtime}::{case}: {reason}");
    }
}

fn is_required(runtime: &str) -> bool {
    std::env::var("USM_REQUIRE").unwrap_or_default().split(',').any(|name| name == runtime)
}

/// The machine's CUDA; where there is none and none is required, the driver of the tests, which executes on the host.
fn cuda() -> Result<Cuda, String> {
    let found = Cuda::load();
    match std::env::var_os("USM_CUDA_DRIVER").filter(|_| found.is_err() && !is_required("cuda")) {
        Some(driver) => Cuda::open(Path::new(&driver)),
        None => found,
    }
    .map_err(|error| error.to_string())
}

/// Bytes that tell places apart.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8 + 1).collect()
}
