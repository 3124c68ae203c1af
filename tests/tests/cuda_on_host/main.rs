//! The CUDA backend on a driver that executes on the host (`tests/cuda-driver`): the conformance suite unchanged, and what no real driver
//! does at will. Nothing here ran on a GPU.

mod driver;
mod hip;
mod suite;
