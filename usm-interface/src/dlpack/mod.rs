//! DLPack 1.3: the C structures, their validation, device and type codes.
//!
//! Strides are in **elements**, `byte_offset` is in **bytes**. [`abi`] has the structures and all
//! unsafe code. [`RawTensor`] is their safe, borrowed copy, and [`Tensor`] is a checked one.

#[allow(unsafe_code)] // The only unsafe code of the crate: C structures behind pointers.
pub mod abi;
mod device;
mod validate;

pub use device::{Device, DeviceType, StreamArgument, stream_argument};
pub use validate::{
    DataType, FLAG_IS_COPIED, FLAG_READ_ONLY, FLAG_SUBBYTE_PADDED, RawTensor, Tensor, Version,
};
