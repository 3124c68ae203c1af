#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

extern crate proc_macro;

use proc_macro::TokenStream;

/// Makes a kernel of a function: a structure without fields of the function's name, which is a
/// `Kernel` and has `DeviceCode`.
///
/// `#[kernel]`, or with `group = 256` or `group = [16, 16]` for the only local size that it may run
/// with, and `dimensions = 2`, where neither the group nor the ids of the body say how many there
/// are.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match usm_kernel_rust::kernel(arguments.into(), item.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}

/// Makes kernels of the functions with `#[kernel]` in a module, `#[kernels] mod name { .. }`, which
/// see the module's functions with `#[kernel_fn]` and its constants of numbers.
///
/// A `#[kernel_fn]` has scalars and arrays (`&[T]`, `&mut [T]`) as parameters and a scalar or
/// nothing as its result. It is put in where it is called, so it may have barriers, and an array
/// may be in any memory; it calls others but not itself. It exists in kernels only.
#[proc_macro_attribute]
pub fn kernels(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match usm_kernel_rust::kernels(arguments.into(), item.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
