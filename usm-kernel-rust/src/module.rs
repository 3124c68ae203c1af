//! The items beside a kernel in its module.

use alloc::rc::Rc;

use proc_macro2::Span;
use syn::{ItemFn, Result, Type};
use usm_kernel_ir::{Literal, Scalar, Structure};

use crate::refusal::refuse;
use crate::{conditional, random};

/// The items beside a kernel in its module.
pub(crate) struct Module {
    pub(crate) functions: Vec<Rc<ItemFn>>,
    pub(crate) constants: Vec<(String, Literal)>,
    /// Those of complex numbers are the last ones.
    pub(crate) structures: Vec<Structure>,
    /// Constants that are arrays.
    pub(crate) tables: Vec<Rc<syn::ItemConst>>,
    /// Names of functions without `#[kernel_fn]`.
    pub(crate) others: Vec<String>,
    /// Names of functions and constants that the compiler may remove.
    pub(crate) conditional: Vec<String>,
}

impl Default for Module {
    fn default() -> Self {
        Self {
            functions: Vec::new(),
            constants: Vec::new(),
            structures: complex_structures().collect(),
            tables: Vec::new(),
            others: Vec::new(),
            conditional: Vec::new(),
        }
    }
}

impl Module {
    /// The function of a name: the module's own, else one that every kernel has.
    pub(crate) fn function(&self, name: &str) -> Option<Rc<ItemFn>> {
        let own = self.functions.iter().find(|function| function.sig.ident == name);
        own.map(Rc::clone).or_else(|| random::function(name))
    }

    /// Refuses a function or constant that the compiler may remove.
    pub(crate) fn refuse_conditional(&self, name: &str, at: Span) -> Result<()> {
        if self.conditional.iter().any(|other| other == name) {
            return refuse(at, format!("`{name}` depends on `cfg`: {}", conditional::REASON));
        }
        Ok(())
    }
}

pub(crate) const COMPLEX: [(&str, Scalar); 2] = [("Complex32", Scalar::F32), ("Complex64", Scalar::F64)];

/// The structures of complex numbers, which stand behind those of a module.
pub(crate) fn complex_structures() -> impl Iterator<Item = Structure> {
    COMPLEX.into_iter().map(|(name, part)| Structure {
        name: name.into(),
        fields: vec![("re".into(), part), ("im".into(), part)],
    })
}

/// Whether a type has the name of complex numbers.
pub(crate) fn is_complex_name(ty: &Type) -> bool {
    matches!(ty, Type::Path(path) if COMPLEX.iter().any(|(name, _)| path.path.is_ident(name)))
}
