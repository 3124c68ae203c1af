//! Generates the items of an attribute.

use alloc::rc::Rc;
use core::cell::RefCell;
use std::collections::HashMap;

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, quote, quote_spanned};
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Error, Expr, Item, ItemFn, Lit, Path, Result, Token, Type};
use usm_kernel_ir::{Kernel, Parameter, Place, SubGroups, emit, proof, verify};

pub(crate) use crate::scope::Module;
use crate::scope::{Scope, scalar};
use crate::{body, conditional, constant, instance, nesting, print, signature, structure};

/// The arguments of the attribute.
#[derive(Default)]
pub(crate) struct Arguments {
    group: Option<(Vec<u64>, Span)>,
    dimensions: Option<u8>,
    sub_group: Option<(u64, Span)>,
    pub(crate) instances: Option<Vec<Type>>,
    path: Option<Path>,
}

impl Parse for Arguments {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut arguments = Self::default();
        while !input.is_empty() {
            // `crate` is a keyword of Rust.
            let key = if input.peek(Token![crate]) {
                let word: Token![crate] = input.parse()?;
                syn::Ident::new("krate", word.span)
            } else {
                input.parse()?
            };
            if key == "instances" {
                let types;
                syn::parenthesized!(types in input);
                let types = types.parse_terminated(Type::parse, Token![,])?;
                arguments.instances = Some(types.into_iter().collect());
            } else {
                input.parse::<Token![=]>()?;
            }
            match key.to_string().as_str() {
                "instances" => {}
                "krate" => arguments.path = Some(input.parse()?),
                "group" => {
                    let value: Expr = input.parse()?;
                    let sizes = match &value {
                        Expr::Array(sizes) => sizes.elems.iter().map(number).collect::<Result<_>>()?,
                        one => vec![number(one)?],
                    };
                    arguments.group = Some((sizes, value.span()));
                }
                "dimensions" => {
                    let value: Expr = input.parse()?;
                    let dimensions = number(&value)?;
                    if !(1..=3).contains(&dimensions) {
                        return Err(Error::new(
                            value.span(),
                            format!("{dimensions} dimensions; a range has 1, 2 or 3"),
                        ));
                    }
                    arguments.dimensions = Some(dimensions as u8);
                }
                "sub_group" => {
                    let value: Expr = input.parse()?;
                    arguments.sub_group = Some((number(&value)?, value.span()));
                }
                _ => {
                    return Err(Error::new(
                        key.span(),
                        "write `group = 256`, `dimensions = 2`, `sub_group = 16`, `instances(f32, i32)` or `crate = path::of::usm_kernel`",
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(arguments)
    }
}

fn number(value: &Expr) -> Result<u64> {
    match value {
        Expr::Lit(syn::ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse(),
        Expr::Tuple(sizes) => {
            let sizes: Vec<String> =
                sizes.elems.iter().map(|one| one.to_token_stream().to_string()).collect();
            Err(Error::new(value.span(), format!("a tuple: write `[{}]`", sizes.join(", "))))
        }
        other => Err(Error::new(other.span(), "an attribute sees no values of other items: write a number")),
    }
}

thread_local! {
    /// Spans of the places that the kernel's nodes have.
    static SPANS: RefCell<HashMap<Place, Span>> = RefCell::default();
}

/// The place of a token, stored for errors.
pub(crate) fn place(span: Span) -> Place {
    let start = span.start();
    let place = Place { file: 0, line: start.line as u32, column: start.column as u32 + 1 };
    SPANS.with_borrow_mut(|spans| {
        spans.entry(place).or_insert(span);
    });
    place
}

/// Moves an error of the IR to the user's tokens.
fn refused(refusal: &usm_kernel_ir::Refusal) -> Error {
    let span = |place| SPANS.with_borrow(|spans| spans.get(&place).copied());
    let first = span(refusal.place).unwrap_or_else(Span::call_site);
    let mut error = Error::new(first, &refusal.message);
    if let Some(other) = refusal.other.filter(|other| *other != refusal.place).and_then(span) {
        error.combine(Error::new(other, "the other place"));
    }
    error
}

/// The expansion of `#[kernel]` on a function: a structure and its implementations.
///
/// # Errors
/// A refusal, on its tokens.
pub fn kernel(arguments: TokenStream, item: TokenStream) -> Result<TokenStream> {
    nesting::check_attribute(&arguments)?;
    nesting::check_attribute(&item)?;
    expand(&syn::parse2(ungrouped(arguments))?, &syn::parse2(ungrouped(item))?, Rc::default())
}

/// The tokens without the invisible groups around what a macro by example puts in for `$n:literal`
/// or `$t:ty`. A group stays where its operators could bind to what is around it.
fn ungrouped(tokens: TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    for token in tokens {
        let TokenTree::Group(group) = token else {
            out.extend([token]);
            continue;
        };
        let inner = ungrouped(group.stream());
        let all: Vec<TokenTree> = inner.clone().into_iter().collect();
        let is =
            |token: &TokenTree, mark| matches!(token, TokenTree::Punct(found) if found.as_char() == mark);
        let alone = match &all[..] {
            [_] => true,
            // References, and types with arguments.
            [first, .., last] => is(first, '&') || is(last, '>'),
            [] => false,
        };
        if group.delimiter() == Delimiter::None && alone {
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
    let nodes = |one: &ItemFn| checked(one, arguments, Rc::clone(module)).map(|(kernel, _)| kernel);
    instance::of(item, arguments)?.iter().map(|one| one.name_in_errors(nodes(&one.item))).collect()
}

fn checked(item: &ItemFn, arguments: &Arguments, module: Rc<Module>) -> Result<(Kernel, proof::Claims)> {
    SPANS.with_borrow_mut(HashMap::clear);
    let kernel = front_end(item, arguments, module)?;
    verify(&kernel).map_err(|refusal| refused(&refusal))?;
    let mut claims = proof::claims(&kernel).map_err(|refusal| refused(&refusal))?;
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
    let (kernel, claims) = checked(item, arguments, module)?;
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
    let vouched = item.sig.unsafety.map(|unsafety| vouched(unsafety, attributes));
    Ok(quote! {
        #(#attributes)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, Default)]
        #visibility struct #name;

        #code
        #vouched
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
fn vouched(unsafety: Token![unsafe], attributes: &[syn::Attribute]) -> TokenStream {
    let allowed = attributes.iter().filter(|attribute| is(attribute, "allow"));
    quote_spanned! { unsafety.span=>
        #(#allowed)*
        const _: unsafe fn() = {
            #unsafety fn vouched() {}
            vouched
        };
    }
}

fn is(attribute: &syn::Attribute, name: &str) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == name)
}

/// The arguments of a function's attribute `kernel`; `None` if it has no such attribute.
pub(crate) fn attribute_of(function: &ItemFn) -> Result<Option<Arguments>> {
    let Some(attribute) = function.attrs.iter().find(|attribute| is(attribute, "kernel")) else {
        return Ok(None);
    };
    match &attribute.meta {
        syn::Meta::List(list) => syn::parse2(list.tokens.clone()).map(Some),
        _ => Ok(Some(Arguments::default())),
    }
}

impl Module {
    /// The functions and constants for kernels among a module's items.
    ///
    /// # Errors
    /// The refusal of a structure.
    pub(crate) fn of(items: &[Item]) -> Result<Self> {
        let mut module = Self { structures: structure::all(items)?, ..Self::default() };
        for item in items {
            match item {
                Item::Fn(function) if function.attrs.iter().any(|attribute| is(attribute, "kernel_fn")) => {
                    if conditional::first(function.to_token_stream()).is_some() {
                        module.conditional.push(function.sig.ident.to_string());
                        continue;
                    }
                    module.functions.push(Rc::new(function.clone()));
                }
                Item::Fn(function) if !function.attrs.iter().any(|attribute| is(attribute, "kernel")) => {
                    module.others.push(function.sig.ident.to_string());
                }
                Item::Const(item) if conditional::first(item.to_token_stream()).is_some() => {
                    module.conditional.push(item.ident.to_string());
                }
                Item::Const(item) if scalar(&item.ty).is_ok() => {
                    // A constant that is no number belongs to Rust only, until a kernel uses it.
                    let known = Self { constants: module.constants.clone(), ..Self::default() };
                    let mut scope = Scope::of_constants(Rc::new(known));
                    if let Ok(value) = constant::of_item(item, &mut scope) {
                        module.constants.push((item.ident.to_string(), value));
                    }
                }
                Item::Const(item) if matches!(&*item.ty, syn::Type::Array(_)) => {
                    module.tables.push(Rc::new(item.clone()));
                }
                _ => {}
            }
        }
        Ok(module)
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
    let mut item: syn::ItemMod = syn::parse2(ungrouped(item))?;
    let Some((_, items)) = &mut item.content else {
        return Err(Error::new(item.span(), "write the module's items here: `mod name { .. }`"));
    };
    let module = Rc::new(Module::of(items)?);
    let mut out = TokenStream::new();
    let mut failed: Option<Error> = None;
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
        let made = match attribute_of(function) {
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
        match made {
            Ok(tokens) => out.extend(tokens),
            Err(error) => match &mut failed {
                Some(failed) => failed.combine(error),
                None => failed = Some(error),
            },
        }
    }
    if let Some(error) = failed {
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
    let mut scope = Scope::new(item, neighbours);
    signature::read(&item.sig, &mut scope)?;
    let asked = arguments.group.as_ref().map(|(sizes, _)| sizes.len() as u8);
    if let Some((sizes, span)) = &arguments.group {
        if !(1..=3).contains(&sizes.len()) {
            return Err(Error::new(
                *span,
                format!("{} sizes; a range has 1, 2 or 3 dimensions", sizes.len()),
            ));
        }
        scope.kernel.group = Some(sizes.clone());
    }
    if let Some((width, span)) = arguments.sub_group {
        let group = scope.kernel.group.as_deref().unwrap_or(&[0]);
        if group.contains(&0) {
            return Err(Error::new(span, "sub-groups need the group's size: write `group = 64` too"));
        }
        let sub_groups = SubGroups::new(group, width).map_err(|message| Error::new(span, message))?;
        scope.sub_groups = Some(sub_groups);
    }
    let body = body::block(&item.block, &mut scope)?;
    scope.kernel.body = core::mem::take(&mut scope.first);
    scope.kernel.body.extend(body);
    let dimensions = arguments.dimensions.or(asked).unwrap_or(scope.dimensions.max(1));
    if let (Some(asked), Some((_, span))) = (asked, &arguments.group) {
        if asked != dimensions {
            return Err(Error::new(*span, format!("a group of {asked} sizes for {dimensions} dimensions")));
        }
    }
    scope.kernel.dimensions = dimensions;
    if let Some(first) = print::first(&scope) {
        scope.kernel.body.insert(0, first);
    }
    let of_parameters = scope.structures.iter().filter_map(|(array, number)| {
        let structure = scope.neighbours.structures[*number].clone();
        let is_parameter = scope.kernel.array(*array).space.is_parameter();
        is_parameter.then_some((Parameter::Array(*array), structure))
    });
    let of_parameters: Vec<_> = of_parameters.collect();
    scope.kernel.structures.extend(of_parameters);
    Ok(scope.kernel)
}

/// The path of usm-kernel in the user's crate: its own name, or its name inside the facade `usm`.
pub(crate) fn found_crate() -> String {
    // Inside usm-kernel and its tests the crate names itself.
    let manifest =
        std::env::var("CARGO_MANIFEST_DIR").map(|folder| std::path::PathBuf::from(folder).join("Cargo.toml"));
    let text =
        manifest.and_then(|file| std::fs::read_to_string(file).map_err(|_| std::env::VarError::NotPresent));
    let text = text.unwrap_or_default();
    dependency(&text).unwrap_or_else(|| "::usm_kernel".into())
}

/// Searches the dependencies of a manifest.
fn dependency(manifest: &str) -> Option<String> {
    let mut section = String::new();
    let mut facade = None;
    for line in manifest.lines().map(str::trim) {
        if let Some(head) = line.strip_prefix('[') {
            section = head.trim_end_matches(']').to_string();
            // `[dependencies.name]`
            let name =
                section.rsplit_once("dependencies.").map(|(_, name)| name.trim_matches('"').to_string());
            if name.as_deref() == Some("usm-kernel") {
                return Some("::usm_kernel".into());
            }
            if name.as_deref() == Some("usm") {
                facade = Some("::usm::kernel".to_string());
            }
            continue;
        }
        if !section.ends_with("dependencies") {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let key = key.trim().split('.').next().unwrap_or("").trim_matches('"');
        let is = |package: &str| {
            key == package || value.replace(' ', "").contains(&format!("package=\"{package}\""))
        };
        let crate_name = key.replace('-', "_");
        if is("usm-kernel") {
            return Some(format!("::{crate_name}"));
        }
        if is("usm") {
            facade = Some(format!("::{crate_name}::kernel"));
        }
    }
    facade
}

#[cfg(test)]
mod tests {
    use super::dependency;

    #[test]
    fn the_crate_is_found_by_any_name() {
        let found = |text: &str| dependency(text);
        assert_eq!(found("[dependencies]\nusm-kernel = \"0.1\"").as_deref(), Some("::usm_kernel"));
        assert_eq!(found("[dependencies]\nusm-kernel.workspace = true").as_deref(), Some("::usm_kernel"));
        assert_eq!(found("[dependencies.usm-kernel]\nversion = \"0.1\"").as_deref(), Some("::usm_kernel"));
        let renamed = "[dev-dependencies]\nkernels = { package = \"usm-kernel\", version = \"0.1\" }";
        assert_eq!(found(renamed).as_deref(), Some("::kernels"));
        assert_eq!(found("[dependencies]\nusm = \"0.1\"").as_deref(), Some("::usm::kernel"));
        assert_eq!(
            found("[dependencies]\nusm = \"0.1\"\nusm-kernel = \"0.1\"").as_deref(),
            Some("::usm_kernel")
        );
        assert_eq!(found("[package]\nname = \"usm-kernel\""), None);
    }
}
