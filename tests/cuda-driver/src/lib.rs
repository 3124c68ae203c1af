#![doc = include_str!("../README.md")]
#![allow(non_snake_case, reason = "exported functions have the names of the C interface")]
#![cfg(target_os = "linux")]

extern crate alloc;

mod api;
mod arena;
mod code;
mod command;
mod context;
mod export;
mod fault;
mod kernel;
mod memory;
mod ptx;
mod state;
mod stream;
mod sync;
mod worker;
