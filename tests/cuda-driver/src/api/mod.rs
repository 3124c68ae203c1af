//! The functions of the driver, by topic. The interface's documentation says what each does; the
//! other files say how.

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
