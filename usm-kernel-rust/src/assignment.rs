//! Assignments.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprAssign, Result};
use usm_kernel_ir::{ArrayId, Binary, Expr, Scalar, Stmt, StmtKind, VarId};

use crate::atomic::is_atomic;
use crate::literal;
use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

impl Reader {
    pub(crate) fn read_assignment(&mut self, assign: &ExprAssign, out: &mut Vec<Stmt>) -> Result<()> {
        let at = place_of(assign.eq_token.span);
        match &*assign.left {
            element if self.is_structure_element(element) => {
                self.assign_structure(element, &assign.right, out)
            }
            Rust::Path(path) if self.is_tuple(&assign.left) => {
                let Some(Meaning::Tuple(number)) =
                    path.path.get_ident().and_then(|name| self.find(name).ok())
                else {
                    return refuse(path.span(), "only variables and elements are assigned");
                };
                let (names, mutable) = self.tuples[number].clone();
                if !mutable {
                    return refuse(path.span(), "this tuple or structure is set once: write `let mut`");
                }
                let hints: Vec<_> = names.iter().map(|id| Some(self.kernel.variable(*id).ty)).collect();
                let [expected, found] =
                    [&assign.left, &assign.right].map(|side| self.structure_of_value(side));
                if let Some(expected) = expected.filter(|expected| found != Some(*expected)) {
                    return self.refuse_other_structure(&assign.right, expected);
                }
                let values = self.tuple_parts(&assign.right, &hints)?;
                let types: Vec<_> = values.iter().map(|value| Some(value.ty)).collect();
                if types != hints || found != expected {
                    return refuse(assign.right.span(), "a tuple of other types");
                }
                let mut parts = Vec::new();
                for value in values {
                    let variable = self.add_hidden("part", value.ty, at);
                    parts.push(Expr::variable(variable, value.ty, at));
                    self.before.push(Stmt::new(StmtKind::Set(variable, value), at));
                }
                out.append(&mut self.before);
                let sets = names.into_iter().zip(parts);
                out.extend(sets.map(|(id, value)| Stmt::new(StmtKind::Set(id, value), at)));
                Ok(())
            }
            Rust::Path(path) => {
                let (variable, ty) = self.assignable_variable(path)?;
                if let Rust::MethodCall(call) = &*assign.right {
                    if is_atomic(call) {
                        let stmts = self.read_atomic(call, Some(variable))?;
                        out.append(&mut self.before);
                        out.extend(stmts);
                        return Ok(());
                    }
                }
                let value = self.read_typed(&assign.right, ty)?;
                out.append(&mut self.before);
                out.push(Stmt::new(StmtKind::Set(variable, value), at));
                Ok(())
            }
            Rust::Index(index) => {
                let (array, index, value) = self.read_element_store(index, &assign.right, None)?;
                out.append(&mut self.before);
                let at = index.place;
                out.push(Stmt::new(StmtKind::Store { array, index, value }, at));
                Ok(())
            }
            Rust::Tuple(tuple) => {
                let places: Vec<&Rust> = tuple.elems.iter().collect();
                self.assign_tuple(&places, &assign.right, out)
            }
            Rust::Field(field) if self.is_structure_element(&field.base) => {
                let (array, index, value) = self.read_field_store(field, &assign.right, None)?;
                out.append(&mut self.before);
                let at = index.place;
                out.push(Stmt::new(StmtKind::Store { array, index, value }, at));
                Ok(())
            }
            Rust::Field(field) => {
                let (variable, ty) = self.assignable_field(field)?;
                let value = self.read_typed(&assign.right, ty)?;
                out.append(&mut self.before);
                out.push(Stmt::new(StmtKind::Set(variable, value), at));
                Ok(())
            }
            other => refuse(other.span(), "only variables, elements and tuples of them are assigned"),
        }
    }

    /// Reads the value of a field of an element, and then its place.
    fn read_field_store(
        &mut self,
        field: &syn::ExprField,
        right: &Rust,
        operator: Option<Binary>,
    ) -> Result<(ArrayId, Expr, Expr)> {
        let ty = self.field_type(field)?;
        let mut value = self.read_right_side(right, ty, operator)?;
        let place = self.read_after(&mut [&mut value], |reader| reader.field_place(field))?;
        match place {
            Some((array, _, index)) => Ok((array, index, value)),
            None => refuse(field.span(), "only variables, elements and their fields are assigned"),
        }
    }

    fn assignable_field(&self, field: &syn::ExprField) -> Result<(VarId, Scalar)> {
        match self.tuple_field(field)? {
            (id, true) => Ok((id, self.kernel.variable(id).ty)),
            (_, false) => refuse(field.span(), "this tuple or structure is set once: write `let mut`"),
        }
    }

    /// The type of a place that is set; `None` for `_`.
    pub(crate) fn type_of_place(&self, place: &Rust) -> Result<Option<Scalar>> {
        Ok(match place {
            Rust::Infer(_) => None,
            Rust::Path(path) => Some(self.assignable_variable(path)?.1),
            Rust::Field(field) if self.is_structure_element(&field.base) => Some(self.field_type(field)?),
            Rust::Field(field) => Some(self.assignable_field(field)?.1),
            Rust::Index(index) => self.type_of_element(index),
            other => return refuse(other.span(), "only variables and elements are assigned"),
        })
    }

    /// Sets a place to a value, before the current statement.
    pub(crate) fn set_place(&mut self, place: &Rust, value: Expr) -> Result<()> {
        let at = place_of(place.span());
        let is = |ty: Scalar, value: &Expr| {
            if value.ty == ty {
                return Ok(());
            }
            refuse(place.span(), format!("{} where {ty} is needed: write `as {ty}`", value.ty))
        };
        match place {
            Rust::Infer(_) => {}
            Rust::Index(index) => {
                self.check_writable(index)?;
                let (array, element, index) = self.read_element(index)?;
                is(element, &value)?;
                let at = index.place;
                self.before.push(Stmt::new(StmtKind::Store { array, index, value }, at));
            }
            Rust::Field(field) if self.is_structure_element(&field.base) => {
                let ty = self.field_type(field)?;
                is(ty, &value)?;
                if let Some((array, _, index)) = self.field_place(field)? {
                    let at = index.place;
                    self.before.push(Stmt::new(StmtKind::Store { array, index, value }, at));
                }
            }
            Rust::Field(field) => {
                let (variable, ty) = self.assignable_field(field)?;
                is(ty, &value)?;
                self.before.push(Stmt::new(StmtKind::Set(variable, value), at));
            }
            Rust::Path(path) => {
                let (variable, ty) = self.assignable_variable(path)?;
                is(ty, &value)?;
                self.before.push(Stmt::new(StmtKind::Set(variable, value), at));
            }
            other => return refuse(other.span(), "only variables and elements are assigned"),
        }
        Ok(())
    }

    /// Reads the value and then the index of an element that is written.
    fn read_element_store(
        &mut self,
        index: &syn::ExprIndex,
        right: &Rust,
        operator: Option<Binary>,
    ) -> Result<(ArrayId, Expr, Expr)> {
        self.check_writable(index)?;
        let Some(ty) = self.type_of_element(index) else {
            // Says what is wrong.
            let (array, element, index) = self.read_element(index)?;
            return Ok((array, index, self.read_typed(right, element)?));
        };
        let mut value = self.read_right_side(right, ty, operator)?;
        let (array, _, index) = self.read_after(&mut [&mut value], |reader| reader.read_element(index))?;
        Ok((array, index, value))
    }

    /// Reads the right side of an assignment to a place of this type; a number of bits to shift by
    /// has any integer type.
    fn read_right_side(&mut self, right: &Rust, ty: Scalar, operator: Option<Binary>) -> Result<Expr> {
        match operator {
            Some(Binary::Shl | Binary::Shr) if !literal::is_open(right) => self.read_expr(right, None),
            _ => self.read_typed(right, ty),
        }
    }

    fn assignable_variable(&self, path: &syn::ExprPath) -> Result<(VarId, Scalar)> {
        let Some(name) = path.path.get_ident() else {
            return refuse(path.span(), "a kernel sees nothing outside of itself: make it a parameter");
        };
        match self.find(name)? {
            Meaning::Variable { id, mutable: true } => Ok((id, self.kernel.variable(id).ty)),
            Meaning::Variable { mutable: false, .. } => {
                refuse(name.span(), format!("`{name}` is set once: write `let mut {name}`"))
            }
            Meaning::Value(_) => refuse(
                name.span(),
                format!("`{name}` is a parameter, the same for all items: write `let mut {name} = {name};`"),
            ),
            Meaning::Constant(_) => refuse(name.span(), format!("`{name}` is a constant")),
            Meaning::Array(_) | Meaning::ReadOnly(_) | Meaning::View(_) | Meaning::Table(_) => {
                refuse(name.span(), format!("`{name}` is an array: assign to an element `{name}[i]`"))
            }
            Meaning::Tuple(_) => refuse(name.span(), format!("`{name}` is a tuple: assign to `{name}.0`")),
        }
    }

    /// Reads an index once that memory gives: a second read may differ.
    pub(crate) fn keep_index(&mut self, index: &mut Expr, out: &mut Vec<Stmt>) {
        if self.may_change(index) {
            let (ty, at) = (index.ty, index.place);
            let variable = self.add_hidden("index", ty, at);
            let value = core::mem::replace(index, Expr::variable(variable, ty, at));
            out.push(Stmt::new(StmtKind::Set(variable, value), at));
        }
    }

    pub(crate) fn read_update(
        &mut self,
        binary: &syn::ExprBinary,
        operator: Binary,
        out: &mut Vec<Stmt>,
    ) -> Result<()> {
        let at = place_of(binary.op.span());
        if let Some(of) = self.complex_type(&binary.left) {
            return self.update_complex(binary, operator, of, out);
        }
        match &*binary.left {
            Rust::Path(path) => {
                let (variable, ty) = self.assignable_variable(path)?;
                let right = self.read_right_side(&binary.right, ty, Some(operator))?;
                out.append(&mut self.before);
                let left = Expr::variable(variable, ty, place_of(path.span()));
                out.push(Stmt::new(StmtKind::Set(variable, Expr::binary(operator, left, right, at)), at));
                Ok(())
            }
            Rust::Index(index) => {
                let (array, mut index, right) =
                    self.read_element_store(index, &binary.right, Some(operator))?;
                out.append(&mut self.before);
                let at = index.place;
                self.keep_index(&mut index, out);
                let load = Expr::load(array, self.kernel.array(array).element, index.clone(), at);
                out.push(Stmt::new(
                    StmtKind::Store { array, index, value: Expr::binary(operator, load, right, at) },
                    at,
                ));
                Ok(())
            }
            Rust::Field(field) if self.is_structure_element(&field.base) => {
                let (array, mut index, right) =
                    self.read_field_store(field, &binary.right, Some(operator))?;
                out.append(&mut self.before);
                let at = index.place;
                self.keep_index(&mut index, out);
                let load = Expr::load(array, self.kernel.array(array).element, index.clone(), at);
                out.push(Stmt::new(
                    StmtKind::Store { array, index, value: Expr::binary(operator, load, right, at) },
                    at,
                ));
                Ok(())
            }
            Rust::Field(field) => {
                let (variable, ty) = self.assignable_field(field)?;
                let right = self.read_right_side(&binary.right, ty, Some(operator))?;
                out.append(&mut self.before);
                let left = Expr::variable(variable, ty, at);
                out.push(Stmt::new(StmtKind::Set(variable, Expr::binary(operator, left, right, at)), at));
                Ok(())
            }
            other => refuse(other.span(), "only variables and elements are assigned"),
        }
    }
}
