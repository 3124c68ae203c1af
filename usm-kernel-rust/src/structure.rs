//! Structures of numbers: elements of arrays, and values, which are their fields.

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprField, ExprStruct, Member, Result, Type};
use usm_kernel_ir::{ArrayId, Expr, Scalar, Stmt, StmtKind, Structure, VarId};

use crate::derive::position;
use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;
use crate::view::View;

impl Reader {
    /// Refuses a structure where a number is needed.
    pub(crate) fn refuse_number<T>(&self, at: Span, number: usize) -> Result<T> {
        let Structure { name, fields } = &self.neighbours.structures[number];
        refuse(at, format!("a `{name}` where a number is needed: name a field, such as `.{}`", fields[0].0))
    }

    /// The number of the structure that a type names.
    pub(crate) fn structure_of_type(&self, ty: &Type) -> Option<usize> {
        let Type::Path(path) = ty else { return None };
        self.structure_of_path(&path.path)
    }

    pub(crate) fn structure_of_path(&self, path: &syn::Path) -> Option<usize> {
        let name = path.get_ident()?;
        self.neighbours.structures.iter().position(|structure| name == &structure.name)
    }

    /// The element of an array of structures that a text names, before its index is read.
    pub(crate) fn is_structure_element(&self, value: &Rust) -> bool {
        match value {
            Rust::Paren(inner) => self.is_structure_element(&inner.expr),
            Rust::Index(index) if !matches!(&*index.index, Rust::Range(_)) => {
                self.view_depth(value) == Some(1)
                    && matches!(self.root_array(&index.expr), Ok(Some((id, _))) if self.structures.contains_key(&id))
            }
            Rust::Path(path) => {
                let name = path.path.get_ident().and_then(|name| self.find(name).ok());
                matches!(name, Some(Meaning::View(number)) if self.views[number].is_structure(self))
            }
            Rust::Unary(unary) if matches!(unary.op, syn::UnOp::Deref(_)) => {
                self.is_structure_element(&unary.expr)
            }
            _ => false,
        }
    }

    /// The place of a field of an element: array, type and index.
    pub(crate) fn field_place(&mut self, field: &ExprField) -> Result<Option<(ArrayId, Scalar, Expr)>> {
        if !self.is_structure_element(&field.base) {
            return Ok(None);
        }
        let Some(element) = self.structure_element(&field.base)? else { return Ok(None) };
        let position = position(&self.structure_of_array(element.array), &field.member)?;
        let at = place_of(field.member.span());
        let place = element.field(position, at, self);
        Ok(place.map(|(array, index)| (array, self.kernel.array(array).element, index)))
    }

    /// The type of a field of an element that is written.
    pub(crate) fn field_type(&self, field: &ExprField) -> Result<Scalar> {
        let base = referent(&field.base);
        self.check_structure_writable(base)?;
        match self.root_array(base)? {
            Some((id, _)) => {
                let structure = self.structure_of_array(id);
                Ok(structure.fields[position(&structure, &field.member)?].1)
            }
            None => refuse(field.span(), "only variables, elements and their fields are assigned"),
        }
    }

    /// `particles[i] = p`: all values are computed before a field is set.
    pub(crate) fn assign_structure(&mut self, left: &Rust, right: &Rust, out: &mut Vec<Stmt>) -> Result<()> {
        let expected = self.structure_of_value(left);
        if let Some(expected) = expected.filter(|_| self.structure_of_value(right) != expected) {
            return self.refuse_other_structure(right, expected);
        }
        let values = self.tuple_parts(right, &[])?;
        let values: Vec<Expr> = values.into_iter().map(|value| self.keep_part(value)).collect();
        let places = self.writable_places(left)?;
        out.append(&mut self.before);
        for ((array, index), value) in places.into_iter().zip(values) {
            let at = index.place;
            out.push(Stmt::new(StmtKind::Store { array, index, value }, at));
        }
        Ok(())
    }

    /// Exchanges two elements.
    pub(crate) fn swap_structures(&mut self, [one, two]: [&Rust; 2], out: &mut Vec<Stmt>) -> Result<()> {
        if let Some(expected) =
            self.structure_of_value(one).filter(|expected| self.structure_of_value(two) != Some(*expected))
        {
            return self.refuse_other_structure(two, expected);
        }
        let (first, second) = (self.writable_places(one)?, self.writable_places(two)?);
        let to_first = second.iter().zip(&first);
        let mut stores = Vec::new();
        for ((from, index), (to, place)) in to_first.chain(first.iter().zip(&second)) {
            let at = place.place;
            let value = Expr::load(*from, self.kernel.array(*from).element, index.clone(), at);
            let store = StmtKind::Store { array: *to, index: place.clone(), value: self.keep_part(value) };
            stores.push(Stmt::new(store, at));
        }
        out.append(&mut self.before);
        out.append(&mut stores);
        Ok(())
    }

    /// The places of all fields of an element that is written.
    pub(crate) fn writable_places(&mut self, left: &Rust) -> Result<Vec<(ArrayId, Expr)>> {
        self.check_structure_writable(referent(left))?;
        self.field_places(left)
    }

    /// Refuses to write fields of an array that was taken as `&[S]`.
    fn check_structure_writable(&self, base: &Rust) -> Result<()> {
        match self.root_array(base)? {
            Some((id, true)) => {
                let name = self.kernel.array(id).name.clone();
                refuse(base.span(), format!("`{name}` is only read: take `&mut [S]` and `&mut {name}[i]`"))
            }
            _ => Ok(()),
        }
    }

    fn structure_element(&mut self, value: &Rust) -> Result<Option<View>> {
        self.read_view(referent(value))
    }

    fn structure_of_array(&self, array: ArrayId) -> Structure {
        let number = self.structures.get(&array).copied().unwrap_or_default();
        self.neighbours.structures[number].clone()
    }

    /// The places of all fields of an element.
    fn field_places(&mut self, value: &Rust) -> Result<Vec<(ArrayId, Expr)>> {
        let at = place_of(value.span());
        let Some(mut element) = self.structure_element(value)? else {
            return refuse(value.span(), "an element of an array of structures is needed here");
        };
        element.keep(self);
        let count = self.structure_of_array(element.array).fields.len();
        Ok((0..count).filter_map(|position| element.field(position, at, self)).collect())
    }

    /// The types of the fields of the structure that a type names.
    pub(crate) fn field_types(&self, ty: &Type) -> Option<Vec<Scalar>> {
        let structure = &self.neighbours.structures[self.structure_of_type(ty)?];
        Some(structure.fields.iter().map(|(_, ty)| *ty).collect())
    }

    /// The meaning of a function's parameter that is a structure, a reference to one, or an array
    /// of them; `None` for other types.
    pub(crate) fn bind_structure(
        &mut self,
        ty: &Type,
        mutable: bool,
        argument: &Rust,
    ) -> Result<Option<Meaning>> {
        let (of, depth, writes) = match ty {
            Type::Reference(reference) => match &*reference.elem {
                Type::Slice(slice) => {
                    (self.structure_of_type(&slice.elem), 2, reference.mutability.is_some())
                }
                other => (self.structure_of_type(other), 1, reference.mutability.is_some()),
            },
            other => (self.structure_of_type(other), 0, false),
        };
        let Some(number) = of else { return Ok(None) };
        let name = self.neighbours.structures[number].name.clone();
        if depth == 0 {
            if self.structure_of_value(argument) != Some(number) {
                return self.refuse_other_structure(argument, number);
            }
            let mut variables = Vec::new();
            for value in self.tuple_parts(argument, &[])? {
                let (ty, at) = (value.ty, value.place);
                let variable = self.add_hidden("field", ty, at);
                self.before.push(Stmt::new(StmtKind::Set(variable, value), at));
                variables.push(variable);
            }
            self.tuple_structures.insert(self.tuples.len(), number);
            self.tuples.push((variables, mutable));
            return Ok(Some(Meaning::Tuple(self.tuples.len() - 1)));
        }
        let view = self.structure_element(strip_references(argument))?;
        let view =
            view.filter(|view| view.depth() == depth && self.structures.get(&view.array) == Some(&number));
        let Some(mut view) = view else {
            let what = if depth == 1 { "an element" } else { "an array, or a part of one," };
            return refuse(argument.span(), format!("{what} of `{name}` in memory is needed here"));
        };
        if writes && view.read_only {
            return refuse(argument.span(), "this is only read here: take `&mut`");
        }
        view.read_only = !writes;
        view.keep(self);
        self.views.push(view);
        Ok(Some(Meaning::View(self.views.len() - 1)))
    }

    /// The values of the fields of an element.
    pub(crate) fn load_fields(&mut self, value: &Rust) -> Result<Vec<Expr>> {
        let at = place_of(value.span());
        let places = self.field_places(value)?;
        Ok(places
            .into_iter()
            .map(|(array, index)| Expr::load(array, self.kernel.array(array).element, index, at))
            .collect())
    }

    /// The values of `S { x: 1.0, y, ..other }`, in the order of the fields.
    pub(crate) fn read_structure_literal(&mut self, literal: &ExprStruct) -> Result<Vec<Expr>> {
        let Some(number) = self.structure_of_path(&literal.path) else {
            return refuse(
                literal.path.span(),
                "a kernel knows structures with `#[derive(Structure)]` beside it, in a module with `#[kernels]`",
            );
        };
        let structure = self.neighbours.structures[number].clone();
        let mut values: Vec<Option<Expr>> = vec![None; structure.fields.len()];
        for field in &literal.fields {
            let position = position(&structure, &field.member)?;
            let mut earlier: Vec<&mut Expr> = values.iter_mut().flatten().collect();
            let value = self.read_after(&mut earlier, |reader| {
                reader.read_typed(&field.expr, structure.fields[position].1)
            })?;
            if values[position].replace(value).is_some() {
                return refuse(field.member.span(), "this field has two values");
            }
        }
        if let Some(rest) = &literal.rest {
            let mut earlier: Vec<&mut Expr> = values.iter_mut().flatten().collect();
            let others = self.read_after(&mut earlier, |reader| reader.tuple_parts(rest, &[]))?;
            if self.structure_of_value(rest) != Some(number) {
                return refuse(rest.span(), format!("a `{}` is needed here", structure.name));
            }
            for (value, other) in values.iter_mut().zip(others) {
                value.get_or_insert(other);
            }
        }
        match values.iter().position(Option::is_none) {
            Some(field) => {
                refuse(literal.span(), format!("field `{}` has no value", structure.fields[field].0))
            }
            None => Ok(values.into_iter().flatten().collect()),
        }
    }

    /// The field of a structure that is no variable and no element, such as a function's result.
    pub(crate) fn read_field_of_value(&mut self, field: &ExprField) -> Result<Option<Expr>> {
        if matches!(&*field.base, Rust::Path(_)) {
            return Ok(None);
        }
        let Some(number) = self.structure_of_value(&field.base) else { return Ok(None) };
        let position = position(&self.neighbours.structures[number], &field.member)?;
        let mut values = self.tuple_parts(&field.base, &[])?;
        Ok((position < values.len()).then(|| values.swap_remove(position)))
    }

    /// The variable of a field of a structure that is a variable.
    pub(crate) fn field_variable(
        &self,
        number: usize,
        member: &Member,
        names: &[VarId],
    ) -> Result<Option<VarId>> {
        let Some(structure) = self.tuple_structures.get(&number) else { return Ok(None) };
        let position = position(&self.neighbours.structures[*structure], member)?;
        Ok(names.get(position).copied())
    }
}

/// What `*p` refers to.
pub(crate) fn referent(value: &Rust) -> &Rust {
    match value {
        Rust::Paren(inner) => referent(&inner.expr),
        Rust::Unary(unary) => referent(&unary.expr),
        other => other,
    }
}

pub(crate) fn strip_references(value: &Rust) -> &Rust {
    match value {
        Rust::Reference(inner) => strip_references(&inner.expr),
        other => other,
    }
}
