//! Expressions.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::Writer;
use super::head::Name;
use super::names::{rust_literal, rust_type};
use crate::kernel::{ArrayId, Expr, ExprKind, Space};
use crate::operator::{Binary, Unary};
use crate::phase::Home;
use crate::scalar::Scalar;

impl Writer<'_> {
    /// The number of elements of an array that the kernel writes.
    pub(super) fn len_of_written(&self, array: ArrayId) -> String {
        format!("__group.count(&{})", self.array(array))
    }

    /// Whether the text of an expression reads the number of elements of an array.
    fn counts(&self, expr: &Expr, array: ArrayId) -> bool {
        let mut counts = false;
        expr.for_each(&mut |expr| {
            if let ExprKind::Len(id) | ExprKind::Load(id, _) = expr.kind {
                counts |= match &self.kernel.array(id).space {
                    Space::Local(len) | Space::Extent(len) => self.counts(len, array),
                    _ => id == array && matches!(expr.kind, ExprKind::Len(_)),
                };
            }
        });
        counts
    }

    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        let ty = rust_type(expr.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => rust_literal(*literal),
            ExprKind::Variable(id) => {
                let name = self.variable(*id);
                if self.phases.homes[id.0 as usize] != Home::Kept {
                    return name;
                }
                let memory = if self.rows.contains(id) { "row" } else { "kept" };
                let value = format!("__{memory}_{name}[{}]", self.name(Name::Item));
                if expr.ty == Scalar::Bool { format!("({value} != 0)") } else { value }
            }
            ExprKind::Value(id) if expr.ty == Scalar::Bool => {
                format!("({} != 0)", self.name(Name::Value(*id)))
            }
            ExprKind::Value(id) => self.name(Name::Value(*id)),
            ExprKind::Len(array) => match &self.kernel.array(*array).space {
                Space::Constant(len) | Space::Private(len) => format!("{len}_u64"),
                Space::Local(len) | Space::Extent(len) => self.expr(&len.clone()),
                Space::Write => self.len_of_written(*array),
                _ => format!("(<[_]>::len(&*{}) as u64)", self.array(*array)),
            },
            ExprKind::Query(query, dimension) => self.name(Name::Query(*query, *dimension)),
            ExprKind::Load(array, index) => {
                let counts = self.counts(index, *array);
                let index = self.expr(index);
                if let Space::Extent(len) = &self.kernel.array(*array).space {
                    let (len, at) = (self.expr(len), self.at(*array, expr.place));
                    return format!("{}::generated::extent::<PROVEN>({index}, {len}, {at})", self.path);
                }
                let load = self.load_of(*array, &index, expr.place, counts);
                if expr.ty == Scalar::Bool { format!("({load} != 0)") } else { load }
            }
            ExprKind::Unary(Unary::Not, operand) => format!("(!{})", self.expr(operand)),
            ExprKind::Unary(Unary::Neg, operand) if expr.ty.is_float() => {
                format!("(-{})", self.expr(operand))
            }
            ExprKind::Unary(Unary::Neg, operand) => format!("({}).wrapping_neg()", self.expr(operand)),
            ExprKind::Binary { operator, left, right } => {
                let (one, two) = (self.expr(left), self.expr(right));
                self.binary(*operator, left.ty, &one, &two, right)
            }
            ExprKind::Cast(operand) if operand.ty == expr.ty => self.expr(operand),
            ExprKind::Cast(operand) if operand.ty.is_half() => format!("({}).to_f32()", self.expr(operand)),
            ExprKind::Cast(operand) if expr.ty.is_half() => format!("{ty}::from_f32({})", self.expr(operand)),
            ExprKind::Cast(operand) => format!("({} as {ty})", self.expr(operand)),
            ExprKind::Bits(operand) if expr.ty.is_integer() => format!("({}).to_bits()", self.expr(operand)),
            ExprKind::Bits(operand) => format!("{ty}::from_bits({})", self.expr(operand)),
            ExprKind::Select { condition, then, other } => {
                format!(
                    "(if {} {{ {} }} else {{ {} }})",
                    self.expr(condition),
                    self.expr(then),
                    self.expr(other)
                )
            }
            ExprKind::Math(function, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(|argument| self.expr(argument)).collect();
                let (name, arguments) = (function.builtin().rust, arguments.join(", "));
                match function.builtin().is_in_std {
                    // Rust counts in `u32`.
                    true if expr.ty == Scalar::U64 => format!("(u64::{name}({arguments}) as u64)"),
                    true => format!("{ty}::{name}({arguments})"),
                    false => format!("{}::generated::{name}_{ty}({arguments})", self.path),
                }
            }
        }
    }

    pub(super) fn binary(&self, operator: Binary, ty: Scalar, one: &str, two: &str, right: &Expr) -> String {
        let name = ty.name();
        let plain = |symbol: &str| format!("({one} {symbol} {two})");
        let is_float = ty.is_float();
        match operator {
            Binary::Add if is_float => plain("+"),
            Binary::Sub if is_float => plain("-"),
            Binary::Mul if is_float => plain("*"),
            Binary::Div if is_float => plain("/"),
            Binary::Rem if is_float => plain("%"),
            Binary::Add | Binary::Sub | Binary::Mul => {
                format!("{name}::wrapping_{}({one}, {two})", operator.name())
            }
            Binary::Div | Binary::Rem => {
                let is_safe = matches!(right.kind, ExprKind::Literal(literal) if literal.bits != 0 && (literal.bits as i64) > 0);
                if is_safe {
                    return plain(if operator == Binary::Div { "/" } else { "%" });
                }
                if operator == Binary::Rem {
                    return format!("{name}::checked_rem({one}, {two}).unwrap_or(0)");
                }
                // Each operand stands once, or a chain of divisions doubles with each.
                format!(
                    "{{ let (__one, __two): ({name}, {name}) = ({one}, {two}); {name}::checked_div(__one, __two).unwrap_or(__one) }}"
                )
            }
            Binary::And => plain("&"),
            Binary::Or => plain("|"),
            Binary::Xor => plain("^"),
            Binary::Shl => format!("{name}::wrapping_shl({one}, ({two}) as u32)"),
            Binary::Shr => format!("{name}::wrapping_shr({one}, ({two}) as u32)"),
            Binary::Min | Binary::Max if is_float => format!("{name}::{}({one}, {two})", operator.name()),
            Binary::Min | Binary::Max => super::extreme(operator == Binary::Min, name, one, two),
            Binary::Eq => plain("=="),
            Binary::Ne => plain("!="),
            Binary::Lt => format!("(({one}) < {two})"),
            Binary::Le => plain("<="),
            Binary::Gt => plain(">"),
            Binary::Ge => plain(">="),
            Binary::AndThen => plain("&&"),
            Binary::OrElse => plain("||"),
        }
    }
}
