//! Generates the items of an attribute.

use alloc::rc::Rc;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::spanned::Spanned as _;
use syn::{Error, Item, ItemFn, Result, Token};
use usm_kernel_ir::{Kernel, Parameter, SubGroups, emit, proof, verify};

use crate::arguments::{Arguments, attribute_of, is};
use crate::manifest::found_crate;
use crate::module::Module;
use crate::place::error_of;
use crate::reader::Reader;
use crate::{conditional, instance, nesting, place};

/// The expansion of `#[kernel]` on a function: a structure and its implementations.
///
/// # Errors
/// A refusal, on its tokens.
pub fn kernel(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    nesting::check_attribute(&arguments)?;
    nesting::check_attribute(&item)?;
    expand(&syn::parse2(ungroup(arguments))?, &syn::parse2(ungroup(item))?, Rc::default())
}

/// The tokens without the invisible groups around what a macro by example puts in for `$n:literal`
/// or `$t:ty`. A group stays where its operators could bind to what is around it.
fn ungroup(tokens: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            out.extend([token]);
            continue;
        };
        let inner = ungroup(group.stream());
        let all: Vec<TokenTree> = inner.clone().into_iter().collect();
        let is =
            |token: &TokenTree, mark| matches!(token, TokenTree::Punct(found) if found.as_char() == mark);
        let is_plain = match &all[..] {
            [_] => true,
            // References, and types with arguments.
            [first, .., last] => is(first, '&') || is(last, '>'),
            [] => false,
        };
        if group.delimiter() == Delimiter::None && is_plain {
            out.extend(inner);
            continue;
        }
        let mut other = Group::new(group.delimiter(), inner);
        other.set_span(group.span());
        out.extend([TokenTree::Group(other)]);
    }
    out
}

/// The nodes of a kernel, or of each of its instances, verified and without races that every launch
/// has.
pub(crate) fn nodes(item: &ItemFn, arguments: &Arguments, module: &Rc<Module>) -> Result<Vec<Kernel>> {
    let nodes = |one: &ItemFn| check(one, arguments, Rc::clone(module)).map(|(kernel, _)| kernel);
    instance::of(item, arguments)?.iter().map(|one| one.name_in_errors(nodes(&one.item))).collect()
}

fn check(item: &ItemFn, arguments: &Arguments, module: Rc<Module>) -> Result<(Kernel, proof::Claims)> {
    place::forget_spans();
    let kernel = front_end(item, arguments, module)?;
    verify(&kernel).map_err(|refusal| error_of(&refusal))?;
    let mut claims = proof::claims(&kernel).map_err(|refusal| error_of(&refusal))?;
    // A launch makes these arrays as long as they have to be.
    claims.bounds.retain(|bound| !kernel.array(bound.array).is_log());
    Ok((kernel, claims))
}

/// Generates the items of a kernel, or of each of its instances, from a function and its module.
fn expand(arguments: &Arguments, item: &ItemFn, module: Rc<Module>) -> Result<TokenStream> {
    let mut all = TokenStream::new();
    for one in instance::of(item, arguments)? {
        all.extend(one.name_in_errors(expand_one(arguments, &one.item, Rc::clone(&module)))?);
    }
    Ok(all)
}

fn expand_one(arguments: &Arguments, item: &ItemFn, module: Rc<Module>) -> Result<TokenStream> {
    let path = match &arguments.path {
        Some(path) => quote!(#path).to_string().replace(' ', ""),
        None => found_crate(),
    };
    let (kernel, claims) = check(item, arguments, module)?;
    let spir_v = emit::SpirV::new(&kernel, &claims);
    let name = &item.sig.ident;
    let text = emit::rust(&kernel, &claims, &name.to_string(), &path, Some(&spir_v));
    let code = tokens(&text).map_err(|error| {
        Error::new(
            name.span(),
            format!("the generated code is no Rust, which is a defect of usm-kernel-macros: {error}"),
        )
    })?;
    let (visibility, attributes) = (&item.vis, &item.attrs);
    let voucher = item.sig.unsafety.map(|unsafety| vouch(unsafety, attributes));
    Ok(quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, Default)]
        #visibility struct #name;

        #code
        #voucher
    })
}

/// The tokens of generated code. The compiler's reader makes them: that of proc-macro2, which would
/// read the text before it, takes as long as the rest of an expansion.
fn tokens(text: &str) -> core::result::Result<TokenStream, String> {
    if proc_macro::is_available() {
        let tokens = text.parse::<proc_macro::TokenStream>();
        return tokens.map(TokenStream::from).map_err(|error| error.to_string());
    }
    text.parse::<TokenStream>().map_err(|error| error.to_string())
}

/// An unsafe function at the place of the word `unsafe`. The compiler does not apply a crate's rule
/// about unsafe code to what an attribute writes, but to this function it does. What the kernel
/// allows is allowed here.
fn vouch(unsafety: Token![unsafe], attributes: &[syn::Attribute]) -> TokenStream {
    let lints = attributes.iter().filter(|attribute| is(attribute, "allow"));
    quote_spanned! { unsafety.span=>
        #(#lints)*
        const _: unsafe fn() = {
            #unsafety fn vouched() {}
            vouched
        };
    }
}

/// The expansion of `#[kernels]` on a module: its kernels, with the module's functions and
/// constants, and all other items unchanged.
///
/// # Errors
/// A refusal, on its tokens.
pub fn kernels(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !arguments.is_empty() {
        return Err(Error::new(
            arguments.span(),
            "`#[kernels]` has no arguments: write them at each `#[kernel]`",
        ));
    }
    nesting::check_attribute(&item)?;
    let mut item: syn::ItemMod = syn::parse2(ungroup(item))?;
    let Some((_, items)) = &mut item.content else {
        return Err(Error::new(item.span(), "write the module's items here: `mod name { .. }`"));
    };
    let module = Rc::new(Module::of(items)?);
    let mut out = TokenStream::new();
    let mut errors: Option<Error> = None;
    for item in items.iter_mut() {
        let Item::Fn(function) = item else {
            // The generated Rust does not use a constant that only kernels name.
            if matches!(item, Item::Const(_)) {
                out.extend(quote!(#[allow(dead_code)]));
            }
            item.to_tokens(&mut out);
            continue;
        };
        if function.attrs.iter().any(|attribute| is(attribute, "kernel_fn")) {
            continue;
        }
        let expansion = match attribute_of(function) {
            Ok(None) => {
                function.to_tokens(&mut out);
                continue;
            }
            Ok(Some(arguments)) => {
                function.attrs.retain(|attribute| !is(attribute, "kernel"));
                expand(&arguments, function, Rc::clone(&module))
            }
            Err(error) => Err(error),
        };
        match expansion {
            Ok(tokens) => out.extend(tokens),
            Err(error) => match &mut errors {
                Some(errors) => errors.combine(error),
                None => errors = Some(error),
            },
        }
    }
    if let Some(error) = errors {
        return Err(error);
    }
    let (attributes, visibility, name) = (&item.attrs, &item.vis, &item.ident);
    Ok(quote! { #(#attributes)* #visibility mod #name { #out } })
}

fn front_end(item: &ItemFn, arguments: &Arguments, neighbours: Rc<Module>) -> Result<Kernel> {
    for part in [item.sig.to_token_stream(), item.block.to_token_stream()] {
        if let Some(span) = conditional::first(part) {
            return Err(Error::new(span, conditional::REASON));
        }
    }
    let mut reader = Reader::new(item, neighbours);
    reader.read_signature(&item.sig)?;
    let rank = arguments.group.as_ref().map(|(sizes, _)| sizes.len() as u8);
    if let Some((sizes, span)) = &arguments.group {
        if !(1..=3).contains(&sizes.len()) {
            return Err(Error::new(
                *span,
                format!("{} sizes; a range has 1, 2 or 3 dimensions", sizes.len()),
            ));
        }
        reader.kernel.group = Some(sizes.clone());
    }
    if let Some((width, span)) = arguments.sub_group {
        let group = reader.kernel.group.as_deref().unwrap_or(&[0]);
        if group.contains(&0) {
            return Err(Error::new(span, "sub-groups need the group's size: write `group = 64` too"));
        }
        let sub_groups = SubGroups::new(group, width).map_err(|message| Error::new(span, message))?;
        reader.sub_groups = Some(sub_groups);
    }
    let body = reader.read_block(&item.block)?;
    reader.kernel.body = core::mem::take(&mut reader.first);
    reader.kernel.body.extend(body);
    let dimensions = arguments.dimensions.or(rank).unwrap_or(reader.dimensions.max(1));
    if let (Some(rank), Some((_, span))) = (rank, &arguments.group) {
        if rank != dimensions {
            return Err(Error::new(*span, format!("a group of {rank} sizes for {dimensions} dimensions")));
        }
    }
    reader.kernel.dimensions = dimensions;
    if let Some(first) = reader.item_statement() {
        reader.kernel.body.insert(0, first);
    }
    let of_parameters = reader.structures.iter().filter_map(|(array, number)| {
        let structure = reader.neighbours.structures[*number].clone();
        let is_parameter = reader.kernel.array(*array).space.is_parameter();
        is_parameter.then_some((Parameter::Array(*array), structure))
    });
    let of_parameters: Vec<_> = of_parameters.collect();
    reader.kernel.structures.extend(of_parameters);
    Ok(reader.kernel)
}
