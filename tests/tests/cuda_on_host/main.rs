//! The CUDA backend on a driver that executes on the host (`tests/cuda-driver`): the unchanged
//! conformance suite, and situations that a real driver does not produce on demand. Nothing here
//! ran on a GPU.

extern crate alloc;

mod calls;
mod driver;
mod failures;
mod faults;
mod hip;
mod suite;
mod warps;
