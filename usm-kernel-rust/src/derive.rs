//! Structures with `#[derive(Structure)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::spanned::Spanned as _;
use syn::{Error, Fields, Generics, Ident, Item, ItemStruct, Member, Result, Type};
use usm_kernel_ir::{Scalar, Structure};

use crate::conditional;
use crate::manifest::found_crate;
use crate::module::{complex_structures, is_complex_name};
use crate::refusal::refuse;
use crate::types::scalar;

/// The structures among items, those that derive `Structure`, and complex numbers.
pub(crate) fn all(items: &[Item]) -> Result<Vec<Structure>> {
    let structures = items.iter().filter_map(|item| match item {
        Item::Struct(item) if derives(item) => Some(of_item(item)),
        _ => None,
    });
    structures.chain(complex_structures().map(Ok)).collect()
}

/// The position of a field.
pub(crate) fn position(structure: &Structure, name: &Member) -> Result<usize> {
    let text = match name {
        Member::Named(name) => name.to_string(),
        Member::Unnamed(number) => number.index.to_string(),
    };
    match structure.fields.iter().position(|(field, _)| *field == text) {
        Some(position) => Ok(position),
        None => {
            let fields: Vec<&str> = structure.fields.iter().map(|(field, _)| field.as_str()).collect();
            let (of, fields) = (&structure.name, fields.join(", "));
            refuse(name.span(), format!("`{of}` has no field `{text}`: it has {fields}"))
        }
    }
}

fn derives(item: &ItemStruct) -> bool {
    item.attrs.iter().filter(|attribute| attribute.path().is_ident("derive")).any(|attribute| {
        let mut is_here = false;
        let _ = attribute.parse_nested_meta(|meta| {
            is_here |= meta.path.segments.last().is_some_and(|last| last.ident == "Structure");
            Ok(())
        });
        is_here
    })
}

fn of_item(item: &ItemStruct) -> Result<Structure> {
    let name = item.ident.to_string();
    if let Some(span) = conditional::first(item.to_token_stream()) {
        return Err(Error::new(span, conditional::REASON));
    }
    let mut layouts = item.attrs.iter().filter(|attribute| attribute.path().is_ident("repr"));
    if !layouts.next().is_some_and(is_c) || layouts.next().is_some() {
        return refuse(
            item.ident.span(),
            format!("write `#[repr(C)]`, and no other `repr`, before `{name}`: fields in this order"),
        );
    }
    no_parameters(&item.generics)?;
    let Fields::Named(fields) = &item.fields else {
        return refuse(item.ident.span(), format!("`{name}` needs fields with names"));
    };
    let mut structure = Structure { name, fields: Vec::new() };
    for field in &fields.named {
        let text = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        if matches!(field.ty, Type::Reference(_) | Type::Ptr(_)) {
            return refuse(
                field.ty.span(),
                format!("field `{text}` is a pointer, which no device follows: take an index"),
            );
        }
        if is_complex_name(&field.ty) {
            return refuse(
                field.ty.span(),
                format!("field `{text}` is no number: write its parts, `{text}_re` and `{text}_im`"),
            );
        }
        let Ok(ty) = scalar(&field.ty) else {
            return refuse(
                field.ty.span(),
                format!(
                    "field `{text}` is no number: fields are of i8 to i64, u8 to u64, f32, f64, F16 or Bf16"
                ),
            );
        };
        if ty == Scalar::Bool || matches!(&field.ty, Type::Path(path) if path.path.is_ident("usize")) {
            return refuse(
                field.ty.span(),
                format!("field `{text}`: write `u8` for bool, and `u64` for usize"),
            );
        }
        structure.fields.push((text, ty));
    }
    if structure.fields.is_empty() {
        return refuse(item.ident.span(), format!("`{}` has no fields", structure.name));
    }
    if let Some(field) = structure.padded() {
        let before = match structure.fields.get(field) {
            Some((name, _)) => format!("before `{name}`"),
            None => "at its end".to_string(),
        };
        return refuse(
            item.ident.span(),
            format!(
                "`{}` has padding {before}: put the widest fields first, and fill the rest with a field",
                structure.name
            ),
        );
    }
    Ok(structure)
}

/// Whether the layout is C's alone: `align` would add bytes that no field has.
fn is_c(repr: &syn::Attribute) -> bool {
    repr.parse_args::<Ident>().is_ok_and(|layout| layout == "C")
}

fn no_parameters(generics: &Generics) -> Result<()> {
    match generics.params.first() {
        Some(parameter) => refuse(parameter.span(), "a structure of kernels has no parameters"),
        None => Ok(()),
    }
}

/// The expansion of `#[derive(Structure)]`.
///
/// # Errors
/// A refusal, on its tokens.
pub fn structure(item: TokenStream) -> Result<TokenStream> {
    let item: ItemStruct = syn::parse2(item)?;
    let structure = of_item(&item)?;
    let path: syn::Path = syn::parse_str(&found_crate())?;
    let type_of = |ty: Scalar| match ty {
        Scalar::F16 => quote!(#path::F16),
        Scalar::Bf16 => quote!(#path::Bf16),
        other => {
            let name = Ident::new(other.name(), item.ident.span());
            quote!(::core::primitive::#name)
        }
    };
    let (name, text, bytes) = (&item.ident, item.ident.to_string(), structure.bytes() as usize);
    let fields: Vec<&str> = structure.fields.iter().map(|(name, _)| name.as_str()).collect();
    let types: Vec<_> = structure.fields.iter().map(|(_, ty)| type_of(*ty)).collect();
    let places = item.fields.iter().filter_map(|field| field.ident.as_ref());
    let is_mixed = structure.columns().len() > 1;
    let field = if is_mixed { quote!(::core::primitive::u8) } else { types[0].clone() };
    let types_of_fields = is_mixed.then(|| {
        let names = structure.fields.iter().map(|(_, ty)| ty.name());
        quote!(const TYPES: &'static [&'static ::core::primitive::str] = &[#(#names),*];)
    });
    Ok(quote! {
        const _: () = {
            // SAFETY: its fields, in the order of C, are numbers, as the next constant proves, and
            // it has the bytes of these alone, as the one behind it proves; so it has no padding,
            // and all bits are a value.
            unsafe impl #path::generated::bytemuck::Zeroable for #name {}
            // SAFETY: as above; `Copy` is demanded.
            unsafe impl #path::generated::bytemuck::Pod for #name {}

            const _: fn(&#name) -> (#(&#types,)*) = |one| (#(&one.#places,)*);
            const _: [(); #bytes] = [(); ::core::mem::size_of::<#name>()];

            impl #path::Structure for #name {
                type Field = #field;
                const NAME: &'static ::core::primitive::str = #text;
                const FIELDS: &'static [&'static ::core::primitive::str] = &[#(#fields),*];
                #types_of_fields
            }
        };
    })
}
