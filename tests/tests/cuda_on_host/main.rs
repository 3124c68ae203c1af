//! The CUDA backend on a driver that executes on the host (`tests/cuda-driver`): the conformance
//! suite unchanged, and what no real driver does at will. Nothing here ran on a GPU.

mod calls;
mod driver;
mod failures;
mod faults;
mod hip;
mod suite;
mod warps;
