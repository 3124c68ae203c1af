//! Contexts shared with code that calls the runtime directly. Either side may copy the other's
//! allocations, and each releases its own objects.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

mod cuda;
mod ipc;
mod level_zero;
mod opencl;
mod sycl;

use std::path::Path;

use usm_core::{Access, Allocation, Backend, Host, Queue, UsmVec};
use usm_cuda::Cuda;
use usm_tests::skip;

/// Runs a case, or skips it if its runtime is missing.
#[track_caller]
fn run(runtime: &str, outcome: Result<(), String>) {
    if let Err(reason) = outcome {
        skip::missing(runtime, reason);
    }
}

/// The machine's CUDA. If it is missing and not required: the test driver, which executes on the
/// host.
fn cuda() -> Result<Cuda, String> {
    let found = Cuda::load();
    match std::env::var_os("USM_CUDA_DRIVER").filter(|_| found.is_err() && !skip::is_required("cuda")) {
        Some(driver) => Cuda::open(Path::new(&driver)),
        None => found,
    }
    .map_err(|error| error.to_string())
}

/// Copies bytes through two blocks of 4096 bytes of the other library and back. The host can access
/// the second block.
fn round_trip<B: Backend>(queue: &Queue<B>, first: &mut Allocation<B>, second: &mut Allocation<B>) {
    let values = pattern(4096);
    let source = UsmVec::<u8, Host, _>::from_slice(queue, &values).unwrap();
    let _ = queue.copy_bytes(first, 0, source.allocation(), 0, 4096).unwrap();
    let _ = queue.copy_bytes(second, 0, first, 0, 4096).unwrap();
    let guard = second.wait_for_host(Access::Read).unwrap();
    // SAFETY: the host can access the memory, which is fully written, and all work has ended.
    assert_eq!(unsafe { core::slice::from_raw_parts(second.as_ptr(), 4096) }, values);
    drop(guard);
}

/// Bytes that differ between offsets.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8 + 1).collect()
}
