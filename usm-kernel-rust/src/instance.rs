//! Functions with type parameters: one function for each list of types.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::spanned::Spanned as _;
use syn::{Error, GenericParam, Generics, ItemFn, Result, Type};

use crate::arguments::Arguments;
use crate::refusal::refuse;
use crate::types::scalar;

/// A kernel without type parameters.
pub(crate) struct Instance {
    pub(crate) item: ItemFn,
    /// The type of each parameter.
    types: Vec<(Ident, Ident)>,
}

impl Instance {
    /// Adds the instance's name to errors.
    pub(crate) fn name_in_errors<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            if self.types.is_empty() {
                return error;
            }
            let mut all = error
                .into_iter()
                .map(|one| Error::new(one.span(), format!("{one} (where {})", describe(&self.types))));
            let mut first =
                all.next().unwrap_or_else(|| Error::new(self.item.span(), "this instance is refused"));
            all.for_each(|other| first.combine(other));
            first
        })
    }
}

/// The kernel itself, or its instances, which are called `name_f32`.
pub(crate) fn of(item: &ItemFn, arguments: &Arguments) -> Result<Vec<Instance>> {
    let parameters = parameters(&item.sig.generics)?;
    let type_lists = match (&arguments.instances, &parameters[..]) {
        (None, []) => return Ok(vec![Instance { item: item.clone(), types: Vec::new() }]),
        (None, [first, ..]) => {
            return refuse(
                first.span(),
                format!("which types is `{first}`? write `#[kernel(instances(f32, i32))]`"),
            );
        }
        (Some(type_lists), []) => {
            let at = type_lists.first().map_or_else(|| item.sig.ident.span(), syn::spanned::Spanned::span);
            return refuse(at, "instances of a kernel without type parameters");
        }
        (Some(type_lists), _) => type_lists,
    };
    let mut instances: Vec<Instance> = Vec::new();
    for types in type_lists {
        let types = pair_types(&parameters, types)?;
        if instances.iter().any(|other| other.types == types) {
            return refuse(types[0].1.span(), format!("the instance {} stands here twice", describe(&types)));
        }
        let mut one = concrete(item, &types)?;
        let last: Vec<String> = types.iter().map(|(_, ty)| ty.to_string()).collect();
        let name = one.sig.ident.to_string();
        let name = format!("{}_{}", name.trim_start_matches("r#"), last.join("_"));
        one.sig.ident = Ident::new(&name, item.sig.ident.span());
        instances.push(Instance { item: one, types });
    }
    if instances.is_empty() {
        return refuse(item.sig.ident.span(), "no instances: write `#[kernel(instances(f32, i32))]`");
    }
    Ok(instances)
}

/// A function of kernels with the types of a call, `name::<f32>(..)`.
pub(crate) fn of_call(function: &ItemFn, path: &syn::ExprPath) -> Result<Option<ItemFn>> {
    let parameters = parameters(&function.sig.generics)?;
    let type_arguments = match path.path.segments.last().map(|last| &last.arguments) {
        Some(syn::PathArguments::AngleBracketed(brackets)) => brackets.args.iter().collect(),
        _ => Vec::new(),
    };
    if parameters.is_empty() && type_arguments.is_empty() {
        return Ok(None);
    }
    if parameters.len() != type_arguments.len() {
        return refuse(
            path.span(),
            format!(
                "`{}` has {} type parameters, {} types are given: write `{0}::<f32>(..)`",
                function.sig.ident,
                parameters.len(),
                type_arguments.len()
            ),
        );
    }
    let types = parameters.into_iter().zip(type_arguments).map(|(parameter, argument)| match argument {
        syn::GenericArgument::Type(ty) => Ok((parameter, name_of(ty)?)),
        other => refuse(other.span(), "a type is needed here, such as `f32`"),
    });
    concrete(function, &types.collect::<Result<Vec<_>>>()?).map(Some)
}

fn parameters(generics: &Generics) -> Result<Vec<Ident>> {
    if let Some(clause) = &generics.where_clause {
        return refuse(clause.span(), "no bounds here: the instances say which types there are");
    }
    let parameter = |parameter: &GenericParam| match parameter {
        GenericParam::Type(ty) if ty.bounds.is_empty() && ty.default.is_none() => Ok(ty.ident.clone()),
        GenericParam::Type(ty) => {
            refuse(ty.span(), "no bounds here: the instances say which types there are")
        }
        other => refuse(other.span(), "the parameters of a kernel's types are types"),
    };
    generics.params.iter().map(parameter).collect()
}

/// The types of one instance: a single type, or several in parentheses.
fn pair_types(parameters: &[Ident], types: &Type) -> Result<Vec<(Ident, Ident)>> {
    let list: Vec<&Type> = match types {
        Type::Tuple(several) => several.elems.iter().collect(),
        Type::Paren(one) => vec![&one.elem],
        one => vec![one],
    };
    if list.len() != parameters.len() {
        return refuse(
            types.span(),
            format!(
                "{} types for {} type parameters: write `(f32, i32)` for two",
                list.len(),
                parameters.len()
            ),
        );
    }
    parameters.iter().zip(list).map(|(parameter, ty)| Ok((parameter.clone(), name_of(ty)?))).collect()
}

fn name_of(ty: &Type) -> Result<Ident> {
    let scalar_type = scalar(ty)?;
    let is_size = matches!(ty, Type::Path(path) if path.path.is_ident("usize"));
    Ok(Ident::new(if is_size { "usize" } else { scalar_type.name() }, ty.span()))
}

fn describe(types: &[(Ident, Ident)]) -> String {
    let all: Vec<String> = types.iter().map(|(name, ty)| format!("{name} is {ty}")).collect();
    all.join(", ")
}

/// The function with its type parameters replaced.
fn concrete(item: &ItemFn, types: &[(Ident, Ident)]) -> Result<ItemFn> {
    let mut item = item.clone();
    item.sig.generics = Generics::default();
    syn::parse2(replace(item.to_token_stream(), types))
}

/// Tokens keep their places, so errors point to them.
fn replace(tokens: TokenStream, types: &[(Ident, Ident)]) -> TokenStream {
    let one = |token| match token {
        TokenTree::Ident(name) => {
            let ty = types.iter().find(|(parameter, _)| *parameter == name);
            TokenTree::Ident(ty.map_or_else(|| name.clone(), |(_, ty)| at(ty, name.span())))
        }
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), replace(group.stream(), types));
            inner.set_span(group.span());
            TokenTree::Group(inner)
        }
        other => other,
    };
    tokens.into_iter().map(one).collect()
}

fn at(name: &Ident, span: Span) -> Ident {
    Ident::new(&name.to_string(), span)
}
