//! PTX, NVIDIA's assembly, executed on the host: what a compiler makes of plain CUDA C for 64-bit devices.
//!
//! `text` cuts it into words, `parse` finds functions and variables, `lower` and `instruction` make steps, `run` takes the groups and their items
//! through them. What is not known is refused when the module is made, by its line.

mod arithmetic;
mod instruction;
mod lower;
mod memory;
mod parse;
mod program;
mod run;
mod text;
mod types;

pub(crate) use memory::Range;
pub(crate) use parse::parse;
pub(crate) use program::{Entry, Module};
pub(crate) use run::{Launch, run};
