//! Calls of methods of numbers, and of what has elements.

use syn::spanned::Spanned as _;
use syn::{Expr as Rust, Result};
use usm_kernel_ir::{Binary, Expr, ExprKind, Literal, Math, Scalar, Unary};

use crate::atomic;
use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;

impl Reader {
    pub(crate) fn read_method(&mut self, call: &syn::ExprMethodCall, hint: Option<Scalar>) -> Result<Expr> {
        let at = place_of(call.method.span());
        let name = call.method.to_string();
        if let Some(of) = self.complex_type(&call.receiver) {
            return self.read_complex_method(call, of);
        }
        let arguments: Vec<&Rust> = call.args.iter().collect();
        if let Some(value) = self.read_array_method(call, &name)? {
            return Ok(value);
        }
        let arithmetic = match name.as_str() {
            "wrapping_add" => Some(Binary::Add),
            "wrapping_sub" => Some(Binary::Sub),
            "wrapping_mul" => Some(Binary::Mul),
            "min" => Some(Binary::Min),
            "max" => Some(Binary::Max),
            _ => None,
        };
        if let Some(operator) = arithmetic {
            let [right] = arguments[..] else {
                return refuse(call.method.span(), format!("`{name}` has one argument"));
            };
            let (left, right) = self.read_pair(&call.receiver, right, hint)?;
            if !operator.takes(left.ty) {
                return refuse(call.method.span(), format!("{} has no `{name}`", left.ty));
            }
            return Ok(Expr::binary(operator, left, right, at));
        }
        if name == "to_f32" && arguments.is_empty() {
            let half = self.read_expr(&call.receiver, None)?;
            if half.ty.is_half() {
                return Ok(half.cast(Scalar::F32, at));
            }
            return refuse(call.method.span(), format!("{} has no `to_f32`: write `as f32`", half.ty));
        }
        if name == "to_bits" && arguments.is_empty() {
            let number = self.read_expr(&call.receiver, None)?;
            if number.ty.is_float() || number.ty.is_half() {
                let word = number.ty.unsigned();
                return Ok(number.bits(word, at));
            }
            return refuse(call.method.span(), format!("{} has no `to_bits`", number.ty));
        }
        if let Some(value) = self.read_classification(call, &name)? {
            return Ok(value);
        }
        if let Some(value) = self.read_number_method(call, &name, hint)? {
            return Ok(value);
        }
        let Some(function) = Math::of_method(&name) else {
            return refuse(
                call.method.span(),
                format!(
                    "`{name}` is unknown here; numbers have min, max, abs, wrapping_add, _sub, _mul, and floating point numbers sqrt, floor, ceil, trunc, round, exp, \
                 ln, sin, cos, powf, mul_add, is_nan, is_finite and others of std"
                ),
            );
        };
        self.read_math(call, function, hint)
    }

    fn read_math(
        &mut self,
        call: &syn::ExprMethodCall,
        function: Math,
        hint: Option<Scalar>,
    ) -> Result<Expr> {
        let (at, name) = (place_of(call.method.span()), &call.method);
        let receiver = self.read_expr(&call.receiver, hint)?;
        if function == Math::Abs && receiver.ty.is_signed() && call.args.is_empty() {
            let negative = Expr::unary(Unary::Neg, receiver.clone(), at);
            return Ok(Expr::binary(Binary::Max, receiver, negative, at));
        }
        if !receiver.ty.is_float() {
            return refuse(call.method.span(), format!("{} has no `{name}`: write `as f32`", receiver.ty));
        }
        let ty = receiver.ty;
        let mut all = vec![receiver];
        for argument in &call.args {
            let mut earlier: Vec<&mut Expr> = all.iter_mut().collect();
            let next = self.read_after(&mut earlier, |reader| reader.read_typed(argument, ty))?;
            all.push(next);
        }
        if all.len() != function.arguments() {
            return refuse(
                call.method.span(),
                format!("`{name}` has {} arguments", function.arguments() - 1),
            );
        }
        Ok(Expr { kind: ExprKind::Math(function, all), ty, place: at })
    }

    /// Reads the length of an array, or what an atomic operation on an element gives.
    fn read_array_method(&mut self, call: &syn::ExprMethodCall, name: &str) -> Result<Option<Expr>> {
        let at = place_of(call.method.span());
        if self.root_array(&call.receiver).ok().flatten().is_some() || self.is_table(&call.receiver) {
            if name == "len" && call.args.is_empty() {
                let length = self.read_view(&call.receiver)?.and_then(|of| of.length());
                if let Some(mut length) = length {
                    length.place = at;
                    return Ok(Some(length));
                }
            }
            let mut receiver = &*call.receiver;
            while let Rust::Paren(syn::ExprParen { expr, .. }) | Rust::Group(syn::ExprGroup { expr, .. }) =
                receiver
            {
                receiver = expr;
            }
            if !matches!(receiver, Rust::Index(_)) {
                return refuse(call.method.span(), "of an array a kernel knows `len()`, elements and slices");
            }
        }
        if let Rust::Index(index) = &*call.receiver {
            if name == "load" && call.args.is_empty() {
                let (array, element, index) = self.read_element(index)?;
                let at = index.place;
                return Ok(Some(Expr::load(array, element, index, at)));
            }
            if name == "load" {
                let (array, element, index) = self.read_element(index)?;
                let (at, to) = (index.place, self.add_hidden("loaded", element, at));
                let stmts = atomic::load(call, to, Expr::load(array, element, index, at))?;
                self.before.extend(stmts);
                return Ok(Some(Expr::variable(to, element, at)));
            }
            if atomic::is_atomic(call) {
                let Some((array, _)) = self.root_array(&index.expr)? else {
                    return refuse(index.span(), "an atomic operation needs an element: `a[i]`");
                };
                let element = self.kernel.array(array).element;
                let old = self.add_hidden("old", element, at);
                let stmts = self.read_atomic(call, Some(old))?;
                self.before.extend(stmts);
                return Ok(Some(Expr::variable(old, element, at)));
            }
        }
        Ok(None)
    }

    /// `is_nan`, `is_infinite` and `is_finite`: the absolute value beside infinity.
    fn read_classification(&mut self, call: &syn::ExprMethodCall, name: &str) -> Result<Option<Expr>> {
        let operator = match name {
            "is_nan" => Binary::Le,
            "is_infinite" => Binary::Eq,
            "is_finite" => Binary::Lt,
            _ => return Ok(None),
        };
        let at = place_of(call.method.span());
        let value = self.read_expr(&call.receiver, None)?;
        let ty = value.ty;
        let infinity = match ty {
            Scalar::F32 => Literal::f32(f32::INFINITY),
            Scalar::F64 => Literal::f64(f64::INFINITY),
            other => return refuse(call.method.span(), format!("{other} has no `{name}`")),
        };
        if !call.args.is_empty() {
            return refuse(call.method.span(), format!("`{name}` has no arguments"));
        }
        let size = Expr { kind: ExprKind::Math(Math::Abs, vec![value]), ty, place: at };
        let comparison = Expr::binary(operator, size, Expr::literal(infinity, at), at);
        // Only a number is at most infinite.
        Ok(Some(if name == "is_nan" { Expr::unary(Unary::Not, comparison, at) } else { comparison }))
    }

    fn is_table(&self, value: &Rust) -> bool {
        match value {
            Rust::Path(path) => {
                let name = path.path.get_ident();
                name.is_some_and(|name| matches!(self.find(name), Ok(Meaning::Table(_))))
            }
            _ => false,
        }
    }
}
