//! Blocks, constants, loads and stores: the parts of all other instructions.

use rspirv::dr::{InsertPoint, Instruction, Operand};
use rspirv::spirv::{MemoryAccess, Op, StorageClass, Word};

use super::Writer;
use crate::kernel::{ArrayId, Space, VarId};
use crate::scalar::{Literal, Scalar};

impl Writer<'_> {
    pub(super) fn begin(&mut self, label: Option<Word>) {
        self.block = self.builder.begin_block(label).expect("a function is open and no block is");
        self.open = true;
    }

    pub(super) fn jump(&mut self, to: Word) {
        if self.open {
            self.builder.branch(to).expect("a block is open");
            self.open = false;
        }
    }

    pub(super) fn fork(&mut self, condition: Word, yes: Word, no: Word) {
        self.builder.branch_conditional(condition, yes, no, []).expect("a block is open");
        self.open = false;
    }

    pub(super) fn op(&mut self, op: Op, ty: Word, operands: &[Word]) -> Word {
        let id = self.builder.id();
        let operands = operands.iter().map(|operand| Operand::IdRef(*operand)).collect();
        let instruction = Instruction::new(op, Some(ty), Some(id), operands);
        self.builder.insert_into_block(InsertPoint::End, instruction).expect("a block is open");
        id
    }

    pub(super) fn constant(&mut self, literal: Literal) -> Word {
        let ty = self.ty(literal.ty);
        match literal.ty {
            Scalar::Bool if literal.bits != 0 => self.builder.constant_true(ty),
            Scalar::Bool => self.builder.constant_false(ty),
            other if other.bits() == 64 => self.builder.constant_bit64(ty, literal.bits),
            // The high bits of a narrow integer are its sign; for an unsigned type they are zeros.
            Scalar::I8 => self.builder.constant_bit32(ty, u32::from(literal.bits as u8)),
            Scalar::I16 => self.builder.constant_bit32(ty, u32::from(literal.bits as u16)),
            _ => self.builder.constant_bit32(ty, literal.bits as u32),
        }
    }

    pub(super) fn number(&mut self, ty: Scalar, value: u64) -> Word {
        self.constant(Literal::integer(ty, value))
    }

    pub(super) fn load(&mut self, pointer: Word, ty: Scalar) -> Word {
        self.load_by(MemoryAccess::ALIGNED, pointer, ty)
    }

    pub(super) fn load_by(&mut self, access: MemoryAccess, pointer: Word, ty: Scalar) -> Word {
        let memory_type = self.memory_type(ty);
        let alignment = [Operand::LiteralBit32(ty.bytes() as u32)];
        let value = self.builder.load(memory_type, None, pointer, Some(access), alignment);
        let value = value.expect("a block is open");
        if ty != Scalar::Bool {
            return value;
        }
        let (bool, zero) = (self.ty(Scalar::Bool), self.number(Scalar::U8, 0));
        self.op(Op::INotEqual, bool, &[value, zero])
    }

    pub(super) fn store(&mut self, pointer: Word, ty: Scalar, value: Word) {
        self.store_by(MemoryAccess::ALIGNED, pointer, ty, value);
    }

    pub(super) fn store_by(&mut self, access: MemoryAccess, pointer: Word, ty: Scalar, value: Word) {
        let value = if ty == Scalar::Bool {
            let (byte, one, zero) =
                (self.ty(Scalar::U8), self.number(Scalar::U8, 1), self.number(Scalar::U8, 0));
            self.op(Op::Select, byte, &[value, one, zero])
        } else {
            value
        };
        let alignment = [Operand::LiteralBit32(ty.bytes() as u32)];
        self.builder.store(pointer, value, Some(access), alignment).expect("a block is open");
    }

    pub(super) fn element(&mut self, array: ArrayId, index: Word) -> Word {
        let object = self.kernel.array(array);
        let (base, element) = (self.arrays[array.0 as usize], self.memory_type(object.element));
        let class = match object.space {
            Space::Constant(_) => StorageClass::UniformConstant,
            Space::Local(_) => StorageClass::Workgroup,
            Space::Private(_) => StorageClass::Function,
            _ => StorageClass::CrossWorkgroup,
        };
        let pointer = self.pointer(class, element);
        let address = if class == StorageClass::Function {
            self.builder.in_bounds_access_chain(pointer, None, base, [index])
        } else {
            self.builder.in_bounds_ptr_access_chain(pointer, None, base, index, [])
        };
        address.expect("a block is open")
    }

    pub(super) fn variable(&mut self, variable: VarId) -> (Word, Scalar) {
        (self.variables[variable.0 as usize], self.kernel.variable(variable).ty)
    }

    pub(super) fn set(&mut self, variable: VarId, value: Word) {
        let (pointer, ty) = self.variable(variable);
        self.store(pointer, ty, value);
    }
}
