//! Parameters.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{
    Expr as Rust, FnArg, GenericArgument, Ident, Lit, Pat, PathArguments, Result, ReturnType, Signature, Type,
};
use usm_kernel_ir::{
    Array, ArrayId, Expr, ExprKind, Parameter, Scalar, Space, Stmt, StmtKind, Value, ValueId,
};

use crate::attribute::place;
use crate::scope::{Meaning, Scope, refuse, scalar};
use crate::{column, structure};

/// The maximum number of parameters of usm-kernel's launches.
const PARAMETERS: usize = 16;

pub(crate) fn read(signature: &Signature, scope: &mut Scope) -> Result<()> {
    if let Some(word) = &signature.asyncness {
        return refuse(word.span, "a kernel is no `async fn`: a launch gives an event");
    }
    if let Some(word) = &signature.constness {
        return refuse(word.span, "a kernel is no `const fn`: only launches call it");
    }
    if let Some(abi) = &signature.abi {
        return refuse(abi.span(), "a kernel is no `extern` function: only launches call it");
    }
    if let ReturnType::Type(_, ty) = &signature.output {
        return refuse(ty.span(), "a kernel has no result: write it to an array");
    }
    let mut names = Vec::new();
    for argument in &signature.inputs {
        let FnArg::Typed(argument) = argument else {
            return refuse(argument.span(), "a kernel is no method: it takes arrays and scalars");
        };
        let Pat::Ident(pattern) = &*argument.pat else {
            return refuse(argument.pat.span(), "a parameter of a kernel is a name");
        };
        if pattern.subpat.is_some() || pattern.by_ref.is_some() {
            return refuse(pattern.span(), "a parameter of a kernel is a name");
        }
        if let Some(word) = &pattern.mutability {
            return refuse(word.span, "a parameter is the same for all items: write `let mut` in the body");
        }
        if names.contains(&&pattern.ident) {
            return refuse(pattern.ident.span(), format!("two parameters are called `{}`", pattern.ident));
        }
        names.push(&pattern.ident);
        parameter(&pattern.ident, &argument.ty, scope)?;
    }
    if scope.kernel.parameters.is_empty() {
        return refuse(signature.ident.span(), "a kernel without parameters does nothing: give it an array");
    }
    let given = signature.inputs.len();
    if given > PARAMETERS {
        return refuse(signature.inputs.span(), format!("{given} parameters, a launch takes {PARAMETERS}"));
    }
    Ok(())
}

fn parameter(name: &Ident, ty: &Type, scope: &mut Scope) -> Result<()> {
    let text = name.to_string().trim_start_matches("r#").to_string();
    let at = place(name.span());
    let Type::Reference(reference) = ty else {
        let is_size = matches!(ty, Type::Path(path) if path.path.is_ident("usize"));
        if let Some(number) = structure::of_type(ty, scope) {
            return by_value(name, &text, number, scope);
        }
        let scalar = scalar(ty)?;
        let id = ValueId(scope.kernel.values.len() as u32);
        scope.kernel.values.push(Value { name: text, ty: scalar, is_size, place: at });
        scope.kernel.parameters.push(Parameter::Value(id));
        scope.name(name, Meaning::Value(id));
        return Ok(());
    };
    let is_written = reference.mutability.is_some();
    if let Type::Slice(slice) = &*reference.elem {
        if let Some(number) = structure::of_type(&slice.elem, scope) {
            let space = |_| if is_written { Space::Write } else { Space::Read };
            let (id, arrays) = column::declare(name, number, &space, scope);
            scope.kernel.parameters.extend(arrays.into_iter().map(Parameter::Array));
            scope.name(name, Meaning::Array(id));
            return Ok(());
        }
    }
    let (element, space) = match (&*reference.elem, is_written) {
        (Type::Slice(slice), true) => (element(&slice.elem)?, Space::Write),
        (Type::Slice(slice), false) => match atomic(&slice.elem)? {
            Some(element) => (element, Space::Atomic),
            None => (element(&slice.elem)?, Space::Read),
        },
        (Type::Array(array), false) => (element(&array.elem)?, Space::Constant(length(&array.len, scope)?)),
        (Type::Array(array), true) => {
            return refuse(array.span(), "an array of fixed size lies in constant memory: write `&mut [T]`");
        }
        (other, _) => {
            return refuse(other.span(), "write `&[T]`, `&mut [T]`, `&[Atomic<T>]`, `&[T; N]` or a scalar");
        }
    };
    let id = ArrayId(scope.kernel.arrays.len() as u32);
    scope.kernel.arrays.push(Array { name: text, element, space, place: at });
    scope.kernel.parameters.push(Parameter::Array(id));
    scope.name(name, Meaning::Array(id));
    Ok(())
}

/// Reads a structure by value: a parameter for each field. A variable of the structure has them.
fn by_value(name: &Ident, text: &str, number: usize, scope: &mut Scope) -> Result<()> {
    let structure = scope.neighbours.structures[number].clone();
    if structure.fields.len() > PARAMETERS {
        let (of, count) = (&structure.name, structure.fields.len());
        return refuse(
            name.span(),
            format!(
                "`{of}` has {count} fields, a structure by value at most {PARAMETERS}: take `&[{of}]` of one"
            ),
        );
    }
    let at = place(name.span());
    let mut variables = Vec::new();
    for (field, ty) in &structure.fields {
        let id = ValueId(scope.kernel.values.len() as u32);
        let value = Value { name: format!("{text}.{field}"), ty: *ty, is_size: false, place: at };
        scope.kernel.values.push(value);
        scope.kernel.parameters.push(Parameter::Value(id));
        let variable = scope.hidden(text, *ty, at);
        let value = Expr { kind: ExprKind::Value(id), ty: *ty, place: at };
        scope.first.push(Stmt::new(StmtKind::Set(variable, value), at));
        variables.push(variable);
    }
    let first = scope.kernel.values.len() - structure.fields.len();
    scope.kernel.structures.push((Parameter::Value(ValueId(first as u32)), structure));
    scope.tuple_structures.insert(scope.tuples.len(), number);
    scope.tuples.push((variables, false));
    scope.name(name, Meaning::Tuple(scope.tuples.len() - 1));
    Ok(())
}

pub(crate) fn element(ty: &Type) -> Result<Scalar> {
    if matches!(ty, Type::Path(path) if path.path.is_ident("usize")) {
        return refuse(ty.span(), "elements have the same width everywhere: write `u64`");
    }
    scalar(ty)
}

/// The element type of `Atomic<T>`.
pub(crate) fn atomic(ty: &Type) -> Result<Option<Scalar>> {
    let Type::Path(path) = ty else { return Ok(None) };
    let Some(last) = path.path.segments.last().filter(|last| last.ident == "Atomic") else { return Ok(None) };
    if let PathArguments::AngleBracketed(arguments) = &last.arguments {
        if let Some(GenericArgument::Type(inner)) = arguments.args.first() {
            return element(inner).map(Some);
        }
    }
    refuse(last.span(), "write `Atomic<u32>`")
}

/// Reads a number of elements.
pub(crate) fn length(expr: &Rust, scope: &Scope) -> Result<u64> {
    match literal(expr, scope) {
        Some(number) => number,
        None => refuse(
            expr.span(),
            "an attribute sees no values of other items: write a number, or a constant in a module with `#[kernels]`",
        ),
    }
}

fn literal(expr: &Rust, scope: &Scope) -> Option<Result<u64>> {
    match expr {
        Rust::Lit(syn::ExprLit { lit: Lit::Int(number), .. }) => Some(number.base10_parse()),
        Rust::Paren(inner) => literal(&inner.expr, scope),
        Rust::Cast(cast) => literal(&cast.expr, scope),
        Rust::Path(path) => match scope.find(path.path.get_ident()?) {
            Ok(Meaning::Constant(value)) if value.ty.is_integer() => {
                let wrong = || syn::Error::new(path.span(), "a length below 0");
                Some(if value.ty.is_signed() && (value.bits as i64) < 0 {
                    Err(wrong())
                } else {
                    Ok(value.bits)
                })
            }
            _ => None,
        },
        Rust::Binary(binary) => {
            let (Some(Ok(one)), Some(Ok(two))) =
                (literal(&binary.left, scope), literal(&binary.right, scope))
            else {
                return None;
            };
            let value = match binary.op {
                syn::BinOp::Add(_) => one.checked_add(two),
                syn::BinOp::Sub(_) => one.checked_sub(two),
                syn::BinOp::Mul(_) => one.checked_mul(two),
                syn::BinOp::Div(_) => one.checked_div(two),
                _ => None,
            };
            value.map(Ok)
        }
        _ => None,
    }
}

pub(crate) fn place_of(span: Span) -> usm_kernel_ir::Place {
    place(span)
}
