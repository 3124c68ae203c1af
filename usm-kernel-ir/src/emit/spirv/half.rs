//! Conversions of floating point numbers of 16 bits, by operations on their bits: a device needs no
//! ability for them.

use rspirv::spirv::{Op, Word};

use super::Writer;
use crate::scalar::{Literal, Scalar};

impl Writer<'_> {
    /// Converts between `f32` and a type of 16 bits, whose bits are an integer here.
    pub(super) fn half(&mut self, from: Scalar, to: Scalar, value: Word) -> Word {
        let (ty, bits) = (self.ty(to), self.ty(Scalar::U32));
        if from.is_half() {
            let wide = self.op(Op::UConvert, bits, &[value]);
            let wide = if from == Scalar::F16 {
                self.widen(wide)
            } else {
                self.on_bits(Op::ShiftLeftLogical, wide, 16)
            };
            return self.op(Op::Bitcast, ty, &[wide]);
        }
        let word = self.op(Op::Bitcast, bits, &[value]);
        let narrow = if to == Scalar::F16 {
            self.narrow(word)
        } else {
            let normal = self.round_half(word, 16, 0);
            let high = self.on_bits(Op::ShiftRightLogical, word, 16);
            let quiet = self.on_bits(Op::BitwiseOr, high, 0x40);
            let size = self.on_bits(Op::BitwiseAnd, word, 0x7fff_ffff);
            self.chosen_below(size, 0x7f80_0001, normal, quiet)
        };
        self.op(Op::UConvert, ty, &[narrow])
    }

    fn widen(&mut self, word: Word) -> Word {
        let (bits, float) = (self.ty(Scalar::U32), self.ty(Scalar::F32));
        let sign = self.on_bits(Op::BitwiseAnd, word, 0x8000);
        let sign = self.on_bits(Op::ShiftLeftLogical, sign, 16);
        let size = self.on_bits(Op::BitwiseAnd, word, 0x7fff);
        let wide = self.on_bits(Op::ShiftLeftLogical, size, 13);
        let normal = self.on_bits(Op::IAdd, wide, 0x3800_0000);
        let special = self.on_bits(Op::IAdd, wide, 0x7000_0000);
        // Below the least normal number: whole numbers of least steps.
        let (step, steps) = (
            self.constant(Literal::f32(f32::from_bits(0x3380_0000))),
            self.op(Op::ConvertUToF, float, &[size]),
        );
        let small = self.op(Op::FMul, float, &[steps, step]);
        let small = self.op(Op::Bitcast, bits, &[small]);
        let result = self.chosen_below(size, 0x7c00, normal, special);
        let result = self.chosen_below(size, 0x400, small, result);
        self.op(Op::BitwiseOr, bits, &[sign, result])
    }

    fn narrow(&mut self, word: Word) -> Word {
        let (bits, float) = (self.ty(Scalar::U32), self.ty(Scalar::F32));
        let sign = self.on_bits(Op::ShiftRightLogical, word, 16);
        let sign = self.on_bits(Op::BitwiseAnd, sign, 0x8000);
        let size = self.on_bits(Op::BitwiseAnd, word, 0x7fff_ffff);
        let normal = self.round_half(size, 13, 0x3800_0000);
        // In 0.5 plus a small number, the lowest bits count the least steps.
        let (half, small) = (self.constant(Literal::f32(0.5)), self.op(Op::Bitcast, float, &[size]));
        let small = self.op(Op::FAdd, float, &[small, half]);
        let small = self.op(Op::Bitcast, bits, &[small]);
        let small = self.on_bits(Op::ISub, small, 0x3f00_0000);
        let [infinity, nan] = [0x7c00, 0x7e00].map(|bits| self.number(Scalar::U32, bits));
        let result = self.chosen_below(size, 0x7f80_0001, infinity, nan);
        let result = self.chosen_below(size, 0x4780_0000, normal, result);
        let result = self.chosen_below(size, 0x3880_0000, small, result);
        self.op(Op::BitwiseOr, bits, &[sign, result])
    }

    /// Subtracts a number, and shifts bits out to the nearest, of two to the even one.
    fn round_half(&mut self, word: Word, shift: u64, less: u64) -> Word {
        let odd = self.on_bits(Op::ShiftRightLogical, word, shift);
        let odd = self.on_bits(Op::BitwiseAnd, odd, 1);
        let sum = self.on_bits(Op::ISub, word, less);
        let sum = self.on_bits(Op::IAdd, sum, (1 << (shift - 1)) - 1);
        let bits = self.ty(Scalar::U32);
        let sum = self.op(Op::IAdd, bits, &[sum, odd]);
        self.on_bits(Op::ShiftRightLogical, sum, shift)
    }

    fn on_bits(&mut self, op: Op, word: Word, by: u64) -> Word {
        let (bits, by) = (self.ty(Scalar::U32), self.number(Scalar::U32, by));
        self.op(op, bits, &[word, by])
    }

    fn chosen_below(&mut self, word: Word, limit: u64, one: Word, two: Word) -> Word {
        let (bits, bool, limit) =
            (self.ty(Scalar::U32), self.ty(Scalar::Bool), self.number(Scalar::U32, limit));
        let below = self.op(Op::ULessThan, bool, &[word, limit]);
        self.op(Op::Select, bits, &[below, one, two])
    }
}
