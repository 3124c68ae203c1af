//! Tuples of numbers: as values, results and variables. They are several values of the nodes.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprField, Member, Pat, Result, ReturnType, Stmt as RustStmt, Type};
use usm_kernel_ir::{Expr, ExprKind, Math, Scalar, Stmt, StmtKind, VarId};

use crate::choice;
use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;
use crate::types::scalar;

impl Reader {
    /// Whether a text is a tuple.
    pub(crate) fn is_tuple(&self, value: &Rust) -> bool {
        let last = |block: &syn::Block| match block.stmts.last() {
            Some(RustStmt::Expr(value, None)) => self.is_tuple(value),
            _ => false,
        };
        match value {
            Rust::Paren(inner) => self.is_tuple(&inner.expr),
            Rust::Group(inner) => self.is_tuple(&inner.expr),
            Rust::Tuple(tuple) => !tuple.elems.is_empty(),
            Rust::Struct(_) | Rust::Unary(_) | Rust::Index(_) | Rust::Binary(_) => {
                self.structure_of_value(value).is_some()
            }
            Rust::Block(inner) => last(&inner.block) || self.structure_of_value(value).is_some(),
            Rust::If(branch) => last(&branch.then_branch) || self.structure_of_value(value).is_some(),
            Rust::Match(choice) => choice.arms.iter().any(|arm| self.is_tuple(&arm.body)),
            Rust::MethodCall(call) => call.method == "sin_cos" || self.structure_of_value(value).is_some(),
            Rust::Path(path) => {
                path.path.get_ident().is_some_and(|name| matches!(self.find(name), Ok(Meaning::Tuple(_))))
            }
            Rust::Call(_) if self.structure_of_value(value).is_some() => true,
            Rust::Call(call) => {
                let Rust::Path(path) = &*call.func else { return false };
                let Some(last) = path.path.segments.last() else { return false };
                self.neighbours.function(&last.ident.to_string()).is_some_and(|function| {
                matches!(&function.sig.output, ReturnType::Type(_, ty) if matches!(&**ty, Type::Tuple(tuple) if !tuple.elems.is_empty()))
            })
            }
            _ => false,
        }
    }

    /// Reads the parts of a tuple; a literal has the type of its place in `hints`.
    pub(crate) fn tuple_parts(&mut self, value: &Rust, hints: &[Option<Scalar>]) -> Result<Vec<Expr>> {
        if let Some(of) = self.complex_result(value) {
            return self.complex_parts(value, of);
        }
        let at = place_of(value.span());
        match value {
            Rust::Struct(literal) => self.read_structure_literal(literal),
            element if self.is_structure_element(element) => self.load_fields(element),
            Rust::Paren(inner) => self.tuple_parts(&inner.expr, hints),
            Rust::Group(inner) => self.tuple_parts(&inner.expr, hints),
            Rust::Tuple(tuple) => {
                let mut parts: Vec<Expr> = Vec::new();
                for (place, part) in tuple.elems.iter().enumerate() {
                    let hint = hints.get(place).copied().flatten();
                    let mut earlier: Vec<&mut Expr> = parts.iter_mut().collect();
                    let next = self.read_after(&mut earlier, |reader| match hint {
                        Some(ty) => reader.read_typed(part, ty),
                        None => reader.read_expr(part, None),
                    })?;
                    parts.push(next);
                }
                Ok(parts)
            }
            Rust::Path(path) => {
                let meaning = path.path.get_ident().map(|name| self.find(name)).transpose()?;
                let Some(Meaning::Tuple(number)) = meaning else {
                    return refuse(value.span(), "this is no tuple");
                };
                let (names, _) = self.tuples[number].clone();
                Ok(names.into_iter().map(|id| Expr::variable(id, self.kernel.variable(id).ty, at)).collect())
            }
            Rust::Block(inner) => {
                self.read_block_value(&inner.block, |value, reader| reader.tuple_parts(value, hints))
            }
            Rust::Match(word) => self.tuple_parts(&choice::as_branches(word)?, hints),
            Rust::If(branch) => {
                if let Rust::Let(word) = &*branch.cond {
                    return refuse(
                        word.span(),
                        "a kernel has no such patterns: write `match` or a comparison",
                    );
                }
                let condition = self.read_typed(&branch.cond, Scalar::Bool)?;
                let Some((_, other)) = &branch.else_branch else {
                    return refuse(branch.span(), "a value needs `else`");
                };
                let (one, mut first) = self.read_apart(|reader| {
                    reader.read_block_value(&branch.then_branch, |value, reader| {
                        reader.tuple_parts(value, hints)
                    })
                })?;
                let hints: Vec<Option<Scalar>> = one.iter().map(|part| Some(part.ty)).collect();
                let (two, mut second) = self.read_apart(|reader| reader.tuple_parts(other, &hints))?;
                if one.len() != two.len() {
                    return refuse(other.span(), format!("{} values, not {}", two.len(), one.len()));
                }
                let mut parts = Vec::new();
                for (one, two) in one.into_iter().zip(two) {
                    let ty = one.ty;
                    let result = self.add_hidden("chosen", ty, at);
                    first.push(Stmt::new(StmtKind::Set(result, one), at));
                    second.push(Stmt::new(StmtKind::Set(result, two), at));
                    parts.push(Expr::variable(result, ty, at));
                }
                self.before.push(Stmt::new(StmtKind::If { condition, then: first, other: second }, at));
                Ok(parts)
            }
            Rust::Call(inner) => {
                let Rust::Path(path) = &*inner.func else {
                    return refuse(inner.func.span(), "only functions by name are called");
                };
                let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
                match self.read_call(inner, &name)? {
                    Some(values) => Ok(values),
                    None => refuse(value.span(), "this is no tuple"),
                }
            }
            Rust::MethodCall(call) if call.method == "sin_cos" && call.args.is_empty() => {
                let angle = self.read_expr(&call.receiver, hints.first().copied().flatten())?;
                if !angle.ty.is_float() {
                    return refuse(
                        call.method.span(),
                        format!("{} has no `sin_cos`: write `as f32`", angle.ty),
                    );
                }
                let angle = self.keep_part(angle);
                let of = |function| {
                    let kind = ExprKind::Math(function, vec![angle.clone()]);
                    Expr { kind, ty: angle.ty, place: at }
                };
                Ok(vec![of(Math::Sin), of(Math::Cos)])
            }
            other => refuse(other.span(), "a tuple of values is needed here"),
        }
    }

    /// A value in a variable of its own.
    pub(crate) fn keep_part(&mut self, value: Expr) -> Expr {
        let (ty, at) = (value.ty, value.place);
        let variable = self.add_hidden("part", ty, at);
        self.before.push(Stmt::new(StmtKind::Set(variable, value), at));
        Expr::variable(variable, ty, at)
    }

    /// `t.0`: the variable, and whether it may be set.
    pub(crate) fn tuple_field(&self, field: &ExprField) -> Result<(VarId, bool)> {
        let of = match &*field.base {
            Rust::Path(path) => path.path.get_ident(),
            _ => None,
        };
        let meaning = of.and_then(|name| self.find(name).ok());
        if let Some(Meaning::Tuple(number)) = meaning {
            let (names, mutable) = &self.tuples[number];
            if let Some(id) = self.field_variable(number, &field.member, names)? {
                return Ok((id, *mutable));
            }
        }
        let (Some(Meaning::Tuple(number)), Member::Unnamed(place)) = (meaning, &field.member) else {
            return refuse(
                field.member.span(),
                "a kernel knows structures with `#[derive(Structure)]` beside it, in a module with `#[kernels]`: make it a parameter",
            );
        };
        let (names, mutable) = &self.tuples[number];
        match names.get(place.index as usize) {
            Some(id) => Ok((*id, *mutable)),
            None => refuse(place.span, format!("a tuple of {} values", names.len())),
        }
    }

    /// `let t = ..` and `let (a, b) = ..`.
    pub(crate) fn declare_tuple(
        &mut self,
        pattern: &Pat,
        ty: Option<&Type>,
        init: &Rust,
        out: &mut Vec<Stmt>,
    ) -> Result<()> {
        let structure = self.structure_of_value(init);
        if let Some(expected) = ty.and_then(|ty| self.structure_of_type(ty)) {
            if structure != Some(expected) {
                return self.refuse_other_structure(init, expected);
            }
        }
        let types = ty.filter(|_| structure.is_none()).map(types).transpose()?.flatten();
        let hints: Vec<Option<Scalar>> = types.iter().flatten().map(|ty| Some(*ty)).collect();
        let values = self.tuple_parts(init, &hints)?;
        if types.as_ref().is_some_and(|types| types.len() != values.len()) {
            let count = types.map_or(0, |types| types.len());
            return refuse(init.span(), format!("{} values for {count} types", values.len()));
        }
        for (value, ty) in values.iter().zip(types.iter().flatten()) {
            if value.ty != *ty {
                return refuse(init.span(), format!("{} where {ty} is needed: write `as {ty}`", value.ty));
            }
        }
        out.append(&mut self.before);
        let at = place_of(pattern.span());
        match pattern {
            Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
                let mut parts = Vec::new();
                for value in values {
                    let variable = self.add_hidden(&name.ident.to_string(), value.ty, at);
                    out.push(Stmt::new(StmtKind::Set(variable, value), at));
                    parts.push(variable);
                }
                if let Some(structure) = structure {
                    self.tuple_structures.insert(self.tuples.len(), structure);
                }
                self.tuples.push((parts, name.mutability.is_some()));
                self.name(&name.ident, Meaning::Tuple(self.tuples.len() - 1));
                Ok(())
            }
            Pat::Wild(_) => Ok(()),
            Pat::Tuple(names) => {
                if names.elems.len() != values.len() {
                    let (names, count) = (names.elems.len(), values.len());
                    return refuse(init.span(), format!("{names} names for {count} values"));
                }
                let mut names_so_far = Vec::new();
                for (name, value) in names.elems.iter().zip(values) {
                    let name = match name {
                        Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => name,
                        Pat::Wild(_) => continue,
                        other => return refuse(other.span(), "a tuple of names is needed here"),
                    };
                    if names_so_far.contains(&&name.ident) {
                        return refuse(name.span(), format!("`{}` is bound more than once here", name.ident));
                    }
                    names_so_far.push(&name.ident);
                    let variable = self.variable(&name.ident, value.ty, name.mutability.is_some());
                    out.push(Stmt::new(StmtKind::Set(variable, value), place_of(name.span())));
                }
                Ok(())
            }
            other => refuse(other.span(), "a name, or a tuple of names, is needed here"),
        }
    }

    /// `(a, b[i]) = ..`: all values are computed before a place is set.
    pub(crate) fn assign_tuple(&mut self, left: &[&Rust], right: &Rust, out: &mut Vec<Stmt>) -> Result<()> {
        let hints = left.iter().map(|place| self.type_of_place(place)).collect::<Result<Vec<_>>>()?;
        let values = self.tuple_parts(right, &hints)?;
        if values.len() != left.len() {
            return refuse(right.span(), format!("{} places for {} values", left.len(), values.len()));
        }
        self.set_tuple(left, values, out)
    }

    /// Sets places, after all values are computed.
    pub(crate) fn set_tuple(&mut self, left: &[&Rust], values: Vec<Expr>, out: &mut Vec<Stmt>) -> Result<()> {
        let values: Vec<Expr> = values.into_iter().map(|value| self.keep_part(value)).collect();
        for (place, value) in left.iter().zip(values) {
            self.set_place(place, value)?;
        }
        out.append(&mut self.before);
        Ok(())
    }
}

/// The types of a tuple's parts; `None` for another type.
pub(crate) fn types(ty: &Type) -> Result<Option<Vec<Scalar>>> {
    match ty {
        Type::Paren(inner) => types(&inner.elem),
        Type::Group(inner) => types(&inner.elem),
        Type::Tuple(tuple) if !tuple.elems.is_empty() => {
            tuple.elems.iter().map(scalar).collect::<Result<_>>().map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether the type of a tuple's part is `usize`.
pub(crate) fn is_size(ty: &Type, position: usize) -> bool {
    match ty {
        Type::Paren(inner) => is_size(&inner.elem, position),
        Type::Group(inner) => is_size(&inner.elem, position),
        Type::Tuple(tuple) => {
            matches!(tuple.elems.get(position), Some(Type::Path(path)) if path.path.is_ident("usize"))
        }
        _ => false,
    }
}
