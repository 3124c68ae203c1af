//! The arguments of the attributes `kernel` and `kernels`.

use proc_macro2::Span;
use quote::ToTokens as _;
use syn::parse::{Parse, ParseStream};
use syn::spanned::Spanned as _;
use syn::{Error, Expr, ItemFn, Lit, Path, Result, Token, Type};

/// The arguments of the attribute.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) group: Option<(Vec<u64>, Span)>,
    pub(crate) dimensions: Option<u8>,
    pub(crate) sub_group: Option<(u64, Span)>,
    pub(crate) instances: Option<Vec<Type>>,
    pub(crate) path: Option<Path>,
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

pub(crate) fn is(attribute: &syn::Attribute, name: &str) -> bool {
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
