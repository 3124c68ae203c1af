//! Types of numbers, by their names.

use syn::spanned::Spanned as _;
use syn::{GenericArgument, PathArguments, Result, Type};
use usm_kernel_ir::Scalar;

use crate::refusal::refuse;

/// The scalar of a type's name.
pub(crate) fn scalar(ty: &syn::Type) -> Result<Scalar> {
    // What a macro has for `$t:ty`.
    if let syn::Type::Group(inner) = ty {
        return scalar(&inner.elem);
    }
    if let syn::Type::Path(path) = ty {
        if let Some(name) = path.path.get_ident() {
            let name = name.to_string();
            // Ids and indices have 64 bits on every target.
            let name = match name.as_str() {
                "usize" => "u64",
                // The structures of usm-kernel.
                "F16" => "f16",
                "Bf16" => "bf16",
                "f16" | "bf16" => "",
                name => name,
            };
            if let Some(scalar) = Scalar::from_name(name) {
                return Ok(scalar);
            }
        }
    }
    refuse(
        ty.span(),
        "a kernel knows bool, i8 to i64, u8 to u64, usize, f32, f64, and as elements F16, Bf16, Complex32, Complex64 and a structure with `#[derive(Structure)]` \
         beside it, in a module with `#[kernels]`",
    )
}

pub(crate) fn element_type(ty: &Type) -> Result<Scalar> {
    if matches!(ty, Type::Path(path) if path.path.is_ident("usize")) {
        return refuse(ty.span(), "elements have the same width everywhere: write `u64`");
    }
    scalar(ty)
}

/// The element type of `Atomic<T>`.
pub(crate) fn atomic_element(ty: &Type) -> Result<Option<Scalar>> {
    let Type::Path(path) = ty else { return Ok(None) };
    let Some(last) = path.path.segments.last().filter(|last| last.ident == "Atomic") else { return Ok(None) };
    if let PathArguments::AngleBracketed(arguments) = &last.arguments {
        if let Some(GenericArgument::Type(inner)) = arguments.args.first() {
            return element_type(inner).map(Some);
        }
    }
    refuse(last.span(), "write `Atomic<u32>`")
}
