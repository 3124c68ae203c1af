//! Atomic operations. Floating point operations exchange the bits of the number.

use alloc::vec;

use rspirv::dr::{InsertPoint, Instruction, Operand};
use rspirv::spirv::{MemoryAccess, Op, StorageClass, Word};

use super::{DEVICE, Writer};
use crate::kernel::{ArrayId, Atomic, Space, VarId};
use crate::scalar::{Literal, Scalar};

/// The memory semantics of every operation: relaxed.
const RELAXED: u32 = 0;

impl Writer<'_> {
    pub(super) fn atomic(
        &mut self,
        operation: Atomic,
        array: ArrayId,
        [index, value]: [Word; 2],
        old: Option<VarId>,
    ) {
        let element = self.kernel.array(array).element;
        if element.is_float() && operation != Atomic::Exchange {
            return self.float_atomic(operation, array, [index, value], old);
        }
        let pointer = self.element(array, index);
        let (ty, scope) = (self.ty(element), self.number(Scalar::U32, u64::from(DEVICE)));
        let semantics = self.number(Scalar::U32, u64::from(RELAXED));
        let op = match (operation, element.is_signed()) {
            (Atomic::Add, _) => Op::AtomicIAdd,
            (Atomic::Sub, _) => Op::AtomicISub,
            (Atomic::Min, true) => Op::AtomicSMin,
            (Atomic::Min, false) => Op::AtomicUMin,
            (Atomic::Max, true) => Op::AtomicSMax,
            (Atomic::Max, false) => Op::AtomicUMax,
            (Atomic::And, _) => Op::AtomicAnd,
            (Atomic::Or, _) => Op::AtomicOr,
            (Atomic::Xor, _) => Op::AtomicXor,
            (Atomic::Exchange, _) => Op::AtomicExchange,
        };
        let before = self.op(op, ty, &[pointer, scope, semantics, value]);
        if let Some(old) = old {
            self.set(old, before);
        }
    }

    pub(super) fn compare_exchange(
        &mut self,
        array: ArrayId,
        index: Word,
        [expected, new]: [Word; 2],
        old: Option<VarId>,
    ) {
        let ty = self.kernel.array(array).element;
        let pointer = self.word(array, index);
        let (expected, new) = (self.word_of(ty, expected), self.word_of(ty, new));
        let before = self.cas(ty, pointer, expected, new);
        if let Some(old) = old {
            let before = self.number_of(ty, before);
            self.set(old, before);
        }
    }

    /// Repeats until no other item wrote in between.
    fn float_atomic(
        &mut self,
        operation: Atomic,
        array: ArrayId,
        [index, by]: [Word; 2],
        old: Option<VarId>,
    ) {
        let ty = self.kernel.array(array).element;
        let (float, word, bool) = (self.ty(ty), self.ty(ty.unsigned()), self.ty(Scalar::Bool));
        let pointer = self.word(array, index);
        let first = self.load(pointer, ty.unsigned());
        let (entry, head, end) = (self.block, self.builder.id(), self.builder.id());
        let old_word = self.builder.id();
        self.jump(head);
        self.begin(Some(head));
        let expected =
            self.builder.phi(word, None, [(first, entry), (old_word, head)]).expect("a block is open");
        let before = self.op(Op::Bitcast, float, &[expected]);
        let new = match operation {
            Atomic::Sub => self.op(Op::FSub, float, &[before, by]),
            Atomic::Min => self.call(28, float, &[before, by]),
            Atomic::Max => self.call(27, float, &[before, by]),
            _ => self.op(Op::FAdd, float, &[before, by]),
        };
        let new = self.op(Op::Bitcast, word, &[new]);
        let old_value = self.cas(ty, pointer, expected, new);
        // The next round's old value, under the name that the loop's head uses.
        let same =
            Instruction::new(Op::CopyObject, Some(word), Some(old_word), vec![Operand::IdRef(old_value)]);
        self.builder.insert_into_block(InsertPoint::End, same).expect("a block is open");
        let is_equal = self.op(Op::IEqual, bool, &[old_value, expected]);
        self.fork(is_equal, end, head);
        self.begin(Some(end));
        if let Some(old) = old {
            let old_value = self.number_of(ty, old_value);
            self.set(old, old_value);
        }
    }

    /// The old value of an element outside the array.
    pub(super) fn set_none(&mut self, old: Option<VarId>) {
        if let Some(old) = old {
            let none = self.constant(Literal::integer(self.kernel.variable(old).ty, 0));
            self.set(old, none);
        }
    }

    /// Whether items access the elements of an array without an order.
    fn is_shared(&self, array: ArrayId) -> bool {
        self.kernel.unordered.contains(&array) || self.kernel.array(array).space == Space::Atomic
    }

    /// Reads an element; one that items access without an order, atomically if it has 32 bits, else
    /// volatile, which reads it once and as a whole too.
    pub(super) fn load_element(&mut self, array: ArrayId, index: Word, ty: Scalar) -> Word {
        if !self.is_shared(array) || ty.bits() != 32 {
            let pointer = self.element(array, index);
            let access = if self.is_shared(array) { MemoryAccess::VOLATILE } else { MemoryAccess::empty() };
            return self.load_by(access | MemoryAccess::ALIGNED, pointer, ty);
        }
        let (pointer, word) = (self.word(array, index), self.ty(ty.unsigned()));
        let scope = self.number(Scalar::U32, u64::from(DEVICE));
        let ordering = self.number(Scalar::U32, u64::from(RELAXED));
        let value = self.op(Op::AtomicLoad, word, &[pointer, scope, ordering]);
        self.number_of(ty, value)
    }

    /// Writes an element, as [`load_element`](Self::load_element) reads it.
    pub(super) fn store_element(&mut self, array: ArrayId, index: Word, value: Word, access: MemoryAccess) {
        let ty = self.kernel.array(array).element;
        if !self.is_shared(array) || ty.bits() != 32 {
            let pointer = self.element(array, index);
            let shared = if self.is_shared(array) { MemoryAccess::VOLATILE } else { MemoryAccess::empty() };
            return self.store_by(access | shared, pointer, ty, value);
        }
        let (pointer, value) = (self.word(array, index), self.word_of(ty, value));
        let scope = self.number(Scalar::U32, u64::from(DEVICE));
        let ordering = self.number(Scalar::U32, u64::from(RELAXED));
        self.builder.atomic_store(pointer, scope, ordering, value).expect("a block is open");
    }

    /// The address of an element, as that of an integer of its width.
    fn word(&mut self, array: ArrayId, index: Word) -> Word {
        let pointer = self.element(array, index);
        let object = self.kernel.array(array);
        if !object.element.is_float() {
            return pointer;
        }
        let is_local = matches!(object.space, Space::Local(_));
        let class = if is_local { StorageClass::Workgroup } else { StorageClass::CrossWorkgroup };
        let word = self.ty(object.element.unsigned());
        let ty = self.pointer(class, word);
        self.op(Op::Bitcast, ty, &[pointer])
    }

    fn word_of(&mut self, ty: Scalar, value: Word) -> Word {
        let word = self.ty(ty.unsigned());
        if ty.is_float() { self.op(Op::Bitcast, word, &[value]) } else { value }
    }

    fn number_of(&mut self, ty: Scalar, value: Word) -> Word {
        let float = self.ty(ty);
        if ty.is_float() { self.op(Op::Bitcast, float, &[value]) } else { value }
    }

    /// Compares and exchanges; returns the old bits.
    pub(super) fn cas(&mut self, ty: Scalar, pointer: Word, expected: Word, new: Word) -> Word {
        let word = self.ty(ty.unsigned());
        let scope = self.number(Scalar::U32, u64::from(DEVICE));
        let ordering = self.number(Scalar::U32, u64::from(RELAXED));
        let id = self.builder.id();
        let operands = [
            Operand::IdRef(pointer),
            Operand::IdScope(scope),
            Operand::IdMemorySemantics(ordering),
            Operand::IdMemorySemantics(ordering),
            Operand::IdRef(new),
            Operand::IdRef(expected),
        ];
        let instruction =
            Instruction::new(Op::AtomicCompareExchange, Some(word), Some(id), operands.to_vec());
        self.builder.insert_into_block(InsertPoint::End, instruction).expect("a block is open");
        id
    }
}
