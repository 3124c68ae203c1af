#![no_std]
#![doc = include_str!("../README.md")]
// Three exceptions: arena and pool prove that their parts are disjoint, and the executor that it
// reads only what it wrote.
#![deny(unsafe_code)]
#![warn(clippy::multiple_unsafe_ops_per_block)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(feature = "alloc")]
pub mod alias;
#[cfg(feature = "alloc")]
#[allow(unsafe_code)]
pub mod arena;
pub mod bound;
pub mod conflict;
#[cfg(feature = "alloc")]
pub mod constant;
#[cfg(feature = "alloc")]
pub mod dependency;
pub mod error;
#[cfg(feature = "alloc")]
#[allow(unsafe_code)]
pub mod execute;
pub mod fixed;
#[cfg(feature = "alloc")]
pub mod graph;
#[cfg(feature = "alloc")]
pub mod html;
pub mod lifetime;
#[cfg(feature = "alloc")]
pub mod order_bound;
#[cfg(feature = "alloc")]
mod permit;
#[cfg(feature = "alloc")]
mod pickle;
#[cfg(feature = "alloc")]
pub mod placement;
#[cfg(feature = "alloc")]
pub mod plan;
#[cfg(feature = "alloc")]
pub mod planner;
#[cfg(feature = "alloc")]
#[allow(unsafe_code)]
pub mod pool;
#[cfg(feature = "alloc")]
pub mod problem;
pub mod range;
#[cfg(feature = "alloc")]
mod ranks;
#[cfg(feature = "alloc")]
pub mod report;
#[cfg(feature = "alloc")]
pub mod snapshot;
#[cfg(feature = "alloc")]
mod sort;
#[cfg(feature = "alloc")]
pub mod svg;
#[cfg(feature = "alloc")]
mod sync;
pub mod verify;

pub use usm_core;
pub use usm_core::backend::host::{FixedNode, FixedPool};

pub use error::Error;
pub use lifetime::{Buffer, Lifetime};

#[cfg(feature = "alloc")]
pub use conflict::ConflictGraph;
pub use conflict::ConflictView;
#[cfg(feature = "alloc")]
pub use dependency::Queue;
#[cfg(feature = "alloc")]
pub use graph::{Graph, GraphBuilder, GraphError, Op, Space, Tensor, TensorKind};
#[cfg(feature = "alloc")]
pub use order_bound::{OrderBound, OrderCertificate};
#[cfg(feature = "alloc")]
pub use plan::{Certificate, Memory, MemoryPlan, Plan, Row};
#[cfg(feature = "alloc")]
pub use planner::{Options, Strategy, plan, plan_graph};
#[cfg(feature = "alloc")]
pub use pool::{Pool, PoolOptions, PoolStats, Reuse};
#[cfg(feature = "alloc")]
pub use problem::Problem;
