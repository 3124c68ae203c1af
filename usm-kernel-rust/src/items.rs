//! The items of a module that kernels use.

use alloc::rc::Rc;

use quote::ToTokens as _;
use syn::{Item, Result};

use crate::arguments::is;
use crate::conditional;
use crate::derive::all;
use crate::module::Module;
use crate::reader::Reader;
use crate::types::scalar;

impl Module {
    /// The functions and constants for kernels among a module's items.
    ///
    /// # Errors
    /// The refusal of a structure.
    pub(crate) fn of(items: &[Item]) -> Result<Self> {
        let mut module = Self { structures: all(items)?, ..Self::default() };
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
                    let constants_only = Self { constants: module.constants.clone(), ..Self::default() };
                    let mut reader = Reader::of_constants(Rc::new(constants_only));
                    if let Ok(value) = reader.read_constant(item) {
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
