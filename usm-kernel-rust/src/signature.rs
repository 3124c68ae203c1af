//! Parameters.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, FnArg, Ident, Lit, Pat, Result, ReturnType, Signature, Type};
use usm_kernel_ir::{
    Array, ArrayId, Expr, ExprKind, Parameter, Scalar, Space, Stmt, StmtKind, Structure, Value, ValueId,
};

use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;
use crate::tuple;
use crate::types::{atomic_element, element_type, scalar};

/// The maximum number of parameters of usm-kernel's launches.
const PARAMETERS: usize = 16;

impl Reader {
    pub(crate) fn read_signature(&mut self, signature: &Signature) -> Result<()> {
        if let Some(word) = &signature.asyncness {
            return refuse(word.span, "a kernel is no `async fn`: a launch gives an event");
        }
        if let Some(word) = &signature.constness {
            return refuse(word.span, "a kernel is no `const fn`: only launches call it");
        }
        if let Some(abi) = &signature.abi {
            return refuse(abi.span(), "a kernel is no `extern` function: only launches call it");
        }
        if let ReturnType::Type(_, ty) = &signature.output {
            return refuse(ty.span(), "a kernel has no result: write it to an array");
        }
        let mut names = Vec::new();
        for argument in &signature.inputs {
            let FnArg::Typed(argument) = argument else {
                return refuse(argument.span(), "a kernel is no method: it takes arrays and scalars");
            };
            let Pat::Ident(pattern) = &*argument.pat else {
                return refuse(argument.pat.span(), "a parameter of a kernel is a name");
            };
            if pattern.subpat.is_some() || pattern.by_ref.is_some() {
                return refuse(pattern.span(), "a parameter of a kernel is a name");
            }
            if let Some(word) = &pattern.mutability {
                return refuse(
                    word.span,
                    "a parameter is the same for all items: write `let mut` in the body",
                );
            }
            if names.contains(&&pattern.ident) {
                return refuse(
                    pattern.ident.span(),
                    format!("two parameters are called `{}`", pattern.ident),
                );
            }
            names.push(&pattern.ident);
            self.read_parameter(&pattern.ident, &argument.ty)?;
        }
        if self.kernel.parameters.is_empty() {
            return refuse(
                signature.ident.span(),
                "a kernel without parameters does nothing: give it an array",
            );
        }
        let count = signature.inputs.len();
        if count > PARAMETERS {
            return refuse(
                signature.inputs.span(),
                format!("{count} parameters, a launch takes {PARAMETERS}"),
            );
        }
        Ok(())
    }

    fn read_parameter(&mut self, name: &Ident, ty: &Type) -> Result<()> {
        let text = name.to_string().trim_start_matches("r#").to_string();
        let at = place_of(name.span());
        let Type::Reference(reference) = ty else {
            let is_size = matches!(ty, Type::Path(path) if path.path.is_ident("usize"));
            if let Some(number) = self.structure_of_type(ty) {
                return self.read_structure_parameter(name, &text, number);
            }
            if let Some(types) = tuple::types(ty)? {
                return self.read_tuple_parameter(name, &text, &types, ty);
            }
            let scalar = scalar(ty)?;
            let id = ValueId(self.kernel.values.len() as u32);
            self.kernel.values.push(Value { name: text, ty: scalar, is_size, place: at });
            self.kernel.parameters.push(Parameter::Value(id));
            self.name(name, Meaning::Value(id));
            return Ok(());
        };
        let is_written = reference.mutability.is_some();
        if let Type::Slice(slice) = &*reference.elem {
            if let Some(number) = self.structure_of_type(&slice.elem) {
                let space = |_| if is_written { Space::Write } else { Space::Read };
                let (id, arrays) = self.declare_columns(name, number, &space);
                self.kernel.parameters.extend(arrays.into_iter().map(Parameter::Array));
                self.name(name, Meaning::Array(id));
                return Ok(());
            }
        }
        let (element, space) = match (&*reference.elem, is_written) {
            (Type::Slice(slice), true) => (element_type(&slice.elem)?, Space::Write),
            (Type::Slice(slice), false) => match atomic_element(&slice.elem)? {
                Some(element) => (element, Space::Atomic),
                None => (element_type(&slice.elem)?, Space::Read),
            },
            (Type::Array(array), false) => {
                (element_type(&array.elem)?, Space::Constant(self.length(&array.len)?))
            }
            (Type::Array(array), true) => {
                return refuse(
                    array.span(),
                    "an array of fixed size lies in constant memory: write `&mut [T]`",
                );
            }
            (other, _) => {
                return refuse(
                    other.span(),
                    "write `&[T]`, `&mut [T]`, `&[Atomic<T>]`, `&[T; N]` or a scalar",
                );
            }
        };
        let id = ArrayId(self.kernel.arrays.len() as u32);
        self.kernel.arrays.push(Array { name: text, element, space, place: at });
        self.kernel.parameters.push(Parameter::Array(id));
        self.name(name, Meaning::Array(id));
        Ok(())
    }

    /// Reads a structure by value: a parameter for each field. A variable of the structure has
    /// them.
    fn read_structure_parameter(&mut self, name: &Ident, text: &str, number: usize) -> Result<()> {
        let structure = self.neighbours.structures[number].clone();
        if structure.fields.len() > PARAMETERS {
            let (of, count) = (&structure.name, structure.fields.len());
            return refuse(
                name.span(),
                format!(
                    "`{of}` has {count} fields, a structure by value at most {PARAMETERS}: take `&[{of}]` of one"
                ),
            );
        }
        self.add_fields(name, text, structure, &|_| false);
        self.tuple_structures.insert(self.tuples.len() - 1, number);
        Ok(())
    }

    /// Reads a tuple by value: a parameter for each number.
    fn read_tuple_parameter(&mut self, name: &Ident, text: &str, types: &[Scalar], ty: &Type) -> Result<()> {
        if types.len() > PARAMETERS {
            let count = types.len();
            return refuse(
                name.span(),
                format!("a tuple of {count} numbers, a launch takes at most {PARAMETERS}: take `&[T]`"),
            );
        }
        if types.contains(&Scalar::Bool) {
            return refuse(name.span(), "a tuple of a kernel has numbers: write `u8` for bool");
        }
        let is_size = |position| tuple::is_size(ty, position);
        self.add_fields(name, text, Structure::tuple(types), &is_size);
        Ok(())
    }

    /// Adds a parameter for each field, and a variable for each, which is what the name means.
    fn add_fields(
        &mut self,
        name: &Ident,
        text: &str,
        structure: Structure,
        is_size: &dyn Fn(usize) -> bool,
    ) {
        let at = place_of(name.span());
        let mut variables = Vec::new();
        for (position, (field, ty)) in structure.fields.iter().enumerate() {
            let id = ValueId(self.kernel.values.len() as u32);
            let is_size = is_size(position);
            self.kernel.values.push(Value { name: format!("{text}.{field}"), ty: *ty, is_size, place: at });
            self.kernel.parameters.push(Parameter::Value(id));
            let variable = self.add_hidden(text, *ty, at);
            let value = Expr { kind: ExprKind::Value(id), ty: *ty, place: at };
            self.first.push(Stmt::new(StmtKind::Set(variable, value), at));
            variables.push(variable);
        }
        let first = self.kernel.values.len() - structure.fields.len();
        self.kernel.structures.push((Parameter::Value(ValueId(first as u32)), structure));
        self.tuples.push((variables, false));
        self.name(name, Meaning::Tuple(self.tuples.len() - 1));
    }

    /// Reads a number of elements.
    pub(crate) fn length(&self, expr: &Rust) -> Result<u64> {
        match self.literal_length(expr) {
            Some(number) => number,
            None => refuse(
                expr.span(),
                "an attribute sees no values of other items: write a number, or a constant in a module with `#[kernels]`",
            ),
        }
    }

    fn literal_length(&self, expr: &Rust) -> Option<Result<u64>> {
        match expr {
            Rust::Lit(syn::ExprLit { lit: Lit::Int(number), .. }) => Some(number.base10_parse()),
            Rust::Paren(inner) => self.literal_length(&inner.expr),
            Rust::Cast(cast) => self.literal_length(&cast.expr),
            Rust::Path(path) => match self.find(path.path.get_ident()?) {
                Ok(Meaning::Constant(value)) if value.ty.is_integer() => {
                    let wrong = || syn::Error::new(path.span(), "a length below 0");
                    Some(if value.ty.is_signed() && (value.bits as i64) < 0 {
                        Err(wrong())
                    } else {
                        Ok(value.bits)
                    })
                }
                _ => None,
            },
            Rust::Binary(binary) => {
                let (Some(Ok(one)), Some(Ok(two))) =
                    (self.literal_length(&binary.left), self.literal_length(&binary.right))
                else {
                    return None;
                };
                let value = match binary.op {
                    syn::BinOp::Add(_) => one.checked_add(two),
                    syn::BinOp::Sub(_) => one.checked_sub(two),
                    syn::BinOp::Mul(_) => one.checked_mul(two),
                    syn::BinOp::Div(_) => one.checked_div(two),
                    _ => None,
                };
                value.map(Ok)
            }
            _ => None,
        }
    }
}
