#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

extern crate proc_macro;

mod attribute;
mod body;
mod expression;
mod scope;
mod signature;

use proc_macro::TokenStream;

/// Makes a kernel of a function: a structure without fields of the function's name, which is a `Kernel` and has `DeviceCode`.
///
/// `#[kernel]`, or with `group = 256` or `group = [16, 16]` for the only local size that it may run with, and `dimensions = 2`, where neither the
/// group nor the ids of the body say how many there are.
#[proc_macro_attribute]
pub fn kernel(arguments: TokenStream, item: TokenStream) -> TokenStream {
    match attribute::expand(arguments.into(), item.into()) {
        Ok(tokens) => tokens.into(),
        Err(error) => error.into_compile_error().into(),
    }
}
