//! An executor of SPIR-V for kernels: the instructions that a compiler makes of plain OpenCL C, one
//! work-item after the other.
//!
//! ```text
//! bytes ─ words ─▶ types, constants ─▶ program: steps over numbered slots ─▶ item: runs to the next barrier ─▶ group ─▶ launch
//! ```
//!
//! It is strict where devices are not: a module with an instruction that it does not know is
//! refused by name, and every access is checked for its alignment and for lying in memory that the
//! launch may touch. That is memory which an argument points into, and all memory of a kind whose
//! indirect access was asked for. What a device would do wrong without a word is a [`Fault`] here.

mod arithmetic;
mod group;
mod item;
mod lower;
mod memory;
mod op;
mod operations;
mod program;
#[cfg(test)]
mod tests;
mod types;
mod words;

pub(crate) use group::{Launch, run};
pub(crate) use program::{Entry, Module, Parameter};

/// Why a kernel cannot go on. Its device is lost then.
pub(crate) type Fault = String;
