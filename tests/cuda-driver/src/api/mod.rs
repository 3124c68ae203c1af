//! The functions of the driver, by what they are about. What each does is in the interface's
//! documentation; how is in the other files.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "each body rests on the one contract of its function"
)]

mod context;
mod control;
mod device;
mod hip;
pub(crate) mod hiprtc;
mod kernel;
mod memory;
mod order;
mod pool;
mod sharing;
mod transfer;
