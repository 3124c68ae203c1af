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
pub mod escape;
pub mod field;
mod graph_csv;
pub mod graph_json;
pub mod input;
pub mod json;
pub mod model;
mod number;
pub mod onnx;
pub mod outcome;
pub mod proof;
pub mod ranged;
pub mod report;
pub mod request;
mod table;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod target;
mod time_estimate;
pub mod units;

pub use usm_pool;

pub use error::{Error, Result};
pub use field::Field;
pub use input::read;
pub use model::{Hints, Input, Model};
pub use outcome::Outcome;
pub use report::Report;
pub use request::{Answer, Job, Refusal, Request, Source, Watch};
