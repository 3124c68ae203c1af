//! Calls of functions by their names.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Lit, Result};
use usm_kernel_ir::{Binary, Expr, Query, Scalar};

use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

impl Reader {
    /// Reads a call of a function by its name.
    pub(crate) fn read_function(&mut self, call: &syn::ExprCall, hint: Option<Scalar>) -> Result<Expr> {
        let at = place_of(call.span());
        let Rust::Path(path) = &*call.func else {
            return refuse(call.func.span(), "only functions by name are called");
        };
        let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        if let Some(results) = self.read_call(call, &name)? {
            return match &results[..] {
                [value] => Ok(value.clone()),
                [] => refuse(call.span(), format!("`{name}` has no result")),
                _ => refuse(
                    call.span(),
                    format!("`{name}` has {} results: write `let (a, b) = ..;`", results.len()),
                ),
            };
        }
        if let Some(value) = self.read_collective(call, &name, hint)? {
            return Ok(value);
        }
        if let Some(value) = self.read_sub_group(call, &name, hint)? {
            return Ok(value);
        }
        let arguments: Vec<&Rust> = call.args.iter().collect();
        match (name.as_str(), type_before(&path.path), &arguments[..]) {
            ("from_f32", Some(ty), [value]) if ty.is_half() => {
                return Ok(self.read_typed(value, Scalar::F32)?.cast(ty, at));
            }
            ("from_bits", Some(ty), [value]) => {
                return Ok(self.read_typed(value, ty.unsigned())?.bits(ty, at));
            }
            _ => {}
        }
        let query = match name.as_str() {
            "global_id" => Some(Query::GlobalId),
            "local_id" => Some(Query::LocalId),
            "group_id" => Some(Query::GroupId),
            "global_size" => Some(Query::GlobalSize),
            "local_size" => Some(Query::LocalSize),
            "groups" => Some(Query::Groups),
            _ => None,
        };
        if let Some(query) = query {
            let [Rust::Lit(syn::ExprLit { lit: Lit::Int(number), .. })] = arguments[..] else {
                return refuse(
                    call.span(),
                    format!("write the dimension as a number: `{name}(0)`; dimension 0 is the slowest"),
                );
            };
            let dimension: u8 = number.base10_parse()?;
            if dimension > 2 {
                return refuse(number.span(), format!("dimension {dimension}; a range has 1, 2 or 3"));
            }
            self.dimensions = self.dimensions.max(dimension + 1);
            return Ok(Expr::query(query, dimension, at));
        }
        let operator = match name.as_str() {
            "min" => Binary::Min,
            "max" => Binary::Max,
            _ => {
                return refuse(
                    path.span(),
                    format!(
                        "`{name}` is unknown here; a kernel calls global_id, local_id, group_id, global_size, local_size, groups, min, max, group_reduce and its like, \
                     methods of numbers, and what is a `#[kernel_fn]` in the same module with `#[kernels]`"
                    ),
                );
            }
        };
        let [left, right] = arguments[..] else {
            return refuse(call.span(), format!("`{name}` has two arguments"));
        };
        let (left, right) = self.read_pair(left, right, hint)?;
        if !operator.takes(left.ty) {
            return refuse(call.span(), format!("{} has no `{name}`", left.ty));
        }
        Ok(Expr::binary(operator, left, right, at))
    }
}

/// The type of `F16::from_f32` and `f32::from_bits`.
fn type_before(path: &syn::Path) -> Option<Scalar> {
    match path.segments.iter().rev().nth(1)?.ident.to_string().as_str() {
        "F16" => Some(Scalar::F16),
        "Bf16" => Some(Scalar::Bf16),
        "f32" => Some(Scalar::F32),
        "f64" => Some(Scalar::F64),
        _ => None,
    }
}
