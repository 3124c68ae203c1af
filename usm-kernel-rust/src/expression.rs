//! Expressions and their types. A literal takes the required type, or that of the other operand.

use syn::spanned::Spanned as _;
use syn::{BinOp, Expr as Rust, Lit, Result, UnOp};
use usm_kernel_ir::{ArrayId, Binary, Expr, ExprKind, Literal, Math, Query, Scalar, Stmt, StmtKind, Unary};

use crate::ahead::of_value;
use crate::choice::as_branches;
use crate::scope::{Meaning, Scope, refuse, scalar};
use crate::signature::place_of;
use crate::sub_group::of_sub_group;
use crate::{atomic, body, call, complex, constant, literal, number, structure, tuple, view};

/// Reads a value of this type.
pub(crate) fn typed(value: &Rust, ty: Scalar, scope: &mut Scope) -> Result<Expr> {
    let found = expr(value, Some(ty), scope)?;
    if found.ty == ty {
        return Ok(found);
    }
    let remedy = match ty {
        Scalar::Bool => "write a comparison".to_string(),
        ty => format!("write `as {ty}`"),
    };
    refuse(value.span(), format!("{} where {ty} is needed: {remedy}", found.ty))
}

/// Reads a value; a literal has type `hint`.
pub(crate) fn expr(value: &Rust, hint: Option<Scalar>, scope: &mut Scope) -> Result<Expr> {
    let at = place_of(value.span());
    match value {
        Rust::Paren(inner) => expr(&inner.expr, hint, scope),
        Rust::Group(inner) => expr(&inner.expr, hint, scope),
        Rust::Lit(literal) => {
            let found = match (literal::literal(&literal.lit, false, hint)?, hint) {
                (Some(found), _) => found,
                (None, _) => {
                    return refuse(
                        literal.span(),
                        "the type of this number is open: write it, such as `0_u32` or `0.0_f32`",
                    );
                }
            };
            Ok(Expr::literal(found, at))
        }
        Rust::Path(path) => {
            let Some(name) = path.path.get_ident() else {
                return Ok(Expr::literal(constant::of_type(path)?, at));
            };
            match scope.find(name)? {
                Meaning::Variable { id, .. } => Ok(Expr::variable(id, scope.kernel.variable(id).ty, at)),
                Meaning::Value(id) => {
                    Ok(Expr { kind: ExprKind::Value(id), ty: scope.kernel.value(id).ty, place: at })
                }
                Meaning::Constant(value) => Ok(Expr::literal(value, at)),
                Meaning::Array(_) | Meaning::ReadOnly(_) | Meaning::View(_) | Meaning::Table(_) => {
                    refuse(name.span(), format!("`{name}` is an array: write `{name}[i]` or `{name}.len()`"))
                }
                Meaning::Tuple(number) => match scope.tuple_structures.get(&number) {
                    Some(of) => structure::refuse_number(name.span(), *of, scope),
                    None => refuse(name.span(), format!("`{name}` is a tuple: write `{name}.0`")),
                },
            }
        }
        Rust::Unary(unary) => {
            let operator = match unary.op {
                UnOp::Neg(_) => {
                    if let Rust::Lit(literal) = &*unary.expr {
                        if let Some(found) = literal::literal(&literal.lit, true, hint)? {
                            return Ok(Expr::literal(found, at));
                        }
                    }
                    Unary::Neg
                }
                UnOp::Not(_) => Unary::Not,
                _ => return refuse(unary.span(), "a kernel has no pointers: index the array"),
            };
            if let Some((of, ..)) = complex::made(value, scope) {
                return structure::refuse_number(unary.span(), of, scope);
            }
            let operand = expr(&unary.expr, hint, scope)?;
            if !operator.takes(operand.ty) {
                return refuse(unary.span(), format!("{} has no such operator", operand.ty));
            }
            Ok(Expr::unary(operator, operand, at))
        }
        Rust::Binary(binary) => binary_expression(binary, hint, scope),
        Rust::Index(index) => {
            let (array, element, index) = element(index, scope)?;
            let at = index.place;
            Ok(Expr::load(array, element, index, at))
        }
        Rust::Cast(cast) => {
            let ty = scalar(&cast.ty)?;
            let is_open = literal::is_open(&cast.expr);
            if is_open && literal::computes(&cast.expr) {
                return refuse(
                    cast.expr.span(),
                    format!(
                        "the type of these numbers is open, and the cast does not say it: write it, such as `1_{ty}`"
                    ),
                );
            }
            // A literal has the type that it is cast to; as in Rust, an integer is no float.
            let hint = if ty.is_float() && literal::is_integer(&cast.expr) { Scalar::I32 } else { ty };
            let operand = expr(&cast.expr, is_open.then_some(hint), scope)?;
            if operand.ty.is_half() || ty.is_half() {
                return refuse(
                    cast.span(),
                    "`as` has no numbers of 16 bits: write `.to_f32()` or `F16::from_f32(x)`",
                );
            }
            Ok(if operand.ty == ty { operand } else { operand.cast(ty, at) })
        }
        Rust::If(branch) => {
            if let Rust::Let(word) = &*branch.cond {
                return refuse(word.span(), "a kernel has no such patterns: write `match` or a comparison");
            }
            let condition = typed(&branch.cond, Scalar::Bool, scope)?;
            let Some((_, other)) = &branch.else_branch else {
                return refuse(branch.span(), "a value needs `else`");
            };
            choice(condition, [Side::Block(&branch.then_branch), Side::of(other)], hint, at, scope)
        }
        Rust::Block(inner) => body::value_of(&inner.block, scope, |value, scope| expr(value, hint, scope)),
        Rust::Match(word) => expr(&as_branches(word)?, hint, scope),
        Rust::Call(call) => match of_value(value, scope) {
            Some(of) => structure::refuse_number(value.span(), of, scope),
            None => function(call, hint, scope),
        },
        Rust::MethodCall(call) => method(call, hint, scope),
        Rust::Closure(closure) => refuse(closure.span(), "a kernel has no closures: write the loop"),
        Rust::Macro(call) => refuse(call.span(), "a kernel calls no macros"),
        Rust::Field(field) => {
            if let Some((array, element, index)) = structure::field_place(field, scope)? {
                return Ok(Expr::load(array, element, index, at));
            }
            if let Some(value) = structure::field_of_value(field, scope)? {
                return Ok(value);
            }
            let (id, _) = tuple::field(field, scope)?;
            Ok(Expr::variable(id, scope.kernel.variable(id).ty, at))
        }
        Rust::Reference(reference) => refuse(reference.span(), "a kernel has no references: index the array"),
        Rust::Let(word) => refuse(word.span(), "a kernel has no patterns: write a comparison"),
        Rust::Tuple(tuple) => {
            refuse(tuple.span(), "a tuple needs a name: `let t = (x, y);`, or names: `let (a, b) = (x, y);`")
        }
        Rust::Array(array) => refuse(array.span(), "an array needs a name: `let mut a: [f32; 2] = [x, y];`"),
        Rust::Repeat(array) => {
            refuse(array.span(), "an array needs a name: `let mut a: [f32; 16] = [x; 16];`")
        }
        other => refuse(
            other.span(),
            "no value of a kernel: it has numbers, variables, elements, operators, `if` with `else`, and calls",
        ),
    }
}

/// Reads a value that may not be evaluated, and the statements that must run before it if it is.
pub(crate) fn apart<T>(
    scope: &mut Scope,
    read: impl FnOnce(&mut Scope) -> Result<T>,
) -> Result<(T, Vec<Stmt>)> {
    let outer = core::mem::take(&mut scope.before);
    let found = read(scope)?;
    Ok((found, core::mem::replace(&mut scope.before, outer)))
}

/// `condition && right` or `condition || right`.
fn short(binary: &syn::ExprBinary, operator: Binary, scope: &mut Scope) -> Result<Expr> {
    let at = place_of(binary.op.span());
    let left = typed(&binary.left, Scalar::Bool, scope)?;
    let (right, mut runs) = apart(scope, |scope| typed(&binary.right, Scalar::Bool, scope))?;
    if runs.is_empty() {
        return Ok(Expr::binary(operator, left, right, at));
    }
    let result = scope.hidden("both", Scalar::Bool, at);
    // What the left side says of indices is known behind it too, if it may be computed again.
    let again = (!scope.may_change(&left) && !Scope::is_set_by(&left, &runs)).then(|| left.clone());
    runs.push(Stmt::new(StmtKind::Set(result, right), at));
    let is_and = operator == Binary::AndThen;
    let known = Stmt::new(StmtKind::Set(result, Expr::literal(Literal::bool(!is_and), at)), at);
    let (then, other) = if is_and { (runs, vec![known]) } else { (vec![known], runs) };
    scope.before.push(Stmt::new(StmtKind::If { condition: left, then, other }, at));
    let result = Expr::variable(result, Scalar::Bool, at);
    Ok(match again {
        Some(left) => Expr::binary(operator, left, result, at),
        None => result,
    })
}

/// `if condition { one } else { other }`, of which one is evaluated.
fn choice(
    condition: Expr,
    [one, other]: [Side<'_>; 2],
    hint: Option<Scalar>,
    at: usm_kernel_ir::Place,
    scope: &mut Scope,
) -> Result<Expr> {
    let [(one, mut first), (other, mut second)] = sides(one, other, hint, scope)?;
    let ty = one.ty;
    if first.is_empty() && second.is_empty() {
        let kind =
            ExprKind::Select { condition: Box::new(condition), then: Box::new(one), other: Box::new(other) };
        return Ok(Expr { kind, ty, place: at });
    }
    let result = scope.hidden("chosen", ty, at);
    first.push(Stmt::new(StmtKind::Set(result, one), at));
    second.push(Stmt::new(StmtKind::Set(result, other), at));
    scope.before.push(Stmt::new(StmtKind::If { condition, then: first, other: second }, at));
    Ok(Expr::variable(result, ty, at))
}

/// Reads two values of one type, both of which are evaluated.
pub(crate) fn pair(
    left: &Rust,
    right: &Rust,
    hint: Option<Scalar>,
    scope: &mut Scope,
) -> Result<(Expr, Expr)> {
    let [(mut one, first), (two, second)] = sides(Side::Value(left), Side::Value(right), hint, scope)?;
    scope.before.extend(first);
    scope.read_after(&mut [&mut one], |scope| {
        scope.before.extend(second);
        Ok(())
    })?;
    Ok((one, two))
}

/// Reads two values of one type, [apart]. If only one side has a type, the other takes it.
fn sides(
    left: Side<'_>,
    right: Side<'_>,
    hint: Option<Scalar>,
    scope: &mut Scope,
) -> Result<[(Expr, Vec<Stmt>); 2]> {
    // Each side is read once. Reading a side again at each level would double the time with each
    // level.
    let is_open = left.is_open();
    if is_open && !right.is_open() {
        let two = apart(scope, |scope| right.read(None, scope))?;
        return Ok([apart(scope, |scope| left.typed(two.0.ty, scope))?, two]);
    }
    let one = apart(scope, |scope| left.read(hint.filter(|_| is_open), scope))?;
    let ty = one.0.ty;
    Ok([one, apart(scope, |scope| right.typed(ty, scope))?])
}

/// One of two values: a block of a branch has braces, and is no expression of its own in Rust's
/// tree.
#[derive(Clone, Copy)]
enum Side<'r> {
    Value(&'r Rust),
    Block(&'r syn::Block),
}

impl<'r> Side<'r> {
    fn of(value: &'r Rust) -> Self {
        match value {
            Rust::Block(inner) => Self::Block(&inner.block),
            other => Self::Value(other),
        }
    }

    fn is_open(self) -> bool {
        match self {
            Self::Value(value) => literal::is_open(value),
            Self::Block(block) => literal::last(block).is_some_and(literal::is_open),
        }
    }

    fn read(self, hint: Option<Scalar>, scope: &mut Scope) -> Result<Expr> {
        match self {
            Self::Value(value) => expr(value, hint, scope),
            Self::Block(block) => body::value_of(block, scope, |value, scope| expr(value, hint, scope)),
        }
    }

    fn typed(self, ty: Scalar, scope: &mut Scope) -> Result<Expr> {
        match self {
            Self::Value(value) => typed(value, ty, scope),
            Self::Block(block) => body::value_of(block, scope, |value, scope| typed(value, ty, scope)),
        }
    }
}

fn binary_expression(binary: &syn::ExprBinary, hint: Option<Scalar>, scope: &mut Scope) -> Result<Expr> {
    let at = place_of(binary.op.span());
    let operator = match binary.op {
        BinOp::Add(_) => Binary::Add,
        BinOp::Sub(_) => Binary::Sub,
        BinOp::Mul(_) => Binary::Mul,
        BinOp::Div(_) => Binary::Div,
        BinOp::Rem(_) => Binary::Rem,
        BinOp::And(_) => Binary::AndThen,
        BinOp::Or(_) => Binary::OrElse,
        BinOp::BitXor(_) => Binary::Xor,
        BinOp::BitAnd(_) => Binary::And,
        BinOp::BitOr(_) => Binary::Or,
        BinOp::Shl(_) => Binary::Shl,
        BinOp::Shr(_) => Binary::Shr,
        BinOp::Eq(_) => Binary::Eq,
        BinOp::Lt(_) => Binary::Lt,
        BinOp::Le(_) => Binary::Le,
        BinOp::Ne(_) => Binary::Ne,
        BinOp::Ge(_) => Binary::Ge,
        BinOp::Gt(_) => Binary::Gt,
        _ => return refuse(binary.op.span(), "an assignment is no value"),
    };
    if matches!(operator, Binary::AndThen | Binary::OrElse) {
        return short(binary, operator, scope);
    }
    if let Some(found) = complex::compare(binary, operator, scope)? {
        return Ok(found);
    }
    let (left, right) = if matches!(operator, Binary::Shl | Binary::Shr) {
        let mut left = expr(&binary.left, hint, scope)?;
        let hint = literal::is_open(&binary.right).then_some(left.ty);
        let right = scope.read_after(&mut [&mut left], |scope| expr(&binary.right, hint, scope))?;
        (left, right)
    } else {
        // The type of a comparison says nothing about its operands.
        pair(&binary.left, &binary.right, if operator.compares() { None } else { hint }, scope)?
    };
    if left.ty == Scalar::Bool {
        // `false` is below `true`.
        let not = |operand| Expr::unary(Unary::Not, operand, at);
        match operator {
            Binary::Lt => return Ok(Expr::binary(Binary::And, not(left), right, at)),
            Binary::Le => return Ok(Expr::binary(Binary::Or, not(left), right, at)),
            Binary::Gt => return Ok(Expr::binary(Binary::And, left, not(right), at)),
            Binary::Ge => return Ok(Expr::binary(Binary::Or, left, not(right), at)),
            _ => {}
        }
    }
    if !operator.takes(left.ty) {
        return refuse(binary.op.span(), format!("{} has no such operator", left.ty));
    }
    Ok(Expr::binary(operator, left, right, at))
}

/// Reads the type of an element that is written. Rust evaluates the value before the index.
pub(crate) fn type_of_element(index: &syn::ExprIndex, scope: &Scope) -> Option<Scalar> {
    let (id, _) = view::root(&index.expr, scope).ok()??;
    Some(scope.kernel.array(id).element)
}

/// Refuses to write an array that was taken as `&[T]`.
pub(crate) fn may_write(index: &syn::ExprIndex, scope: &Scope) -> Result<()> {
    let Some((_, true)) = view::root(&index.expr, scope)? else { return Ok(()) };
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
pub(crate) fn element(index: &syn::ExprIndex, scope: &mut Scope) -> Result<(ArrayId, Scalar, Expr)> {
    let mut base = &*index.expr;
    while let Rust::Index(inner) = base {
        base = &inner.expr;
    }
    if let Rust::Path(path) = base {
        let Some(name) = path.path.get_ident() else {
            return refuse(path.span(), "a kernel sees nothing outside of itself: make it a parameter");
        };
        if matches!(scope.find(name)?, Meaning::Value(_) | Meaning::Variable { .. } | Meaning::Constant(_)) {
            return refuse(name.span(), format!("`{name}` is no array"));
        }
    }
    let Some(found) = view::indexed(index, scope)? else {
        return refuse(index.span(), "only arrays by name are indexed, once for each dimension");
    };
    match found.depth() {
        0 => Ok((
            found.array,
            scope.kernel.array(found.array).element,
            found.position(place_of(index.index.span())),
        )),
        _ if found.is_structure(scope) => {
            structure::refuse_number(index.span(), scope.structures[&found.array], scope)
        }
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

/// The type of `F16::from_f32` and `f32::from_bits`.
fn type_before(path: &syn::Path) -> Option<Scalar> {
    match path.segments.iter().rev().nth(1)?.ident.to_string().as_str() {
        "F16" => Some(Scalar::F16),
        "Bf16" => Some(Scalar::Bf16),
        "f32" => Some(Scalar::F32),
        "f64" => Some(Scalar::F64),
        _ => None,
    }
}

/// Reads a call of a function by its name.
fn function(call: &syn::ExprCall, hint: Option<Scalar>, scope: &mut Scope) -> Result<Expr> {
    let at = place_of(call.span());
    let Rust::Path(path) = &*call.func else {
        return refuse(call.func.span(), "only functions by name are called");
    };
    let name = path.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
    if let Some(found) = call::of_neighbour(call, &name, scope)? {
        return match &found[..] {
            [value] => Ok(value.clone()),
            [] => refuse(call.span(), format!("`{name}` has no result")),
            _ => {
                refuse(call.span(), format!("`{name}` has {} results: write `let (a, b) = ..;`", found.len()))
            }
        };
    }
    if let Some(found) = call::of_group(call, &name, hint, scope)? {
        return Ok(found);
    }
    if let Some(found) = of_sub_group(call, &name, hint, scope)? {
        return Ok(found);
    }
    let arguments: Vec<&Rust> = call.args.iter().collect();
    match (name.as_str(), type_before(&path.path), &arguments[..]) {
        ("from_f32", Some(ty), [value]) if ty.is_half() => {
            return Ok(typed(value, Scalar::F32, scope)?.cast(ty, at));
        }
        ("from_bits", Some(ty), [value]) => return Ok(typed(value, ty.unsigned(), scope)?.bits(ty, at)),
        _ => {}
    }
    let query = match name.as_str() {
        "global_id" => Some(Query::GlobalId),
        "local_id" => Some(Query::LocalId),
        "group_id" => Some(Query::GroupId),
        "global_size" => Some(Query::GlobalSize),
        "local_size" => Some(Query::LocalSize),
        "groups" => Some(Query::Groups),
        _ => None,
    };
    if let Some(query) = query {
        let [Rust::Lit(syn::ExprLit { lit: Lit::Int(number), .. })] = arguments[..] else {
            return refuse(
                call.span(),
                format!("write the dimension as a number: `{name}(0)`; dimension 0 is the slowest"),
            );
        };
        let dimension: u8 = number.base10_parse()?;
        if dimension > 2 {
            return refuse(number.span(), format!("dimension {dimension}; a range has 1, 2 or 3"));
        }
        scope.dimensions = scope.dimensions.max(dimension + 1);
        return Ok(Expr::query(query, dimension, at));
    }
    let operator = match name.as_str() {
        "min" => Binary::Min,
        "max" => Binary::Max,
        _ => {
            return refuse(
                path.span(),
                format!(
                    "`{name}` is unknown here; a kernel calls global_id, local_id, group_id, global_size, local_size, groups, min, max, group_reduce and its like, \
                     methods of numbers, and what is a `#[kernel_fn]` in the same module with `#[kernels]`"
                ),
            );
        }
    };
    let [left, right] = arguments[..] else {
        return refuse(call.span(), format!("`{name}` has two arguments"));
    };
    let (left, right) = pair(left, right, hint, scope)?;
    if !operator.takes(left.ty) {
        return refuse(call.span(), format!("{} has no `{name}`", left.ty));
    }
    Ok(Expr::binary(operator, left, right, at))
}

fn method(call: &syn::ExprMethodCall, hint: Option<Scalar>, scope: &mut Scope) -> Result<Expr> {
    let at = place_of(call.method.span());
    let name = call.method.to_string();
    if let Some(of) = complex::of(&call.receiver, scope) {
        return complex::method(call, of, scope);
    }
    let arguments: Vec<&Rust> = call.args.iter().collect();
    if view::root(&call.receiver, scope).ok().flatten().is_some() || is_table(&call.receiver, scope) {
        if name == "len" && arguments.is_empty() {
            let length = view::view(&call.receiver, scope)?.and_then(|of| of.length());
            if let Some(mut length) = length {
                length.place = at;
                return Ok(length);
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
        if name == "load" && arguments.is_empty() {
            let (array, element, index) = element(index, scope)?;
            let at = index.place;
            return Ok(Expr::load(array, element, index, at));
        }
        if name == "load" {
            let (array, element, index) = element(index, scope)?;
            let (at, to) = (index.place, scope.hidden("loaded", element, at));
            let stmts = atomic::load(call, to, Expr::load(array, element, index, at))?;
            scope.before.extend(stmts);
            return Ok(Expr::variable(to, element, at));
        }
        if atomic::is_atomic(call) {
            let Some((array, _)) = view::root(&index.expr, scope)? else {
                return refuse(index.span(), "an atomic operation needs an element: `a[i]`");
            };
            let element = scope.kernel.array(array).element;
            let old = scope.hidden("old", element, at);
            let stmts = atomic::atomic(call, Some(old), scope)?;
            scope.before.extend(stmts);
            return Ok(Expr::variable(old, element, at));
        }
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
        let (left, right) = pair(&call.receiver, right, hint, scope)?;
        if !operator.takes(left.ty) {
            return refuse(call.method.span(), format!("{} has no `{name}`", left.ty));
        }
        return Ok(Expr::binary(operator, left, right, at));
    }
    if name == "to_f32" && arguments.is_empty() {
        let half = expr(&call.receiver, None, scope)?;
        if half.ty.is_half() {
            return Ok(half.cast(Scalar::F32, at));
        }
        return refuse(call.method.span(), format!("{} has no `to_f32`: write `as f32`", half.ty));
    }
    if name == "to_bits" && arguments.is_empty() {
        let number = expr(&call.receiver, None, scope)?;
        if number.ty.is_float() || number.ty.is_half() {
            let word = number.ty.unsigned();
            return Ok(number.bits(word, at));
        }
        return refuse(call.method.span(), format!("{} has no `to_bits`", number.ty));
    }
    if let Some(found) = classified(call, &name, scope)? {
        return Ok(found);
    }
    if let Some(found) = number::method(call, &name, hint, scope)? {
        return Ok(found);
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
    let receiver = expr(&call.receiver, hint, scope)?;
    if function == Math::Abs && receiver.ty.is_signed() && arguments.is_empty() {
        let negative = Expr::unary(Unary::Neg, receiver.clone(), at);
        return Ok(Expr::binary(Binary::Max, receiver, negative, at));
    }
    if !receiver.ty.is_float() {
        return refuse(call.method.span(), format!("{} has no `{name}`: write `as f32`", receiver.ty));
    }
    let ty = receiver.ty;
    let mut all = vec![receiver];
    for argument in arguments {
        let mut earlier: Vec<&mut Expr> = all.iter_mut().collect();
        let next = scope.read_after(&mut earlier, |scope| typed(argument, ty, scope))?;
        all.push(next);
    }
    if all.len() != function.arguments() {
        return refuse(call.method.span(), format!("`{name}` has {} arguments", function.arguments() - 1));
    }
    Ok(Expr { kind: ExprKind::Math(function, all), ty, place: at })
}

/// `is_nan`, `is_infinite` and `is_finite`: the absolute value beside infinity.
fn classified(call: &syn::ExprMethodCall, name: &str, scope: &mut Scope) -> Result<Option<Expr>> {
    let operator = match name {
        "is_nan" => Binary::Le,
        "is_infinite" => Binary::Eq,
        "is_finite" => Binary::Lt,
        _ => return Ok(None),
    };
    let at = place_of(call.method.span());
    let value = expr(&call.receiver, None, scope)?;
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
    let found = Expr::binary(operator, size, Expr::literal(infinity, at), at);
    // Only a number is at most infinite.
    Ok(Some(if name == "is_nan" { Expr::unary(Unary::Not, found, at) } else { found }))
}

fn is_table(value: &Rust, scope: &Scope) -> bool {
    match value {
        Rust::Path(path) => {
            let name = path.path.get_ident();
            name.is_some_and(|name| matches!(scope.find(name), Ok(Meaning::Table(_))))
        }
        _ => false,
    }
}

/// The operator of a compound assignment such as `+=`.
pub(crate) fn assigning(operator: &BinOp) -> Option<Binary> {
    Some(match operator {
        BinOp::AddAssign(_) => Binary::Add,
        BinOp::SubAssign(_) => Binary::Sub,
        BinOp::MulAssign(_) => Binary::Mul,
        BinOp::DivAssign(_) => Binary::Div,
        BinOp::RemAssign(_) => Binary::Rem,
        BinOp::BitXorAssign(_) => Binary::Xor,
        BinOp::BitAndAssign(_) => Binary::And,
        BinOp::BitOrAssign(_) => Binary::Or,
        BinOp::ShlAssign(_) => Binary::Shl,
        BinOp::ShrAssign(_) => Binary::Shr,
        _ => return None,
    })
}
