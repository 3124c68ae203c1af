//! The text form: nested lists, each with its place at the end, such as
//! `(add u64 (var u64 $0 @0:3:9) (lit u64 0x1 @0:3:13) @0:3:11)`.
//!
//! [`parse()`] reads the output of [`write()`] back to an equal kernel.

mod parse;
mod tree;
mod write;

pub use parse::parse;
pub(crate) use tree::DEPTH;
pub use write::write;
