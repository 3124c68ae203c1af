//! Executes PTX, NVIDIA's assembly, on the host: the subset that a compiler produces from plain
//! CUDA C for 64-bit devices.
//!
//! `text` splits the source into words, and `parse` finds functions and variables. `lower`,
//! `instruction`, `collective` and `expand` produce steps. `run` executes the steps for each group
//! and item; `warp` executes steps that several lanes share. An unknown instruction is refused with
//! its line when the module is loaded.

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
