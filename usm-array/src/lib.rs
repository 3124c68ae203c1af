#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]
#![allow(
    clippy::std_instead_of_alloc,
    clippy::std_instead_of_core,
    reason = "threads share its memory, and forks wait for them"
)]

mod access;
mod array;
mod axes;
mod block_lock;
pub mod copy;
mod error;
#[doc(hidden)]
pub mod fork;
mod layout;
mod reserve;
mod reshape;
mod select;
mod storage;
mod turns;

pub use access::StableBytes;
pub use array::Array;
pub use axes::Axes;
pub use copy::End;
pub use error::{Error, Result};
pub use layout::{Layout, MAX_DIMS};
#[doc(hidden)]
pub use reserve::{reserved, zeroed};
pub use select::Selection;
pub use storage::{Owner, Storage};
#[doc(hidden)]
pub use turns::{LaunchMark, Turns};
