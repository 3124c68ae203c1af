//! Structures of numbers: elements of arrays, and values, which are their fields.

use proc_macro2::{Span, TokenStream};
use quote::{ToTokens as _, quote};
use syn::spanned::Spanned as _;
use syn::{
    Error, Expr as Rust, ExprField, ExprStruct, Fields, Generics, Ident, Item, ItemStruct, Member, Result,
    Type,
};
use usm_kernel_ir::{ArrayId, Expr, Scalar, Stmt, StmtKind, Structure, VarId};

use crate::ahead::of_value;
use crate::attribute::found_crate;
use crate::complex;
use crate::conditional;
use crate::expression::typed;
use crate::scope::{Meaning, Scope, refuse, scalar};
use crate::signature::place_of;
use crate::tuple;
use crate::view::{self, View};

/// The structures among items, those that derive `Structure`, and complex numbers.
pub(crate) fn all(items: &[Item]) -> Result<Vec<Structure>> {
    let derived = items.iter().filter_map(|item| match item {
        Item::Struct(item) if derives(item) => Some(of_item(item)),
        _ => None,
    });
    derived.chain(complex::structures().map(Ok)).collect()
}

/// The position of a field.
fn position(structure: &Structure, name: &Member) -> Result<usize> {
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
    let mut found = Structure { name, fields: Vec::new() };
    for field in &fields.named {
        let text = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        if matches!(field.ty, Type::Reference(_) | Type::Ptr(_)) {
            return refuse(
                field.ty.span(),
                format!("field `{text}` is a pointer, which no device follows: take an index"),
            );
        }
        if complex::is_named(&field.ty) {
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
        found.fields.push((text, ty));
    }
    if found.fields.is_empty() {
        return refuse(item.ident.span(), format!("`{}` has no fields", found.name));
    }
    if let Some(field) = found.padded() {
        let before = match found.fields.get(field) {
            Some((name, _)) => format!("before `{name}`"),
            None => "at its end".to_string(),
        };
        return refuse(
            item.ident.span(),
            format!(
                "`{}` has padding {before}: put the widest fields first, and fill the rest with a field",
                found.name
            ),
        );
    }
    Ok(found)
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

/// Refuses a structure where a number is needed.
pub(crate) fn refuse_number<T>(at: Span, number: usize, scope: &Scope) -> Result<T> {
    let Structure { name, fields } = &scope.neighbours.structures[number];
    refuse(at, format!("a `{name}` where a number is needed: name a field, such as `.{}`", fields[0].0))
}

/// The number of the structure that a type names.
pub(crate) fn of_type(ty: &Type, scope: &Scope) -> Option<usize> {
    let Type::Path(path) = ty else { return None };
    of_path(&path.path, scope)
}

pub(crate) fn of_path(path: &syn::Path, scope: &Scope) -> Option<usize> {
    let name = path.get_ident()?;
    scope.neighbours.structures.iter().position(|structure| name == &structure.name)
}

/// The element of an array of structures that a text names, before its index is read.
pub(crate) fn is_element(value: &Rust, scope: &Scope) -> bool {
    match value {
        Rust::Paren(inner) => is_element(&inner.expr, scope),
        Rust::Index(index) if !matches!(&*index.index, Rust::Range(_)) => {
            view::depth(value, scope) == Some(1)
                && matches!(view::root(&index.expr, scope), Ok(Some((id, _))) if scope.structures.contains_key(&id))
        }
        Rust::Path(path) => {
            let name = path.path.get_ident().and_then(|name| scope.find(name).ok());
            matches!(name, Some(Meaning::View(number)) if scope.views[number].is_structure(scope))
        }
        Rust::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => is_element(&unary.expr, scope),
        _ => false,
    }
}

/// The place of a field of an element: array, type and index.
pub(crate) fn field_place(field: &ExprField, scope: &mut Scope) -> Result<Option<(ArrayId, Scalar, Expr)>> {
    if !is_element(&field.base, scope) {
        return Ok(None);
    }
    let Some(found) = element(&field.base, scope)? else { return Ok(None) };
    let position = position(&structure_of(found.array, scope), &field.member)?;
    let at = place_of(field.member.span());
    let place = found.field(position, at, scope);
    Ok(place.map(|(array, index)| (array, scope.kernel.array(array).element, index)))
}

/// The type of a field of an element that is written.
pub(crate) fn field_type(field: &ExprField, scope: &Scope) -> Result<Scalar> {
    let base = referred(&field.base);
    may_write(base, scope)?;
    match view::root(base, scope)? {
        Some((id, _)) => {
            let structure = structure_of(id, scope);
            Ok(structure.fields[position(&structure, &field.member)?].1)
        }
        None => refuse(field.span(), "only variables, elements and their fields are assigned"),
    }
}

/// `particles[i] = p`: all values are computed before a field is set.
pub(crate) fn assign(left: &Rust, right: &Rust, scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    let needed = of_value(left, scope);
    if let Some(needed) = needed.filter(|_| of_value(right, scope) != needed) {
        return complex::refuse_other(right, needed, scope);
    }
    let values = tuple::parts(right, &[], scope)?;
    let values: Vec<Expr> = values.into_iter().map(|value| tuple::keep(value, scope)).collect();
    let places = written_places(left, scope)?;
    out.append(&mut scope.before);
    for ((array, index), value) in places.into_iter().zip(values) {
        let at = index.place;
        out.push(Stmt::new(StmtKind::Store { array, index, value }, at));
    }
    Ok(())
}

/// Exchanges two elements.
pub(crate) fn swap([one, two]: [&Rust; 2], scope: &mut Scope, out: &mut Vec<Stmt>) -> Result<()> {
    if let Some(needed) = of_value(one, scope).filter(|needed| of_value(two, scope) != Some(*needed)) {
        return complex::refuse_other(two, needed, scope);
    }
    let (first, second) = (written_places(one, scope)?, written_places(two, scope)?);
    let to_first = second.iter().zip(&first);
    let mut stores = Vec::new();
    for ((from, index), (to, place)) in to_first.chain(first.iter().zip(&second)) {
        let at = place.place;
        let value = Expr::load(*from, scope.kernel.array(*from).element, index.clone(), at);
        let store = StmtKind::Store { array: *to, index: place.clone(), value: tuple::keep(value, scope) };
        stores.push(Stmt::new(store, at));
    }
    out.append(&mut scope.before);
    out.append(&mut stores);
    Ok(())
}

/// The places of all fields of an element that is written.
pub(crate) fn written_places(left: &Rust, scope: &mut Scope) -> Result<Vec<(ArrayId, Expr)>> {
    may_write(referred(left), scope)?;
    places(left, scope)
}

/// What `*p` refers to.
pub(crate) fn referred(value: &Rust) -> &Rust {
    match value {
        Rust::Paren(inner) => referred(&inner.expr),
        Rust::Unary(unary) => referred(&unary.expr),
        other => other,
    }
}

/// Refuses to write fields of an array that was taken as `&[S]`.
fn may_write(base: &Rust, scope: &Scope) -> Result<()> {
    match view::root(base, scope)? {
        Some((id, true)) => {
            let name = scope.kernel.array(id).name.clone();
            refuse(base.span(), format!("`{name}` is only read: take `&mut [S]` and `&mut {name}[i]`"))
        }
        _ => Ok(()),
    }
}

fn element(value: &Rust, scope: &mut Scope) -> Result<Option<View>> {
    view::view(referred(value), scope)
}

fn structure_of(array: ArrayId, scope: &Scope) -> Structure {
    let number = scope.structures.get(&array).copied().unwrap_or_default();
    scope.neighbours.structures[number].clone()
}

/// The places of all fields of an element.
fn places(value: &Rust, scope: &mut Scope) -> Result<Vec<(ArrayId, Expr)>> {
    let at = place_of(value.span());
    let Some(mut found) = element(value, scope)? else {
        return refuse(value.span(), "an element of an array of structures is needed here");
    };
    found.keep(scope);
    let count = structure_of(found.array, scope).fields.len();
    Ok((0..count).filter_map(|position| found.field(position, at, scope)).collect())
}

/// The types of the fields of the structure that a type names.
pub(crate) fn types(ty: &Type, scope: &Scope) -> Option<Vec<Scalar>> {
    let structure = &scope.neighbours.structures[of_type(ty, scope)?];
    Some(structure.fields.iter().map(|(_, ty)| *ty).collect())
}

/// The meaning of a function's parameter that is a structure, a reference to one, or an array of
/// them; `None` for other types.
pub(crate) fn given(ty: &Type, mutable: bool, argument: &Rust, scope: &mut Scope) -> Result<Option<Meaning>> {
    let (of, needed, writes) = match ty {
        Type::Reference(reference) => match &*reference.elem {
            Type::Slice(slice) => (of_type(&slice.elem, scope), 2, reference.mutability.is_some()),
            other => (of_type(other, scope), 1, reference.mutability.is_some()),
        },
        other => (of_type(other, scope), 0, false),
    };
    let Some(number) = of else { return Ok(None) };
    let name = scope.neighbours.structures[number].name.clone();
    if needed == 0 {
        if of_value(argument, scope) != Some(number) {
            return complex::refuse_other(argument, number, scope);
        }
        let mut variables = Vec::new();
        for value in tuple::parts(argument, &[], scope)? {
            let (ty, at) = (value.ty, value.place);
            let variable = scope.hidden("field", ty, at);
            scope.before.push(Stmt::new(StmtKind::Set(variable, value), at));
            variables.push(variable);
        }
        scope.tuple_structures.insert(scope.tuples.len(), number);
        scope.tuples.push((variables, mutable));
        return Ok(Some(Meaning::Tuple(scope.tuples.len() - 1)));
    }
    let found = element(unreferenced(argument), scope)?;
    let found =
        found.filter(|found| found.depth() == needed && scope.structures.get(&found.array) == Some(&number));
    let Some(mut found) = found else {
        let what = if needed == 1 { "an element" } else { "an array, or a part of one," };
        return refuse(argument.span(), format!("{what} of `{name}` in memory is needed here"));
    };
    if writes && found.read_only {
        return refuse(argument.span(), "this is only read here: take `&mut`");
    }
    found.read_only = !writes;
    found.keep(scope);
    scope.views.push(found);
    Ok(Some(Meaning::View(scope.views.len() - 1)))
}

pub(crate) fn unreferenced(value: &Rust) -> &Rust {
    match value {
        Rust::Reference(inner) => unreferenced(&inner.expr),
        other => other,
    }
}

/// The values of the fields of an element.
pub(crate) fn loads(value: &Rust, scope: &mut Scope) -> Result<Vec<Expr>> {
    let at = place_of(value.span());
    let places = places(value, scope)?;
    Ok(places
        .into_iter()
        .map(|(array, index)| Expr::load(array, scope.kernel.array(array).element, index, at))
        .collect())
}

/// The values of `S { x: 1.0, y, ..other }`, in the order of the fields.
pub(crate) fn literal(literal: &ExprStruct, scope: &mut Scope) -> Result<Vec<Expr>> {
    let Some(number) = of_path(&literal.path, scope) else {
        return refuse(
            literal.path.span(),
            "a kernel knows structures with `#[derive(Structure)]` beside it, in a module with `#[kernels]`",
        );
    };
    let structure = scope.neighbours.structures[number].clone();
    let mut values: Vec<Option<Expr>> = vec![None; structure.fields.len()];
    for field in &literal.fields {
        let position = position(&structure, &field.member)?;
        let mut earlier: Vec<&mut Expr> = values.iter_mut().flatten().collect();
        let value = scope
            .read_after(&mut earlier, |scope| typed(&field.expr, structure.fields[position].1, scope))?;
        if values[position].replace(value).is_some() {
            return refuse(field.member.span(), "this field has two values");
        }
    }
    if let Some(rest) = &literal.rest {
        let mut earlier: Vec<&mut Expr> = values.iter_mut().flatten().collect();
        let others = scope.read_after(&mut earlier, |scope| tuple::parts(rest, &[], scope))?;
        if of_value(rest, scope) != Some(number) {
            return refuse(rest.span(), format!("a `{}` is needed here", structure.name));
        }
        for (value, other) in values.iter_mut().zip(others) {
            value.get_or_insert(other);
        }
    }
    match values.iter().position(Option::is_none) {
        Some(missing) => {
            refuse(literal.span(), format!("field `{}` has no value", structure.fields[missing].0))
        }
        None => Ok(values.into_iter().flatten().collect()),
    }
}

/// The field of a structure that is no variable and no element, such as a function's result.
pub(crate) fn field_of_value(field: &ExprField, scope: &mut Scope) -> Result<Option<Expr>> {
    if matches!(&*field.base, Rust::Path(_)) {
        return Ok(None);
    }
    let Some(number) = of_value(&field.base, scope) else { return Ok(None) };
    let position = position(&scope.neighbours.structures[number], &field.member)?;
    let mut values = tuple::parts(&field.base, &[], scope)?;
    Ok((position < values.len()).then(|| values.swap_remove(position)))
}

/// The variable of a field of a structure that is a variable.
pub(crate) fn variable(
    number: usize,
    member: &Member,
    names: &[VarId],
    scope: &Scope,
) -> Result<Option<VarId>> {
    let Some(structure) = scope.tuple_structures.get(&number) else { return Ok(None) };
    let position = position(&scope.neighbours.structures[*structure], member)?;
    Ok(names.get(position).copied())
}
