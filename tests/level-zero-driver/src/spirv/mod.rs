//! Executes SPIR-V kernels, one work-item after the other: the instructions that a compiler emits
//! for plain OpenCL C.
//!
//! ```text
//! bytes ─ words ─▶ types, constants ─▶ program: steps over numbered slots ─▶ item: runs to the next barrier ─▶ group ─▶ launch
//! ```
//!
//! Stricter than devices: a module with an unknown instruction is refused by name. Every access
//! must be aligned and inside memory that the launch may access: memory that an argument points
//! into, and every kind whose indirect access was enabled. An error that a device would hide is a
//! [`Fault`].

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

/// Why a kernel cannot continue. The device counts as lost then.
pub(crate) type Fault = String;
