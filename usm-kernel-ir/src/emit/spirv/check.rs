//! Checked indices.

use rspirv::spirv::{Op, StorageClass, Word};

use super::super::checked::len;
use super::Writer;
use crate::kernel::{ArrayId, Place, Space};
use crate::scalar::{Literal, Scalar};

impl Writer<'_> {
    /// Whether an index is inside; records one that is not. `None` if the function does not check
    /// it.
    fn index_check(&mut self, array: ArrayId, index: Word, place: Place) -> Option<Word> {
        let number = self.checks?.number(array, place)?;
        let len = self.expr(&len(array, place));
        let bool = self.ty(Scalar::Bool);
        let inside = self.op(Op::ULessThan, bool, &[index, len]);
        let (outside, first, end) = (self.builder.id(), self.builder.id(), self.builder.id());
        self.fork(inside, end, outside);
        self.begin(Some(outside));
        let (byte, flags) = (self.ty(Scalar::U8), self.number(Scalar::U8, u64::from(self.record_mask)));
        let before = self.load(self.failure, Scalar::U8);
        let sum = self.op(Op::BitwiseOr, byte, &[before, flags]);
        self.store(self.failure, Scalar::U8, sum);
        let (zero, number) = (self.number(Scalar::U32, 0), self.number(Scalar::U32, u64::from(number)));
        let old = self.cas(Scalar::U32, self.record, zero, number);
        let is_first = self.op(Op::IEqual, bool, &[old, zero]);
        self.fork(is_first, first, end);
        self.begin(Some(first));
        let (word, wide) = (self.ty(Scalar::U32), self.ty(Scalar::U64));
        let pointer = self.pointer(StorageClass::CrossWorkgroup, word);
        let half = self.number(Scalar::U64, 32);
        for (at, value) in [(1, index), (3, len)] {
            let high = self.op(Op::ShiftRightLogical, wide, &[value, half]);
            for (at, value) in [(at, value), (at + 1, high)] {
                let value = self.op(Op::UConvert, word, &[value]);
                let at = self.number(Scalar::U64, at);
                let to = self.builder.in_bounds_ptr_access_chain(pointer, None, self.record, at, []);
                self.store(to.expect("a block is open"), Scalar::U32, value);
            }
        }
        self.jump(end);
        self.begin(Some(end));
        Some(inside)
    }

    /// The loaded value, or 0 if the index is outside.
    pub(super) fn read(&mut self, array: ArrayId, index: Word, ty: Scalar, place: Place) -> Word {
        let inside = self.index_check(array, index, place);
        if matches!(self.kernel.array(array).space, Space::Extent(_)) {
            let Some(inside) = inside else { return index };
            let (wide, zero) = (self.ty(Scalar::U64), self.number(Scalar::U64, 0));
            return self.op(Op::Select, wide, &[inside, index, zero]);
        }
        let Some(inside) = inside else {
            return self.load_element(array, index, ty);
        };
        let (word, none) = (self.ty(ty), self.constant(Literal::integer(ty, 0)));
        let (entry, yes, end) = (self.block, self.builder.id(), self.builder.id());
        self.fork(inside, yes, end);
        self.begin(Some(yes));
        let value = self.load_element(array, index, ty);
        let last = self.block;
        self.jump(end);
        self.begin(Some(end));
        self.builder.phi(word, None, [(none, entry), (value, last)]).expect("a block is open")
    }

    /// Runs `work` if the index is inside, otherwise `instead`.
    pub(super) fn change(
        &mut self,
        (array, index, place): (ArrayId, Word, Place),
        work: impl FnOnce(&mut Self),
        write_otherwise: impl FnOnce(&mut Self),
    ) {
        let Some(inside) = self.index_check(array, index, place) else { return work(self) };
        let (yes, no, end) = (self.builder.id(), self.builder.id(), self.builder.id());
        self.fork(inside, yes, no);
        self.begin(Some(yes));
        work(self);
        self.jump(end);
        self.begin(Some(no));
        write_otherwise(self);
        self.jump(end);
        self.begin(Some(end));
    }
}
