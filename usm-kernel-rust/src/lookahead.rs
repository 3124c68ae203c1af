//! The structure that a text is, found ahead of reading it.

use syn::{Expr as Rust, Ident, Pat};

use crate::meaning::Meaning;
use crate::reader::Reader;
use crate::structure;

impl Reader {
    /// The number of the structure that a value is; `None` for other values.
    pub(crate) fn structure_of_value(&self, value: &Rust) -> Option<usize> {
        if let Some((number, ..)) = self.complex_result(value) {
            return Some(number);
        }
        match value {
            Rust::Paren(inner) => self.structure_of_value(&inner.expr),
            Rust::Group(inner) => self.structure_of_value(&inner.expr),
            Rust::Struct(literal) => self.structure_of_path(&literal.path),
            Rust::Path(path) => self.structure_of_name(path.path.get_ident()?),
            Rust::Call(call) => {
                let Rust::Path(path) = &*call.func else { return None };
                let function = self.neighbours.function(&path.path.segments.last()?.ident.to_string())?;
                match &function.sig.output {
                    syn::ReturnType::Type(_, ty) => self.structure_of_type(ty),
                    syn::ReturnType::Default => None,
                }
            }
            Rust::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => {
                self.structure_of_value(&unary.expr)
            }
            Rust::Block(inner) => self.structure_of_block(&inner.block),
            Rust::If(branch) => self.structure_of_block(&branch.then_branch),
            Rust::Match(choice) => self.structure_of_value(&choice.arms.first()?.body),
            element if self.is_structure_element(element) => {
                let (id, _) = self.root_array(structure::referent(element)).ok()??;
                self.structures.get(&id).copied()
            }
            _ => None,
        }
    }

    fn structure_of_name(&self, name: &Ident) -> Option<usize> {
        if let Some((_, of)) = self.lookahead.borrow().iter().rev().find(|(candidate, _)| name == candidate) {
            return *of;
        }
        match self.find(name).ok()? {
            Meaning::Tuple(number) => self.tuple_structures.get(&number).copied(),
            Meaning::View(number) if self.views[number].is_structure(self) => {
                self.structures.get(&self.views[number].array).copied()
            }
            _ => None,
        }
    }

    /// The structure that a block's last value is, with the names that the block declares.
    fn structure_of_block(&self, block: &syn::Block) -> Option<usize> {
        let (syn::Stmt::Expr(last, None), first) = block.stmts.split_last()? else { return None };
        let mark = self.lookahead.borrow().len();
        for stmt in first {
            let syn::Stmt::Local(local) = stmt else { continue };
            let (pattern, ty) = match &local.pat {
                Pat::Type(annotation) => (&*annotation.pat, Some(&*annotation.ty)),
                other => (other, None),
            };
            let of = match (ty, &local.init) {
                (Some(ty), _) => self.structure_of_type(ty),
                (None, Some(init)) => self.structure_of_value(structure::strip_references(&init.expr)),
                (None, None) => None,
            };
            let name = |pattern: &Pat, of| {
                if let Pat::Ident(name) = pattern {
                    self.lookahead.borrow_mut().push((name.ident.to_string(), of));
                }
            };
            match pattern {
                Pat::Tuple(tuple) => tuple.elems.iter().for_each(|part| name(part, None)),
                one => name(one, of),
            }
        }
        let structure = self.structure_of_value(last);
        self.lookahead.borrow_mut().truncate(mark);
        structure
    }
}
