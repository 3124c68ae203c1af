#![doc = include_str!("../README.md")]
#![allow(non_snake_case, reason = "exported functions have the names of the C interface")]

extern crate alloc;

mod api;
mod command;
mod device;
mod fault;
mod kernel;
mod memory;
/// Its one lock where valgrind has to understand it: the file that usm-core has for that.
#[cfg(usm_valgrind)]
#[allow(dead_code, unreachable_pub, reason = "written for another crate")]
#[path = "../../../usm-core/src/sync/pthread.rs"]
mod pthread;
mod queue;
mod spirv;
mod state;
mod table;
