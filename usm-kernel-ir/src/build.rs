//! Short constructors, for front ends and tests.

use alloc::boxed::Box;

use crate::kernel::{ArrayId, Expr, ExprKind, Place, Query, Stmt, StmtKind, VarId};
use crate::operator::{Binary, Unary};
use crate::scalar::{Literal, Scalar};

impl Expr {
    /// A literal.
    #[must_use]
    pub const fn literal(literal: Literal, place: Place) -> Self {
        Self { kind: ExprKind::Literal(literal), ty: literal.ty, place }
    }

    /// An id or size.
    #[must_use]
    pub const fn query(query: Query, dimension: u8, place: Place) -> Self {
        Self { kind: ExprKind::Query(query, dimension), ty: Scalar::U64, place }
    }

    /// A variable of this type.
    #[must_use]
    pub const fn variable(variable: VarId, ty: Scalar, place: Place) -> Self {
        Self { kind: ExprKind::Variable(variable), ty, place }
    }

    /// An element of this type.
    #[must_use]
    pub fn load(array: ArrayId, element: Scalar, index: Self, place: Place) -> Self {
        Self { kind: ExprKind::Load(array, Box::new(index)), ty: element, place }
    }

    /// Two operands; the type follows from the operator and the left one.
    #[must_use]
    pub fn binary(operator: Binary, left: Self, right: Self, place: Place) -> Self {
        let ty = if operator.compares() { Scalar::Bool } else { left.ty };
        Self { kind: ExprKind::Binary { operator, left: Box::new(left), right: Box::new(right) }, ty, place }
    }

    /// One operand.
    #[must_use]
    pub fn unary(operator: Unary, operand: Self, place: Place) -> Self {
        Self { ty: operand.ty, kind: ExprKind::Unary(operator, Box::new(operand)), place }
    }

    /// A conversion.
    #[must_use]
    pub fn cast(self, ty: Scalar, place: Place) -> Self {
        Self { kind: ExprKind::Cast(Box::new(self)), ty, place }
    }

    /// The same bits as a floating point number, or as the unsigned integer of its width.
    #[must_use]
    pub fn bits(self, ty: Scalar, place: Place) -> Self {
        Self { kind: ExprKind::Bits(Box::new(self)), ty, place }
    }
}

impl Stmt {
    /// A statement at a place.
    #[must_use]
    pub const fn new(kind: StmtKind, place: Place) -> Self {
        Self { kind, place }
    }
}
