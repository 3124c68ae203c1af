#![doc = include_str!("../README.md")]
#![allow(non_snake_case, reason = "exported functions have the names of the C interface")]

extern crate alloc;

mod api;
mod command;
mod device;
mod fault;
mod kernel;
mod memory;
mod queue;
mod spirv;
mod state;
mod table;
