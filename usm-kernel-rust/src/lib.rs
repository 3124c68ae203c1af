#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

extern crate alloc;
extern crate proc_macro;

mod arguments;
mod assertion;
mod assignment;
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
mod derive;
mod difference;
mod element;
mod expression;
mod file;
mod function;
mod instance;
mod items;
mod jump;
mod label;
mod literal;
mod lookahead;
mod manifest;
mod meaning;
mod method;
mod module;
mod nesting;
mod number;
mod part;
mod place;
mod print;
mod random;
mod range;
mod reader;
mod refusal;
mod signature;
mod structure;
mod sub_group;
mod swap;
mod tuple;
mod types;
mod view;

pub use attribute::{kernel, kernels};
pub use derive::structure;
pub use file::{ReadError, read};
