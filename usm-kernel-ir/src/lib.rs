#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

extern crate alloc;

mod build;
mod builtin;
mod counters;
pub mod emit;
mod error;
mod initialization;
mod inline;
pub mod inspect;
mod interpret;
mod iterations;
mod kernel;
mod lone_continue;
mod lower;
mod operator;
mod phase;
pub mod print;
pub mod proof;
mod scalar;
mod strides;
mod structure;
mod sub_group;
pub mod text;
mod uniform;
mod verify;
mod zero;

pub use builtin::{BUILTINS, Builtin, Math, Meaning};
pub use error::Refusal;
pub use initialization::zeroed;
pub use inline::without_returns;
pub use interpret::{
    Argument, CheckError, Deed, Fault, Input, InputError, Interpreter, Order, Site, WorkItem, check,
    check_while, length,
};
pub use kernel::{
    ASSERTION, Array, ArrayId, Atomic, Collection, Expr, ExprKind, Kernel, Parameter, Place, Query, Space,
    Stmt, StmtKind, Value, ValueId, VarId, Variable,
};
pub use lower::{with_extents_at, without_collections, without_extents};
pub use operator::{Binary, Unary};
pub use phase::{Home, Part, Phases, definition, needed, needs_item, phases};
pub use scalar::{Literal, Scalar};
pub use structure::{FieldPlace, Structure};
pub use sub_group::{Lane, SubGroups};
pub use uniform::Uniformity;
pub use verify::verify;
