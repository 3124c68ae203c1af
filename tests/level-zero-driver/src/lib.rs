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
/// The only source of locks and conditions. The files belong to usm-core, on which a driver must
/// not depend. Under valgrind they are the versions that it understands.
#[allow(dead_code, unreachable_pub, reason = "written for another crate")]
#[cfg_attr(not(usm_valgrind), path = "../../../usm-core/src/sync/sleeping.rs")]
#[cfg_attr(usm_valgrind, path = "../../../usm-core/src/sync/pthread.rs")]
mod sync;
mod table;
