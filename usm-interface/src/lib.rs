#![no_std]
#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
#![warn(clippy::multiple_unsafe_ops_per_block)]
#![deny(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::as_conversions,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod array;
pub mod arrow;
mod convert;
pub mod cuda;
pub mod descr;
pub mod dict;
pub mod dlpack;
mod dtype;
mod error;
mod field;
mod interface;
mod layout;
mod loose;
mod names;
#[cfg(feature = "alloc")]
mod panics;
pub mod pep3118;
mod policy;
mod raw;
mod shape;
pub mod sycl;
pub mod text;
pub mod typestr;
pub mod value;
mod write;

pub use convert::Target;
pub use dtype::{ByteOrder, Dtype, Extended, Kind, MAX_ITEMSIZE, Resolution, TimeUnit};
pub use error::{
    EntryError, Error, ErrorKind, Key, LayoutError, LimitError, MemoryError, Part, Path, ProtocolError,
    Reason, Result, StructureError, SyntaxError, TypeError, ValueKind,
};
pub use field::{Field, MAX_SUB_DIMS, Name, Structure, SubShape, members};
pub use interface::Interface;
pub use layout::{Allocation, Extent, Layout};
pub use policy::{Limits, MissingData, Mode, Null, Objects, Policy, SyclFlag, SyclUnits};
pub use raw::{Data, Protocol, Raw, Stream, SyclObject};
pub use shape::Dims;
pub use write::Spelling;
