#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

extern crate alloc;
extern crate proc_macro;

mod ahead;
mod assertion;
mod atomic;
mod attribute;
mod body;
mod call;
mod choice;
mod column;
mod complex;
mod conditional;
mod constant;
mod declaration;
mod expression;
mod file;
mod instance;
mod label;
mod literal;
mod nesting;
mod number;
mod print;
mod random;
mod range;
mod scope;
mod signature;
mod structure;
mod sub_group;
mod swap;
mod tuple;
mod view;

pub use attribute::{kernel, kernels};
pub use file::{Refused, read};
pub use structure::structure;
