//! Calls: functions of the same module, which are inlined, and collective operations of a group.

use alloc::rc::Rc;

use proc_macro2::Span;
use syn::spanned::Spanned as _;
use syn::{Expr as Rust, ExprCall, FnArg, ItemFn, Pat, Result, ReturnType, Type, TypeArray};
use usm_kernel_ir::{
    Binary, Collection, Expr, ExprKind, Scalar, Space, Stmt, StmtKind, VarId, without_returns,
};

use crate::meaning::{InlinedCall, Meaning};
use crate::module::Module;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;
use crate::types::{atomic_element, element_type, scalar};
use crate::view::View;
use crate::{instance, tuple};

impl Reader {
    /// Inlines a function of the same module before the statement, and gives its results. `None`:
    /// no function has this name.
    pub(crate) fn read_call(&mut self, call: &ExprCall, name: &str) -> Result<Option<Vec<Expr>>> {
        self.neighbours.refuse_conditional(name, call.func.span())?;
        self.refuse_other_function(call, name)?;
        let Some(mut function) = self.neighbours.function(name) else { return Ok(None) };
        if let Rust::Path(path) = &*call.func {
            if let Some(concrete) = instance::of_call(&function, path)? {
                function = Rc::new(concrete);
            }
        }
        self.count_inlined(call.span())?;
        if self.calls.iter().any(|outer| outer.name == name) {
            return refuse(
                call.span(),
                format!("`{name}` calls itself: devices have no recursion, write a loop"),
            );
        }
        let (expected, found) = (function.sig.inputs.len(), call.args.len());
        if expected != found {
            return refuse(
                call.span(),
                format!("`{name}` has {expected} parameters, {found} arguments are given"),
            );
        }
        let mut names = Vec::new();
        for (parameter, argument) in function.sig.inputs.iter().zip(&call.args) {
            let binding = self.bind_parameter(parameter, argument)?;
            if names.iter().any(|(name, _)| *name == binding.0) {
                return refuse(parameter.span(), format!("two parameters are called `{}`", binding.0));
            }
            names.push(binding);
        }
        let at = place_of(call.span());
        let types = match &function.sig.output {
            ReturnType::Default => Vec::new(),
            ReturnType::Type(_, ty) => match (self.field_types(ty), tuple::types(ty)?) {
                (Some(types), _) | (None, Some(types)) => types,
                (None, None) => vec![scalar(ty)?],
            },
        };
        let results: Vec<VarId> = types.iter().map(|ty| self.add_hidden(name, *ty, at)).collect();
        let outside = self.enter_body();
        for (ident, meaning) in names {
            self.name(&ident, meaning);
        }
        self.calls.push(InlinedCall { name: name.into(), results: results.clone() });
        let before = core::mem::take(&mut self.before);
        let inside = self.read_function_body(&function);
        self.before = before;
        let _ = self.calls.pop();
        self.restore(outside);
        let inside = without_returns(&mut self.kernel, inside?, &results);
        self.before.extend(inside);
        Ok(Some(results.into_iter().zip(types).map(|(id, ty)| Expr::variable(id, ty, at)).collect()))
    }

    /// Refuses a call of a function that a kernel does not see, although it knows one of this name.
    fn refuse_other_function(&self, call: &ExprCall, name: &str) -> Result<()> {
        let Rust::Path(path) = &*call.func else { return Ok(()) };
        let Module { functions, others, .. } = &*self.neighbours;
        let first = path.path.segments.first().map(|first| first.ident.to_string()).unwrap_or_default();
        if path.path.segments.len() == 1 || first == "self" {
            if others.iter().any(|other| other == name) {
                return refuse(path.span(), format!("`{name}` of this module is no `#[kernel_fn]`"));
            }
            return Ok(());
        }
        let is_neighbour = functions.iter().any(|function| function.sig.ident == name);
        let is_known = matches!(first.as_str(), "core" | "std") || Scalar::from_name(&first).is_some();
        if is_neighbour || (matches!(name, "min" | "max") && !is_known) {
            return refuse(
                path.span(),
                format!(
                    "a kernel sees no functions of other modules: write `{name}` for the one that it knows"
                ),
            );
        }
        Ok(())
    }

    /// The meaning of a parameter's name inside the function: an array of the caller, or a variable
    /// with the argument's value.
    fn bind_parameter(&mut self, parameter: &FnArg, argument: &Rust) -> Result<(syn::Ident, Meaning)> {
        let FnArg::Typed(parameter) = parameter else {
            return refuse(parameter.span(), "a function of kernels is no method");
        };
        let Pat::Ident(pattern) = &*parameter.pat else {
            return refuse(parameter.pat.span(), "a parameter is a name");
        };
        if let Some(meaning) = self.bind_structure(&parameter.ty, pattern.mutability.is_some(), argument)? {
            return Ok((pattern.ident.clone(), meaning));
        }
        if let Type::Reference(reference) = &*parameter.ty {
            let (Type::Slice(syn::TypeSlice { elem, .. }) | Type::Array(TypeArray { elem, .. })) =
                &*reference.elem
            else {
                return refuse(reference.elem.span(), "write `&[T]` or `&mut [T]`");
            };
            let mut value = argument;
            while let Rust::Reference(inner) = value {
                value = &inner.expr;
            }
            let Some(mut view) = self.read_view(value)?.filter(|view| view.depth() > 0) else {
                return refuse(
                    argument.span(),
                    "an array of the kernel is needed here, by its name, or a part of it",
                );
            };
            let is_atomic = atomic_element(elem)?;
            let (needed, inner) = match is_atomic {
                Some(element) => (element, Vec::new()),
                None => self.row_lengths(elem)?,
            };
            let own = self.kernel.array(view.array).element;
            if needed != own {
                return refuse(argument.span(), format!("an array of {own}, not {needed}"));
            }
            let shape: Vec<Option<u64>> = inner.into_iter().map(Some).collect();
            if shape != view.inner_lengths() {
                let (own, expected) = (view.depth(), shape.len() + 1);
                return refuse(
                    argument.span(),
                    format!("rows of another shape: {own} dimensions, not {expected}, or of other lengths"),
                );
            }
            if let Type::Array(array) = &*reference.elem {
                self.refuse_other_length(array, &view, argument)?;
            }
            let writes = reference.mutability.is_some() || is_atomic.is_some();
            if writes && view.read_only {
                return refuse(argument.span(), "this array is only read here: take `&mut [T]`");
            }
            view.read_only = !writes;
            let meaning = if view.is_whole() {
                if writes { Meaning::Array(view.array) } else { Meaning::ReadOnly(view.array) }
            } else {
                view.keep(self);
                self.views.push(view);
                Meaning::View(self.views.len() - 1)
            };
            return Ok((pattern.ident.clone(), meaning));
        }
        if let Some(types) = tuple::types(&parameter.ty)? {
            let hints: Vec<_> = types.iter().map(|ty| Some(*ty)).collect();
            let values = self.tuple_parts(argument, &hints)?;
            let own_types: Vec<Scalar> = values.iter().map(|value| value.ty).collect();
            if own_types != types {
                return refuse(
                    argument.span(),
                    format!("a tuple of {own_types:?}, not {types:?}").to_lowercase(),
                );
            }
            let mut parts = Vec::new();
            for value in values {
                let variable = self.add_hidden(&pattern.ident.to_string(), value.ty, value.place);
                let at = value.place;
                self.before.push(Stmt::new(StmtKind::Set(variable, value), at));
                parts.push(variable);
            }
            self.tuples.push((parts, pattern.mutability.is_some()));
            return Ok((pattern.ident.clone(), Meaning::Tuple(self.tuples.len() - 1)));
        }
        let ty = scalar(&parameter.ty)?;
        let value = self.read_typed(argument, ty)?;
        let variable = self.add_hidden(&pattern.ident.to_string(), ty, value.place);
        self.before.push(Stmt::new(StmtKind::Set(variable, value.clone()), value.place));
        Ok((pattern.ident.clone(), Meaning::Variable { id: variable, mutable: pattern.mutability.is_some() }))
    }

    /// The elements of rows, `[[T; N]; M]`, and the lengths of their dimensions.
    pub(crate) fn row_lengths(&self, ty: &Type) -> Result<(Scalar, Vec<u64>)> {
        let (mut ty, mut lengths) = (ty, Vec::new());
        while let Type::Array(array) = ty {
            lengths.push(self.length(&array.len)?);
            ty = &array.elem;
        }
        Ok((element_type(ty)?, lengths))
    }

    /// A parameter `&[T; N]` takes only arrays of that length.
    fn refuse_other_length(&self, array: &TypeArray, view: &View, argument: &Rust) -> Result<()> {
        let expected = self.length(&array.len)?;
        let own_length = match (&self.kernel.array(view.array).space, view.length().map(|length| length.kind))
        {
            (_, Some(ExprKind::Literal(length))) => Some(length.bits),
            (Space::Private(len) | Space::Constant(len), _) if view.is_whole() => Some(*len),
            (Space::Local(Expr { kind: ExprKind::Literal(len), .. }), _) if view.is_whole() => Some(len.bits),
            _ => None,
        };
        match own_length {
            Some(own_length) if own_length == expected => Ok(()),
            Some(own_length) => {
                refuse(argument.span(), format!("an array of {own_length} elements, not {expected}"))
            }
            None => refuse(argument.span(), "an array of no fixed length: take `&[T]`"),
        }
    }

    /// Reads a function's body; its last expression sets the results.
    fn read_function_body(&mut self, function: &ItemFn) -> Result<Vec<Stmt>> {
        let mut block = (*function.block).clone();
        let has_results = self.calls.last().is_some_and(|call| !call.results.is_empty());
        let last = match block.stmts.last() {
            Some(syn::Stmt::Expr(value, None)) if has_results && is_value(value) => {
                let value = value.clone();
                let _ = block.stmts.pop();
                Some(value)
            }
            _ => None,
        };
        self.read_block_and(&block, |reader, out| match last {
            Some(value) => reader.set_results(&value, out),
            None => Ok(()),
        })
    }

    /// Sets the results of the function that is being read.
    fn set_results(&mut self, value: &Rust, out: &mut Vec<Stmt>) -> Result<()> {
        let results = self.calls.last().map(|call| call.results.clone()).unwrap_or_default();
        let values = match &results[..] {
            [result] => vec![self.read_typed(value, self.kernel.variable(*result).ty)?],
            _ => {
                let hints: Vec<_> = results.iter().map(|id| Some(self.kernel.variable(*id).ty)).collect();
                self.tuple_parts(value, &hints)?
            }
        };
        if values.len() != results.len() {
            return refuse(value.span(), format!("{} values, not {}", values.len(), results.len()));
        }
        out.append(&mut self.before);
        let value_span = value.span();
        for (result, value) in results.into_iter().zip(values) {
            let (ty, result_ty, at) = (value.ty, self.kernel.variable(result).ty, value.place);
            if ty != result_ty {
                return refuse(
                    value_span,
                    format!("{ty} where {result_ty} is needed: write `as {result_ty}`"),
                );
            }
            out.push(Stmt::new(StmtKind::Set(result, value), at));
        }
        Ok(())
    }

    /// Reads a collective operation of a group; `None` for other names.
    pub(crate) fn read_collective(
        &mut self,
        call: &ExprCall,
        name: &str,
        hint: Option<Scalar>,
    ) -> Result<Option<Expr>> {
        let at = place_of(call.span());
        let arguments: Vec<&Rust> = call.args.iter().collect();
        let collection = match name {
            "group_reduce" | "group_any" | "group_all" => Some(Collection::Reduce),
            "group_inclusive_scan" => Some(Collection::Inclusive),
            "group_exclusive_scan" => Some(Collection::Exclusive),
            "group_broadcast" => None,
            _ => return Ok(None),
        };
        let is_of_truth = matches!(name, "group_any" | "group_all");
        let [value, rest @ ..] = &arguments[..] else {
            return refuse(call.span(), format!("`{name}` needs a value"));
        };
        let mut value =
            if is_of_truth { self.read_typed(value, Scalar::Bool)? } else { self.read_expr(value, hint)? };
        let ty = value.ty;
        let to = self.add_hidden(name, ty, at);
        let kind = match (collection, rest) {
            (None, [from]) => {
                let from =
                    self.read_after(&mut [&mut value], |reader| reader.read_typed(from, Scalar::U64))?;
                StmtKind::Broadcast { variable: to, value, from }
            }
            (Some(collection), []) if is_of_truth => {
                let operator = if name == "group_any" { Binary::Or } else { Binary::And };
                StmtKind::Collect { collection, operator, variable: to, value }
            }
            (Some(collection), [operator]) if !is_of_truth => {
                let combination = combining_operator(operator)?;
                if !combination.collects(ty) {
                    return refuse(operator.span(), format!("{ty} is not collected by this"));
                }
                StmtKind::Collect { collection, operator: combination, variable: to, value }
            }
            _ => {
                let how = match name {
                    "group_broadcast" => "group_broadcast(value, local_id)",
                    "group_any" | "group_all" => "group_any(condition)",
                    _ => "group_reduce(value, ADD)",
                };
                return refuse(call.span(), format!("write `{how}`"));
            }
        };
        self.before.push(Stmt::new(kind, at));
        Ok(Some(Expr::variable(to, ty, at)))
    }

    /// Reads `return` inside a function of kernels.
    pub(crate) fn read_return(
        &mut self,
        value: Option<&Rust>,
        span: Span,
        out: &mut Vec<Stmt>,
    ) -> Result<()> {
        let at = place_of(span);
        let has_results = self.calls.last().map(|call| !call.results.is_empty());
        match (has_results, value) {
            (None, Some(value)) => {
                return refuse(value.span(), "a kernel has no result: write it to an array");
            }
            (Some(false), Some(value)) => {
                return refuse(value.span(), "this function has no result: write `-> T`");
            }
            (Some(true), None) => return refuse(span, "this function has a result: write `return value`"),
            (Some(true), Some(value)) => self.set_results(value, out)?,
            (_, None) => {}
        }
        out.push(Stmt::new(StmtKind::Return, at));
        Ok(())
    }
}

/// Whether the last expression of a body is its value, and not a statement that returns itself.
fn is_value(last: &Rust) -> bool {
    match last {
        Rust::Return(_) | Rust::While(_) | Rust::Loop(_) | Rust::ForLoop(_) | Rust::Assign(_) => false,
        // A branch is a value if its blocks end in values.
        Rust::If(branch) => branch.then_branch.stmts.last().is_some_and(|stmt| {
            matches!(stmt, syn::Stmt::Expr(value, None) if is_value(value)) && branch.else_branch.is_some()
        }),
        _ => true,
    }
}

pub(crate) fn combining_operator(operator: &Rust) -> Result<Binary> {
    let name = match operator {
        Rust::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default(),
        _ => String::new(),
    };
    Ok(match name.as_str() {
        "ADD" => Binary::Add,
        "MUL" => Binary::Mul,
        "MIN" => Binary::Min,
        "MAX" => Binary::Max,
        "AND" => Binary::And,
        "OR" => Binary::Or,
        "XOR" => Binary::Xor,
        _ => return refuse(operator.span(), "write ADD, MUL, MIN, MAX, AND, OR or XOR"),
    })
}
