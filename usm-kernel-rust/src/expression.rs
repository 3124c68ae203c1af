//! Expressions and their types. A literal takes the required type, or that of the other operand.

use syn::spanned::Spanned as _;
use syn::{BinOp, Expr as Rust, Result, UnOp};
use usm_kernel_ir::{Binary, Expr, ExprKind, Literal, Place, Scalar, Stmt, StmtKind, Unary};

use crate::choice::as_branches;
use crate::meaning::Meaning;
use crate::place::place_of;
use crate::reader::Reader;
use crate::refusal::refuse;
use crate::types::scalar;
use crate::{constant, literal};

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

    fn read(self, hint: Option<Scalar>, reader: &mut Reader) -> Result<Expr> {
        match self {
            Self::Value(value) => reader.read_expr(value, hint),
            Self::Block(block) => {
                reader.read_block_value(block, |value, reader| reader.read_expr(value, hint))
            }
        }
    }

    fn typed(self, ty: Scalar, reader: &mut Reader) -> Result<Expr> {
        match self {
            Self::Value(value) => reader.read_typed(value, ty),
            Self::Block(block) => {
                reader.read_block_value(block, |value, reader| reader.read_typed(value, ty))
            }
        }
    }
}

impl Reader {
    /// Reads a value of this type.
    pub(crate) fn read_typed(&mut self, value: &Rust, ty: Scalar) -> Result<Expr> {
        let expr = self.read_expr(value, Some(ty))?;
        if expr.ty == ty {
            return Ok(expr);
        }
        let remedy = match ty {
            Scalar::Bool => "write a comparison".to_string(),
            ty => format!("write `as {ty}`"),
        };
        refuse(value.span(), format!("{} where {ty} is needed: {remedy}", expr.ty))
    }

    /// Reads a value; a literal has type `hint`.
    pub(crate) fn read_expr(&mut self, value: &Rust, hint: Option<Scalar>) -> Result<Expr> {
        let at = place_of(value.span());
        match value {
            Rust::Paren(inner) => self.read_expr(&inner.expr, hint),
            Rust::Group(inner) => self.read_expr(&inner.expr, hint),
            Rust::Lit(literal) => {
                let number = match (literal::literal(&literal.lit, false, hint)?, hint) {
                    (Some(number), _) => number,
                    (None, _) => {
                        return refuse(
                            literal.span(),
                            "the type of this number is open: write it, such as `0_u32` or `0.0_f32`",
                        );
                    }
                };
                Ok(Expr::literal(number, at))
            }
            Rust::Path(path) => self.read_path(path, at),
            Rust::Unary(unary) => self.read_unary(value, unary, hint),
            Rust::Binary(binary) => self.read_binary(binary, hint),
            Rust::Index(index) => {
                let (array, element, index) = self.read_element(index)?;
                let at = index.place;
                Ok(Expr::load(array, element, index, at))
            }
            Rust::Cast(cast) => self.read_cast(cast, at),
            Rust::If(branch) => self.read_branches(branch, hint, at),
            Rust::Block(inner) => {
                self.read_block_value(&inner.block, |value, reader| reader.read_expr(value, hint))
            }
            Rust::Match(word) => self.read_expr(&as_branches(word)?, hint),
            Rust::Call(call) => match self.structure_of_value(value) {
                Some(of) => self.refuse_number(value.span(), of),
                None => self.read_function(call, hint),
            },
            Rust::MethodCall(call) => self.read_method(call, hint),
            Rust::Closure(closure) => refuse(closure.span(), "a kernel has no closures: write the loop"),
            Rust::Macro(call) => refuse(call.span(), "a kernel calls no macros"),
            Rust::Field(field) => self.read_field(field, at),
            Rust::Reference(reference) => {
                refuse(reference.span(), "a kernel has no references: index the array")
            }
            Rust::Let(word) => refuse(word.span(), "a kernel has no patterns: write a comparison"),
            Rust::Tuple(tuple) => refuse(
                tuple.span(),
                "a tuple needs a name: `let t = (x, y);`, or names: `let (a, b) = (x, y);`",
            ),
            Rust::Array(array) => {
                refuse(array.span(), "an array needs a name: `let mut a: [f32; 2] = [x, y];`")
            }
            Rust::Repeat(array) => {
                refuse(array.span(), "an array needs a name: `let mut a: [f32; 16] = [x; 16];`")
            }
            other => refuse(
                other.span(),
                "no value of a kernel: it has numbers, variables, elements, operators, `if` with `else`, and calls",
            ),
        }
    }

    fn read_path(&self, path: &syn::ExprPath, at: Place) -> Result<Expr> {
        let Some(name) = path.path.get_ident() else {
            return Ok(Expr::literal(constant::of_type(path)?, at));
        };
        match self.find(name)? {
            Meaning::Variable { id, .. } => Ok(Expr::variable(id, self.kernel.variable(id).ty, at)),
            Meaning::Value(id) => {
                Ok(Expr { kind: ExprKind::Value(id), ty: self.kernel.value(id).ty, place: at })
            }
            Meaning::Constant(value) => Ok(Expr::literal(value, at)),
            Meaning::Array(_) | Meaning::ReadOnly(_) | Meaning::View(_) | Meaning::Table(_) => {
                refuse(name.span(), format!("`{name}` is an array: write `{name}[i]` or `{name}.len()`"))
            }
            Meaning::Tuple(number) => match self.tuple_structures.get(&number) {
                Some(of) => self.refuse_number(name.span(), *of),
                None => refuse(name.span(), format!("`{name}` is a tuple: write `{name}.0`")),
            },
        }
    }

    fn read_unary(&mut self, value: &Rust, unary: &syn::ExprUnary, hint: Option<Scalar>) -> Result<Expr> {
        let at = place_of(value.span());
        let operator = match unary.op {
            UnOp::Neg(_) => {
                if let Rust::Lit(literal) = &*unary.expr {
                    if let Some(number) = literal::literal(&literal.lit, true, hint)? {
                        return Ok(Expr::literal(number, at));
                    }
                }
                Unary::Neg
            }
            UnOp::Not(_) => Unary::Not,
            _ => return refuse(unary.span(), "a kernel has no pointers: index the array"),
        };
        if let Some((of, ..)) = self.complex_result(value) {
            return self.refuse_number(unary.span(), of);
        }
        let operand = self.read_expr(&unary.expr, hint)?;
        if !operator.takes(operand.ty) {
            return refuse(unary.span(), format!("{} has no such operator", operand.ty));
        }
        Ok(Expr::unary(operator, operand, at))
    }

    fn read_cast(&mut self, cast: &syn::ExprCast, at: Place) -> Result<Expr> {
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
        let operand = self.read_expr(&cast.expr, is_open.then_some(hint))?;
        if operand.ty.is_half() || ty.is_half() {
            return refuse(
                cast.span(),
                "`as` has no numbers of 16 bits: write `.to_f32()` or `F16::from_f32(x)`",
            );
        }
        Ok(if operand.ty == ty { operand } else { operand.cast(ty, at) })
    }

    fn read_branches(&mut self, branch: &syn::ExprIf, hint: Option<Scalar>, at: Place) -> Result<Expr> {
        if let Rust::Let(word) = &*branch.cond {
            return refuse(word.span(), "a kernel has no such patterns: write `match` or a comparison");
        }
        let condition = self.read_typed(&branch.cond, Scalar::Bool)?;
        let Some((_, other)) = &branch.else_branch else {
            return refuse(branch.span(), "a value needs `else`");
        };
        self.select(condition, [Side::Block(&branch.then_branch), Side::of(other)], hint, at)
    }

    fn read_field(&mut self, field: &syn::ExprField, at: Place) -> Result<Expr> {
        if let Some((array, element, index)) = self.field_place(field)? {
            return Ok(Expr::load(array, element, index, at));
        }
        if let Some(value) = self.read_field_of_value(field)? {
            return Ok(value);
        }
        let (id, _) = self.tuple_field(field)?;
        Ok(Expr::variable(id, self.kernel.variable(id).ty, at))
    }

    /// Reads a value that may not be evaluated, and the statements that must run before it if it
    /// is.
    pub(crate) fn read_apart<T>(
        &mut self,
        read: impl FnOnce(&mut Reader) -> Result<T>,
    ) -> Result<(T, Vec<Stmt>)> {
        let outer = core::mem::take(&mut self.before);
        let value = read(self)?;
        Ok((value, core::mem::replace(&mut self.before, outer)))
    }

    /// `condition && right` or `condition || right`.
    fn read_short_circuit(&mut self, binary: &syn::ExprBinary, operator: Binary) -> Result<Expr> {
        let at = place_of(binary.op.span());
        let left = self.read_typed(&binary.left, Scalar::Bool)?;
        let (right, mut runs) = self.read_apart(|reader| reader.read_typed(&binary.right, Scalar::Bool))?;
        if runs.is_empty() {
            return Ok(Expr::binary(operator, left, right, at));
        }
        let result = self.add_hidden("both", Scalar::Bool, at);
        // What the left side says of indices is known behind it too, if it may be computed again.
        let copy = (!self.may_change(&left) && !Reader::is_set_by(&left, &runs)).then(|| left.clone());
        runs.push(Stmt::new(StmtKind::Set(result, right), at));
        let is_and = operator == Binary::AndThen;
        let shortcut = Stmt::new(StmtKind::Set(result, Expr::literal(Literal::bool(!is_and), at)), at);
        let (then, other) = if is_and { (runs, vec![shortcut]) } else { (vec![shortcut], runs) };
        self.before.push(Stmt::new(StmtKind::If { condition: left, then, other }, at));
        let result = Expr::variable(result, Scalar::Bool, at);
        Ok(match copy {
            Some(left) => Expr::binary(operator, left, result, at),
            None => result,
        })
    }

    /// `if condition { one } else { other }`, of which one is evaluated.
    fn select(
        &mut self,
        condition: Expr,
        [one, other]: [Side<'_>; 2],
        hint: Option<Scalar>,
        at: usm_kernel_ir::Place,
    ) -> Result<Expr> {
        let [(one, mut first), (other, mut second)] = self.read_sides(one, other, hint)?;
        let ty = one.ty;
        if first.is_empty() && second.is_empty() {
            let kind = ExprKind::Select {
                condition: Box::new(condition),
                then: Box::new(one),
                other: Box::new(other),
            };
            return Ok(Expr { kind, ty, place: at });
        }
        let result = self.add_hidden("chosen", ty, at);
        first.push(Stmt::new(StmtKind::Set(result, one), at));
        second.push(Stmt::new(StmtKind::Set(result, other), at));
        self.before.push(Stmt::new(StmtKind::If { condition, then: first, other: second }, at));
        Ok(Expr::variable(result, ty, at))
    }

    /// Reads two values of one type, both of which are evaluated.
    pub(crate) fn read_pair(
        &mut self,
        left: &Rust,
        right: &Rust,
        hint: Option<Scalar>,
    ) -> Result<(Expr, Expr)> {
        let [(mut one, first), (two, second)] =
            self.read_sides(Side::Value(left), Side::Value(right), hint)?;
        self.before.extend(first);
        self.read_after(&mut [&mut one], |reader| {
            reader.before.extend(second);
            Ok(())
        })?;
        Ok((one, two))
    }

    /// Reads two values of one type, [apart]. If only one side has a type, the other takes it.
    fn read_sides(
        &mut self,
        left: Side<'_>,
        right: Side<'_>,
        hint: Option<Scalar>,
    ) -> Result<[(Expr, Vec<Stmt>); 2]> {
        // Each side is read once. Reading a side again at each level would double the time with
        // each level.
        let is_open = left.is_open();
        if is_open && !right.is_open() {
            let two = self.read_apart(|reader| right.read(None, reader))?;
            return Ok([self.read_apart(|reader| left.typed(two.0.ty, reader))?, two]);
        }
        let one = self.read_apart(|reader| left.read(hint.filter(|_| is_open), reader))?;
        let ty = one.0.ty;
        Ok([one, self.read_apart(|reader| right.typed(ty, reader))?])
    }

    fn read_binary(&mut self, binary: &syn::ExprBinary, hint: Option<Scalar>) -> Result<Expr> {
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
            return self.read_short_circuit(binary, operator);
        }
        if let Some(value) = self.compare_complex(binary, operator)? {
            return Ok(value);
        }
        let (left, right) = if matches!(operator, Binary::Shl | Binary::Shr) {
            let mut left = self.read_expr(&binary.left, hint)?;
            let hint = literal::is_open(&binary.right).then_some(left.ty);
            let right = self.read_after(&mut [&mut left], |reader| reader.read_expr(&binary.right, hint))?;
            (left, right)
        } else {
            // The type of a comparison says nothing about its operands.
            self.read_pair(&binary.left, &binary.right, if operator.compares() { None } else { hint })?
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
}

/// The operator of a compound assignment such as `+=`.
pub(crate) fn assignment_operator(operator: &BinOp) -> Option<Binary> {
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
