//! Contexts shared with code that calls the runtime by itself: what this crate allocates is theirs
//! to copy, what they allocate is ours, and each side releases what belongs to it.

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

/// What a case said of its runtime: where that is not here, the case is skipped.
#[track_caller]
fn run(runtime: &str, outcome: Result<(), String>) {
    if let Err(reason) = outcome {
        skip::missing(runtime, reason);
    }
}

/// The machine's CUDA; where there is none and none is required, the driver of the tests, which
/// executes on the host.
fn cuda() -> Result<Cuda, String> {
    let found = Cuda::load();
    match std::env::var_os("USM_CUDA_DRIVER").filter(|_| found.is_err() && !skip::is_required("cuda")) {
        Some(driver) => Cuda::open(Path::new(&driver)),
        None => found,
    }
    .map_err(|error| error.to_string())
}

/// Bytes go through two blocks of 4096 bytes that are theirs, of which the host reaches the second,
/// and come out as they went in.
fn round_trip<B: Backend>(queue: &Queue<B>, first: &mut Allocation<B>, second: &mut Allocation<B>) {
    let values = pattern(4096);
    let source = UsmVec::<u8, Host, _>::from_slice(queue, &values).unwrap();
    let _ = queue.copy_bytes(first, 0, source.allocation(), 0, 4096).unwrap();
    let _ = queue.copy_bytes(second, 0, first, 0, 4096).unwrap();
    let guard = second.wait_for_host(Access::Read).unwrap();
    // SAFETY: memory of the host's too, written whole, and nothing runs any more.
    assert_eq!(unsafe { core::slice::from_raw_parts(second.as_ptr(), 4096) }, values);
    drop(guard);
}

/// Bytes that tell places apart.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8 + 1).collect()
}
