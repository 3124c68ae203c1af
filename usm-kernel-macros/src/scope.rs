//! Names, and what they mean at a place of the source.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{Error, Ident, ItemFn, Result};
use usm_kernel_ir::{ArrayId, Kernel, Scalar, ValueId, VarId, Variable};

use crate::attribute::place;

/// What a name means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Meaning {
    Array(ArrayId),
    Value(ValueId),
    Variable { id: VarId, mutable: bool },
}

/// The kernel in the making, and the names at this place.
pub(crate) struct Scope {
    pub(crate) kernel: Kernel,
    names: Vec<(String, Meaning)>,
    /// The greatest dimension that the body names, and one.
    pub(crate) dimensions: u8,
}

impl Scope {
    pub(crate) fn new(item: &ItemFn) -> Self {
        let name = &item.sig.ident;
        let file = name.span().file();
        let kernel = Kernel {
            name: name.to_string().trim_start_matches("r#").to_string(),
            dimensions: 1,
            group: None,
            trusted: item.sig.unsafety.is_some(),
            files: vec![file],
            place: place(name.span()),
            parameters: Vec::new(),
            arrays: Vec::new(),
            values: Vec::new(),
            variables: Vec::new(),
            body: Vec::new(),
        };
        Self { kernel, names: Vec::new(), dimensions: 0 }
    }

    pub(crate) fn name(&mut self, name: &Ident, meaning: Meaning) {
        self.names.push((name.to_string(), meaning));
    }

    pub(crate) fn variable(&mut self, name: &Ident, ty: Scalar, mutable: bool) -> VarId {
        let id = VarId(self.kernel.variables.len() as u32);
        let text = name.to_string().trim_start_matches("r#").to_string();
        self.kernel.variables.push(Variable { name: text, ty, place: place(name.span()) });
        self.name(name, Meaning::Variable { id, mutable });
        id
    }

    pub(crate) fn find(&self, name: &Ident) -> Result<Meaning> {
        let text = name.to_string();
        let found = self.names.iter().rev().find(|(found, _)| *found == text);
        found.map(|(_, meaning)| *meaning).ok_or_else(|| {
            Error::new(
                name.span(),
                format!("no parameter or variable is called `{text}`; a kernel sees nothing outside of itself: make it a parameter"),
            )
        })
    }

    /// The names as they are now, to go back to.
    pub(crate) fn mark(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn forget(&mut self, mark: usize) {
        self.names.truncate(mark);
    }
}

/// An error on the user's tokens.
pub(crate) fn refuse<T>(span: Span, message: impl core::fmt::Display) -> Result<T> {
    Err(Error::new(span, message))
}

/// The scalar that a type names.
pub(crate) fn scalar(ty: &syn::Type) -> Result<Scalar> {
    if let syn::Type::Path(path) = ty {
        if let Some(name) = path.path.get_ident() {
            let name = name.to_string();
            // Ids and indices have 64 bits on every target.
            let name = if name == "usize" { "u64" } else { &name };
            if let Some(scalar) = Scalar::from_name(name) {
                return Ok(scalar);
            }
        }
    }
    refuse(ty.span(), "a kernel knows bool, i8 to i64, u8 to u64, usize, f32 and f64")
}
