//! Declarations: variables, and arrays of a group or of an item.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Ident, Local, Pat, Result, Type};
use usm_kernel_ir::{Array, ArrayId, Binary, Expr, ExprKind, Scalar, Space, Stmt, StmtKind};

use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;
use crate::types::scalar;
use crate::view::{View, number};
use crate::{constant, literal};

/// Maximum number of values in a list.
const MOST_LISTED: u64 = 4096;

/// Maximum number of elements of an array that is a constant of the module: each item has a copy.
const MOST_IN_TABLE: u64 = 256;

impl Reader {
    /// Reads a `let`.
    pub(crate) fn declare(&mut self, local: &Local, out: &mut Vec<Stmt>) -> Result<()> {
        if let Some(attribute) = local.attrs.first() {
            let space = attribute.path();
            return if space.is_ident("local") {
                let (name, id) = self.declare_array(local, true, out)?;
                self.name(&name, Meaning::Array(id));
                Ok(())
            } else {
                refuse(attribute.span(), "write `#[local]` for memory of the group")
            };
        }
        let (pattern, ty) = match &local.pat {
            Pat::Type(annotation) => (&*annotation.pat, Some(&*annotation.ty)),
            other => (other, None),
        };
        if matches!(ty, Some(Type::Array(_))) {
            let (name, id) = self.declare_array(local, false, out)?;
            let Some(init) = &local.init else {
                return refuse(
                    local.span(),
                    "a private array needs values: `let mut a: [f32; 16] = [0.0; 16];`",
                );
            };
            match self.structures.contains_key(&id) {
                true => self.fill_columns(id, &init.expr, out)?,
                false => self.fill_array(id, &init.expr, out)?,
            }
            self.name(&name, Meaning::Array(id));
            return Ok(());
        }
        let Some(init) = &local.init else {
            // Its type says what it is; each read needs a value before.
            return match (pattern, ty) {
                (Pat::Ident(name), Some(ty)) if name.subpat.is_none() && name.by_ref.is_none() => {
                    let _ = self.variable(&name.ident, scalar(ty)?, true);
                    Ok(())
                }
                _ => refuse(local.span(), "a variable without a value needs its type: `let x: f32;`"),
            };
        };
        if let Some((word, _)) = &init.diverge {
            return refuse(word.span, "`let .. else` is no part of a kernel: write `if`");
        }
        if let Some(mut part) = self.read_array_part(&init.expr)? {
            let Pat::Ident(name) = pattern else {
                return refuse(pattern.span(), "a part of an array needs a name");
            };
            part.keep(self);
            out.append(&mut self.before);
            self.views.push(part);
            self.name(&name.ident, Meaning::View(self.views.len() - 1));
            return Ok(());
        }
        if let (Pat::Ident(name), Rust::Array(_) | Rust::Repeat(_)) = (pattern, &*init.expr) {
            out.append(&mut self.before);
            if let Some((number, len)) = self.structure_list(&init.expr)? {
                let (id, _) =
                    self.declare_columns(&name.ident, number, &|elements| Space::Private(len * elements));
                self.fill_columns(id, &init.expr, out)?;
                self.name(&name.ident, Meaning::Array(id));
                return Ok(());
            }
            let id = self.declare_list(&name.ident, &init.expr)?;
            self.fill_array(id, &init.expr, out)?;
            self.name(&name.ident, Meaning::Array(id));
            return Ok(());
        }
        if self.is_tuple(&init.expr) || ty.is_some_and(|ty| self.structure_of_type(ty).is_some()) {
            return self.declare_tuple(pattern, ty, &init.expr, out);
        }
        match pattern {
            Pat::Ident(name) if name.subpat.is_none() && name.by_ref.is_none() => {
                let ty = ty.map(scalar).transpose()?;
                let value = match ty {
                    Some(ty) => self.read_typed(&init.expr, ty)?,
                    None => self.read_expr(&init.expr, None)?,
                };
                out.append(&mut self.before);
                let variable = self.variable(&name.ident, value.ty, name.mutability.is_some());
                out.push(Stmt::new(StmtKind::Set(variable, value), place_of(name.span())));
                Ok(())
            }
            Pat::Wild(_) => {
                let _ = self.read_expr(&init.expr, None)?;
                out.append(&mut self.before);
                Ok(())
            }
            Pat::Tuple(_) => refuse(init.expr.span(), "a tuple of as many values is needed here"),
            other => refuse(other.span(), "a name, or a tuple of names, is needed here"),
        }
    }

    /// A row or slice, or an array itself by another name; `None` for numbers.
    fn read_array_part(&mut self, init: &Rust) -> Result<Option<View>> {
        let mut of = init;
        while let Rust::Reference(inner) = of {
            of = &inner.expr;
        }
        // Without `&` a structure is a copy.
        let is_copy = !matches!(init, Rust::Reference(_)) && self.is_structure_element(of);
        if is_copy || !matches!(of, Rust::Path(_) | Rust::Index(_)) || self.view_depth(of) == Some(0) {
            return Ok(None);
        }
        self.read_view(init)
    }

    /// Reads the declaration of a local or private array.
    fn declare_array(
        &mut self,
        local: &Local,
        is_local: bool,
        out: &mut Vec<Stmt>,
    ) -> Result<(Ident, ArrayId)> {
        out.append(&mut self.before);
        let Pat::Type(annotation) = &local.pat else {
            return refuse(local.span(), "an array needs its type: `let mut a: [f32; 16]`");
        };
        let (Pat::Ident(name), Type::Array(ty)) = (&*annotation.pat, &*annotation.ty) else {
            return refuse(annotation.span(), "an array needs its type: `let mut a: [f32; 16]`");
        };
        if let (true, Some(init)) = (is_local, &local.init) {
            return refuse(
                init.expr.span(),
                "local memory has no value at first: let the items write it, then a barrier",
            );
        }
        if let Some(number) = self.structure_of_type(&ty.elem) {
            return Ok((
                name.ident.clone(),
                self.declare_structures(&name.ident, number, &ty.len, is_local)?,
            ));
        }
        let (element, inner) = self.row_lengths(&ty.elem)?;
        let per_row: u64 = inner.iter().product();
        let mut lengths = Vec::new();
        let space = if is_local {
            let len = match self.length(&ty.len) {
                Ok(len) => {
                    lengths.push(len);
                    number(len.saturating_mul(per_row), place_of(ty.len.span()))
                }
                Err(_) if inner.is_empty() => self.read_expr(&ty.len, Some(Scalar::U64))?,
                Err(error) => return Err(error),
            };
            Space::Local(len)
        } else {
            let len = self.length(&ty.len)?;
            lengths.push(len);
            Space::Private(len.saturating_mul(per_row))
        };
        let lengths = if inner.is_empty() { Vec::new() } else { lengths.into_iter().chain(inner).collect() };
        Ok((name.ident.clone(), self.add_array(&name.ident, element, space, lengths)))
    }

    /// Declares an array of structures, of a group or of an item.
    fn declare_structures(
        &mut self,
        name: &Ident,
        number: usize,
        len: &Rust,
        is_local: bool,
    ) -> Result<ArrayId> {
        let at = place_of(len.span());
        let len = match self.length(len) {
            Ok(len) => self::number(len, at),
            Err(error) if !is_local => return Err(error),
            Err(_) => self.read_expr(len, Some(Scalar::U64))?,
        };
        let space = |elements: u64| match (&len.kind, elements) {
            (ExprKind::Literal(len), _) if !is_local => Space::Private(len.bits.saturating_mul(elements)),
            (ExprKind::Literal(len), _) => Space::Local(self::number(len.bits.saturating_mul(elements), at)),
            (_, 1) => Space::Local(len.clone()),
            (_, elements) => {
                Space::Local(Expr::binary(Binary::Mul, len.clone(), self::number(elements, at), at))
            }
        };
        Ok(self.declare_columns(name, number, &space).0)
    }

    /// Adds an array; `lengths` are those of several dimensions.
    fn add_array(&mut self, name: &Ident, element: Scalar, space: Space, lengths: Vec<u64>) -> ArrayId {
        let id = ArrayId(self.kernel.arrays.len() as u32);
        let (text, place) = (name.to_string(), place_of(name.span()));
        self.kernel.arrays.push(Array { name: text, element, space, place });
        if lengths.len() > 1 {
            self.shapes.insert(id, lengths);
        }
        id
    }

    /// Adds a private array whose values say its type.
    fn declare_list(&mut self, name: &Ident, init: &Rust) -> Result<ArrayId> {
        let (mut lengths, mut rest) = (Vec::new(), vec![init]);
        let mut element = None;
        let mut first = Some(init);
        while let Some(value) = first {
            first = match value {
                Rust::Array(values) => {
                    lengths.push(values.elems.len() as u64);
                    values.elems.first()
                }
                Rust::Repeat(repeat) => {
                    lengths.push(self.length(&repeat.len)?);
                    Some(&*repeat.expr)
                }
                _ => None,
            };
        }
        while let (Some(value), None) = (rest.pop(), element) {
            match value {
                Rust::Array(values) => rest.extend(values.elems.iter().rev()),
                Rust::Repeat(repeat) => rest.push(&repeat.expr),
                open if literal::is_open(open) => {}
                // It is read again where it is stored.
                first => element = Some(self.read_apart(|reader| reader.read_expr(first, None))?.0.ty),
            }
        }
        let Some(element) = element else {
            return refuse(
                init.span(),
                "the type of these numbers is open: write it, such as `0_u32` or `0.0_f32`",
            );
        };
        let len = lengths.iter().fold(1_u64, |all, one| all.saturating_mul(*one));
        Ok(self.add_array(name, element, Space::Private(len), lengths))
    }

    /// Reads the values of a private array.
    fn fill_array(&mut self, id: ArrayId, init: &Rust, out: &mut Vec<Stmt>) -> Result<()> {
        let (element, at) = (self.kernel.array(id).element, self.kernel.array(id).place);
        let len = if let Space::Private(len) = self.kernel.array(id).space { len } else { 0 };
        let shape = self.shapes.get(&id).cloned().unwrap_or_else(|| vec![len]);
        if let Some(value) = self.repeat_element(init, &shape)? {
            let value = self.read_typed(value, element)?;
            out.append(&mut self.before);
            let variable = self.add_hidden("k", Scalar::U64, at);
            let index = Expr::variable(variable, Scalar::U64, at);
            let store = Stmt::new(StmtKind::Store { array: id, index, value }, at);
            let (start, end, step) = (number(0, at), number(len, at), number(1, at));
            out.push(Stmt::new(StmtKind::For { variable, start, end, step, body: vec![store] }, at));
            return Ok(());
        }
        let mut values = Vec::new();
        self.list_elements(init, &shape, &mut values)?;
        for (place, value) in values.into_iter().enumerate() {
            let value = self.read_typed(value, element)?;
            out.append(&mut self.before);
            let at = value.place;
            out.push(Stmt::new(StmtKind::Store { array: id, index: number(place as u64, at), value }, at));
        }
        Ok(())
    }

    /// The value that all elements have, `[[value; N]; M]`; `None` for a list.
    fn repeat_element<'r>(&self, init: &'r Rust, shape: &[u64]) -> Result<Option<&'r Rust>> {
        let [len, rest @ ..] = shape else { return Ok(Some(init)) };
        let Rust::Repeat(repeat) = init else { return Ok(None) };
        if self.length(&repeat.len)? != *len {
            return refuse(repeat.len.span(), format!("the array has {len} elements"));
        }
        let inner = self.repeat_element(&repeat.expr, rest)?;
        if inner.is_none() {
            return refuse(repeat.span(), "repeat one number, or list the rows");
        }
        Ok(inner)
    }

    /// The values of lists in lists, in order.
    fn list_elements<'r>(&self, init: &'r Rust, shape: &[u64], out: &mut Vec<&'r Rust>) -> Result<()> {
        let [len, rest @ ..] = shape else {
            out.push(init);
            return Ok(());
        };
        if out.len() as u64 >= MOST_LISTED {
            return refuse(init.span(), format!("more than {MOST_LISTED} values in a list"));
        }
        match init {
            Rust::Array(values) if values.elems.len() as u64 == *len => {
                values.elems.iter().try_for_each(|value| self.list_elements(value, rest, out))
            }
            Rust::Array(values) => {
                refuse(values.span(), format!("{} values for {len} elements", values.elems.len()))
            }
            Rust::Repeat(repeat) => match self.repeat_element(init, shape)? {
                Some(value) => {
                    let count = shape.iter().product::<u64>();
                    if out.len() as u64 + count > MOST_LISTED {
                        return refuse(repeat.span(), format!("more than {MOST_LISTED} values in a list"));
                    }
                    out.extend((0..count).map(|_| value));
                    Ok(())
                }
                None => refuse(init.span(), "write `[value; length]` or a list of values"),
            },
            other => refuse(other.span(), "write `[value; length]` or a list of values"),
        }
    }

    /// The array of a constant of the module, filled before the body.
    pub(crate) fn read_table(&mut self, item: &syn::ItemConst) -> Result<ArrayId> {
        let Type::Array(ty) = &*item.ty else { return refuse(item.ty.span(), "an array is needed here") };
        let (element, inner) = self.row_lengths(&ty.elem)?;
        let shape: Vec<u64> = core::iter::once(self.length(&ty.len)?).chain(inner).collect();
        let len = shape.iter().fold(1_u64, |all, one| all.saturating_mul(*one));
        if len > MOST_IN_TABLE {
            return refuse(
                item.ident.span(),
                format!(
                    "{len} elements: a constant of a kernel has {MOST_IN_TABLE}; pass it as `&[{element}; {len}]`"
                ),
            );
        }
        let at = place_of(item.ident.span());
        let id = self.add_array(&item.ident, element, Space::Private(len), shape.clone());
        let mut values = Vec::new();
        self.list_elements(&item.expr, &shape, &mut values)?;
        for (place, value) in values.into_iter().enumerate() {
            let span = value.span();
            let value = self.read_typed(value, element)?;
            let Some(value) = constant::fold(&value) else {
                return refuse(span, "a constant of kernels is a number, or a sum or product of numbers");
            };
            let store = StmtKind::Store {
                array: id,
                index: number(place as u64, at),
                value: Expr::literal(value, at),
            };
            self.first.push(Stmt::new(store, at));
        }
        Ok(id)
    }
}
