//! Expressions.

use alloc::vec::Vec;

use rspirv::dr::Operand;
use rspirv::spirv::{MemoryAccess, Op, Word};

use super::{Writer, built_in};
use crate::kernel::{Expr, ExprKind, Query, Space};
use crate::operator::{Binary, Unary};
use crate::scalar::{Literal, Scalar};

impl Writer<'_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Word {
        let ty = self.ty(expr.ty);
        match &expr.kind {
            ExprKind::Literal(literal) => self.constant(*literal),
            ExprKind::Variable(variable) => {
                let (pointer, scalar) = self.variable(*variable);
                self.load(pointer, scalar)
            }
            ExprKind::Value(value) => {
                let word = self.values[value.0 as usize];
                if expr.ty != Scalar::Bool {
                    return word;
                }
                let zero = self.number(Scalar::U8, 0);
                self.op(Op::INotEqual, ty, &[word, zero])
            }
            ExprKind::Len(array) => match &self.kernel.array(*array).space {
                Space::Constant(len) | Space::Private(len) => self.number(Scalar::U64, *len),
                Space::Local(len) | Space::Extent(len) => self.expr(&len.clone()),
                _ => self.lengths[array.0 as usize],
            },
            ExprKind::Query(Query::GlobalSize, dimension) if self.has_guard => {
                self.range[usize::from(self.kernel.dimensions - 1 - dimension)]
            }
            ExprKind::Query(query, dimension) => {
                let built_in = built_in(*query);
                let variable =
                    self.built_ins.iter().find(|(other, _)| *other == built_in).map_or(0, |(_, word)| *word);
                let vector = self.builder.type_vector(ty, 3);
                let alignment = [Operand::LiteralBit32(32)];
                let ids = self.builder.load(vector, None, variable, Some(MemoryAccess::ALIGNED), alignment);
                // The last dimension is the fastest; it is the first of the vector.
                let axis = u32::from(self.kernel.dimensions - 1 - dimension);
                let ids = ids.expect("a block is open");
                self.builder.composite_extract(ty, None, ids, [axis]).expect("a block is open")
            }
            ExprKind::Load(array, index) => {
                let index = self.expr(index);
                self.read(*array, index, expr.ty, expr.place)
            }
            ExprKind::Unary(operator, operand) => {
                let value = self.expr(operand);
                if (*operator, expr.ty) == (Unary::Not, Scalar::Bool) {
                    // Intel's GPU compiler ends the process at `OpLogicalNot`.
                    let [no, yes] = [false, true].map(|value| self.constant(Literal::bool(value)));
                    return self.op(Op::Select, ty, &[value, no, yes]);
                }
                let op = match (operator, expr.ty) {
                    (Unary::Not, _) => Op::Not,
                    (Unary::Neg, ty) if ty.is_float() => Op::FNegate,
                    (Unary::Neg, _) => Op::SNegate,
                };
                self.op(op, ty, &[value])
            }
            ExprKind::Binary { operator: Binary::AndThen, left, right } => {
                let no = Expr::literal(Literal::bool(false), right.place);
                self.select(left, right, &no)
            }
            ExprKind::Binary { operator: Binary::OrElse, left, right } => {
                let yes = Expr::literal(Literal::bool(true), right.place);
                self.select(left, &yes, right)
            }
            ExprKind::Binary { operator, left, right } => {
                let (one, two) = (self.expr(left), self.expr(right));
                self.binary(*operator, (left.ty, one), (right.ty, two), ty)
            }
            ExprKind::Cast(operand) => {
                let value = self.expr(operand);
                self.cast(operand.ty, expr.ty, value)
            }
            ExprKind::Bits(operand) => {
                let value = self.expr(operand);
                // Numbers of 16 bits are such integers here.
                let is_half = operand.ty.is_half() || expr.ty.is_half();
                if is_half { value } else { self.op(Op::Bitcast, ty, &[value]) }
            }
            ExprKind::Select { condition, then, other } => self.select(condition, then, other),
            ExprKind::Math(function, arguments) => {
                let arguments: Vec<Word> = arguments.iter().map(|argument| self.expr(argument)).collect();
                self.call(u32::from(function.builtin().spirv), ty, &arguments)
            }
        }
    }

    /// An instruction of OpenCL's extended set.
    pub(super) fn call(&mut self, number: u32, ty: Word, arguments: &[Word]) -> Word {
        let arguments = arguments.iter().map(|argument| Operand::IdRef(*argument)).collect::<Vec<_>>();
        self.builder.ext_inst(ty, None, self.extension, number, arguments).expect("a block is open")
    }

    /// One of two values; only that one is computed.
    fn select(&mut self, condition: &Expr, one: &Expr, two: &Expr) -> Word {
        let (choice, ty) = (self.expr(condition), self.ty(one.ty));
        let (yes, no, end) = (self.builder.id(), self.builder.id(), self.builder.id());
        self.fork(choice, yes, no);
        let mut ways = Vec::new();
        for (label, value) in [(yes, one), (no, two)] {
            self.begin(Some(label));
            let value = self.expr(value);
            ways.push((value, self.block));
            self.jump(end);
        }
        self.begin(Some(end));
        self.builder.phi(ty, None, ways).expect("a block is open")
    }
}
