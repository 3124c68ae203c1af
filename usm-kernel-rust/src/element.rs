//! Elements of arrays.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Result};
use usm_kernel_ir::{ArrayId, Expr, Scalar};

use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

impl Reader {
    /// Reads the type of an element that is written. Rust evaluates the value before the index.
    pub(crate) fn type_of_element(&self, index: &syn::ExprIndex) -> Option<Scalar> {
        let (id, _) = self.root_array(&index.expr).ok()??;
        Some(self.kernel.array(id).element)
    }

    /// Refuses to write an array that was taken as `&[T]`.
    pub(crate) fn check_writable(&self, index: &syn::ExprIndex) -> Result<()> {
        let Some((_, true)) = self.root_array(&index.expr)? else { return Ok(()) };
        let mut base = &*index.expr;
        while let Rust::Index(inner) = base {
            base = &inner.expr;
        }
        let name = match base {
            Rust::Path(path) => path.path.get_ident().map(ToString::to_string),
            _ => None,
        };
        let name = name.unwrap_or_else(|| "array".into());
        refuse(base.span(), format!("`{name}` is only read: take `&mut [T]`, or `&[Atomic<T>]`"))
    }

    /// Reads an element: array, type and index.
    pub(crate) fn read_element(&mut self, index: &syn::ExprIndex) -> Result<(ArrayId, Scalar, Expr)> {
        let mut base = &*index.expr;
        while let Rust::Index(inner) = base {
            base = &inner.expr;
        }
        if let Rust::Path(path) = base {
            let Some(name) = path.path.get_ident() else {
                return refuse(path.span(), "a kernel sees nothing outside of itself: make it a parameter");
            };
            if matches!(self.find(name)?, Meaning::Value(_) | Meaning::Variable { .. } | Meaning::Constant(_))
            {
                return refuse(name.span(), format!("`{name}` is no array"));
            }
        }
        let Some(view) = self.read_indexed(index)? else {
            return refuse(index.span(), "only arrays by name are indexed, once for each dimension");
        };
        match view.depth() {
            0 => Ok((
                view.array,
                self.kernel.array(view.array).element,
                view.position(place_of(index.index.span())),
            )),
            _ if view.is_structure(self) => self.refuse_number(index.span(), self.structures[&view.array]),
            more => {
                let what =
                    if more == 1 { "a part of an array".to_string() } else { format!("{more} dimensions") };
                refuse(
                    index.span(),
                    format!("{what} where a number is needed: index it, or write `let row = &..;`"),
                )
            }
        }
    }
}
