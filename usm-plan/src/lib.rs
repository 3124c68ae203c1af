#![doc = include_str!("../README.md")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "files and models: std is always there"
)]

mod buffers_csv;
#[cfg(feature = "capi")]
pub mod capi;
pub mod clock;
pub mod error;
mod graph_csv;
pub mod graph_json;
pub mod input;
pub mod json;
pub mod onnx;
pub mod outcome;
pub mod proof;
pub mod ranged;
mod rehearsal;
pub mod report;
pub mod request;
pub mod shown;
mod table;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod target;
pub mod units;

pub use usm_pool;

pub use error::{Error, Result};
pub use input::{Hints, Input, Model, read};
pub use outcome::{Outcome, make};
pub use report::Report;
