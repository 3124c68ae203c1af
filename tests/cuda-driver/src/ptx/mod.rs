//! PTX, NVIDIA's assembly, executed on the host: what a compiler makes of plain CUDA C for 64-bit
//! devices.
//!
//! `text` cuts it into words, `parse` finds functions and variables, `lower`, `instruction`,
//! `collective` and `expand` make steps, `run` takes the groups and their items through them, and
//! `warp` those that do something together. What is not known is refused when the module is made,
//! by its line.

mod arithmetic;
mod collective;
mod expand;
mod instruction;
mod lower;
mod memory;
mod parse;
mod program;
mod run;
#[cfg(test)]
mod tests;
mod text;
mod types;
mod warp;

pub(crate) use memory::Range;
pub(crate) use parse::parse;
pub(crate) use program::{Entry, Module};
#[cfg(test)]
use run::Fault;
pub(crate) use run::{Launch, run};
