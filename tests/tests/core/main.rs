//! Guarantees of usm-core beyond the conformance suite: properties, faults and limits.

#![allow(clippy::std_instead_of_core, clippy::std_instead_of_alloc, reason = "a program with std")]

mod arena;
mod arenas;
mod erased;
mod faults;
mod fixed_pool;
mod flight;
mod interleaved;
mod lenders;
mod limits;
mod observers;
mod order;
mod owners;
mod programs;
mod queue_memory;
mod registry;
mod ring;
mod selector;
mod sharing;
mod staging;
mod verbose;
