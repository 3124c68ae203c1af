#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

extern crate proc_macro;

use proc_macro::TokenStream;

/// Makes a kernel of a function: a unit structure of the function's name that implements `Kernel`
/// and `DeviceCode`.
///
/// `#[kernel]`, or with arguments. `group = 256` or `group = [16, 16]` fixes the local size.
/// `dimensions = 2` gives the number of dimensions if neither the group nor the ids in the body
/// determine it.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match usm_kernel_rust::kernel(arguments.into(), item.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Lets kernels take arrays of a structure, `&[S]` and `&mut [S]`: implements `Structure` of
/// usm-kernel, and `Pod` and `Zeroable` of bytemuck.
///
/// The structure has `#[repr(C)]` and fields without padding, each of them an integer of 8 to 64
/// bits, `f32`, `f64`, `F16` or `Bf16`. It implements `Copy`, and lies beside its kernels in a
/// module with `#[kernels]`.
#[proc_macro_derive(Structure)]
pub fn structure(item: TokenStream) -> TokenStream {
    match usm_kernel_rust::structure(item.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Makes kernels of the functions with `#[kernel]` in a module, `#[kernels] mod name { .. }`. They
/// can use the module's functions with `#[kernel_fn]` and its numeric constants.
///
/// A `#[kernel_fn]` has scalars and arrays (`&[T]`, `&mut [T]`) as parameters, and a scalar or
/// nothing as its result. It is inlined at each call, so it may contain barriers, and an array may
/// lie in any memory. It may call other functions but not itself. It exists in kernels only.
#[proc_macro_attribute]
pub fn kernels(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match usm_kernel_rust::kernels(arguments.into(), item.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
