#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

pub mod argument;
mod atomic;
mod barrier;
mod constant;
mod error;
mod group;
pub mod host;
mod kernel;
mod launch;
mod local;
mod order;
mod private;
mod range;
pub mod sample;

pub use argument::{
    Arguments, Atomic, Bind, Output, Parameter, ParameterInfo, Passing, Read, Signature, Value, Write,
};
pub use atomic::AtomicElement;
pub use barrier::FenceSpace;
pub use constant::Constant;
pub use error::{ArgumentError, LaunchError};
pub use group::{Group, Items};
pub use kernel::{Description, Kernel, LocalLengths, LocalViews, Views};
pub use launch::Launch;
pub use local::{Local, LocalParameter, LocalSignature, LocalSize, Zeroed};
pub use order::{InOrder, Order, Reversed, Shuffled};
pub use private::{Private, PrivateArrays};
pub use range::{Id, Item, NdRange, Range, RangeError};
