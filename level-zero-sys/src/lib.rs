#![doc = include_str!("../README.md")]
#![no_std]
#![warn(clippy::multiple_unsafe_ops_per_block)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![allow(
    non_camel_case_types,
    non_snake_case,
    missing_docs,
    reason = "types, fields and constants have the names of the C header; its specification documents them"
)]

#[cfg(feature = "std")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod device;
mod driver;
mod error;
mod event;
mod layout;
#[cfg(feature = "std")]
mod loader;
mod macros;
mod memory;
mod module;
mod queue;
mod result;
mod structure;
mod table;
mod version;

pub use device::*;
pub use driver::*;
pub use error::Error;
pub use event::*;
#[doc(hidden)]
pub use layout::{LAYOUTS, Layout};
#[cfg(feature = "std")]
pub use loader::{LIBRARY_NAMES, LevelZero, Library, LoadError};
pub use memory::*;
pub use module::*;
pub use queue::*;
pub use result::*;
pub use structure::*;
pub use table::{Functions, ze_bool_t};
pub use version::*;
