#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![doc = include_str!("../README.md")]
#![warn(clippy::multiple_unsafe_ops_per_block)]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

// The code that the attribute writes names this crate.
#[cfg(feature = "macros")]
extern crate self as usm_kernel;

#[cfg(all(feature = "alloc", feature = "macros"))]
pub mod algorithms;
pub mod argument;
mod atomic;
#[cfg(feature = "alloc")]
pub mod backend;
mod barrier;
#[cfg(feature = "alloc")]
mod call;
#[cfg(feature = "alloc")]
mod checked;
#[cfg(feature = "alloc")]
mod code_store;
mod collective;
mod complex;
mod constant;
#[cfg(feature = "alloc")]
mod declared_function;
mod error;
#[cfg(feature = "alloc")]
mod executable;
#[doc(hidden)]
pub mod generated;
mod group;
mod half;
pub mod host;
#[cfg(feature = "alloc")]
mod inspection;
mod kernel;
mod launch;
mod local;
#[cfg(feature = "alloc")]
mod module;
mod order;
mod outside;
#[cfg(feature = "macros")]
pub mod prelude;
#[cfg(feature = "std")]
mod print;
mod private;
mod proof;
pub mod random;
mod range;
#[cfg(feature = "alloc")]
mod rounding;
#[cfg(feature = "macros")]
pub mod sample;
#[cfg(feature = "alloc")]
mod shape;
mod sharing;
#[cfg(feature = "alloc")]
mod strided;

pub use usm_core;
#[cfg(feature = "alloc")]
pub use usm_kernel_ir::Fault;

pub use argument::{
    Arguments, Atomic, Bind, Fields, Output, Parameter, ParameterInfo, ParameterKind, Read, ReadColumns,
    ReadFields, Signature, Structure, Tuple, Value, Write, WriteColumns, WriteFields,
};
pub use atomic::AtomicElement;
#[cfg(target_has_atomic = "32")]
pub use atomic::AtomicF32;
#[cfg(all(target_has_atomic = "64", target_pointer_width = "64"))]
pub use atomic::AtomicF64;
#[cfg(feature = "alloc")]
pub use backend::Programmable;
pub use barrier::FenceSpace;
#[cfg(feature = "alloc")]
pub use call::Argument;
#[cfg(feature = "alloc")]
pub use checked::CheckError;
pub use collective::{Collective, SubGroups};
pub use complex::{Complex, Complex32, Complex64};
pub use constant::Constant;
#[cfg(feature = "alloc")]
pub use declared_function::{Check, DeclaredFunction};
pub use error::{ArgumentError, LaunchError};
#[cfg(feature = "alloc")]
pub use executable::{DeviceCode, Executable, has_code};
pub use generated::{CheckedCode, VouchedKernel};
#[doc(hidden)]
pub use group::Axis;
pub use group::{Group, Items};
pub use half::{Bf16, F16};
pub use kernel::{Description, Kernel, LocalLengths, LocalViews, Values, Views};
pub use launch::Launch;
pub use local::{Local, LocalParameter, LocalSignature, LocalSize, ZeroedLocal};
#[cfg(feature = "alloc")]
pub use module::{BuildError, Code, Formats, Function, FunctionInfo, Module};
pub use order::{InOrder, Order, ReverseOrder, ShuffledOrder};
pub use outside::{IndexOutside, Place, Subject};
#[cfg(feature = "std")]
pub use print::set_printer;
#[cfg(feature = "std")]
#[doc(hidden)]
pub use print::show_printed;
pub use private::{Private, PrivateArrays};
pub use proof::{Bounds, ItemOrder, Proof, RaceDeed, RaceSide, ShownRace};
pub use range::{Id, Item, NdRange, Range, RangeError};
#[cfg(feature = "alloc")]
pub use shape::Shape;
#[doc(hidden)]
pub use sharing::{Concurrent, Elements, Exclusive, SharedElement, Sharing};
#[cfg(feature = "macros")]
pub use usm_kernel_macros::{Structure, kernel, kernels};
