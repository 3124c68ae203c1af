#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "it starts compilers and keeps files"
)]

mod argument;
pub mod cache;
pub mod device;
mod error;
mod function;
pub mod host;
mod interpret;
mod launch;
#[cfg(feature = "builtin")]
pub mod machine;
pub mod program;

pub use argument::{Argument, Element, Tuple};
pub use error::{CompileError, LaunchError, OtherStructure};
#[cfg(feature = "rust")]
pub use function::compile;
pub use function::{Function, choose};
pub use launch::Launch;
pub use usm_kernel_ir;
