//! Conversions of floating point numbers of 16 bits, by operations on their bits.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value, types};
use usm_kernel_ir::Scalar;

use crate::machine::function::Writer;

impl Writer<'_> {
    /// The `f32` of the same value.
    pub(crate) fn widened_half(&mut self, from: Scalar, value: Value) -> Value {
        let word = self.builder.ins().uextend(types::I32, value);
        if from == Scalar::Bf16 {
            let word = self.builder.ins().ishl_imm_u(word, 16);
            return self.float_of(word);
        }
        let bits = self.builder.ins().band_imm_u(word, 0x7fff);
        let sign = self.builder.ins().band_imm_u(word, 0x8000);
        let sign = self.builder.ins().ishl_imm_u(sign, 16);
        let [normal, special] = [0x3800_0000, 0x7000_0000].map(|more| {
            let wide = self.builder.ins().ishl_imm_u(bits, 13);
            self.builder.ins().iadd_imm_u(wide, more)
        });
        // Below the least normal number: whole numbers of least steps.
        let small = self.builder.ins().fcvt_from_sint(types::F32, bits);
        let step = self.builder.ins().f32const(f32::from_bits(0x3380_0000));
        let small = self.builder.ins().fmul(small, step);
        let small = self.bits_of(small);
        let result = self.chosen_below(bits, 0x7c00, normal, special);
        let result = self.chosen_below(bits, 0x400, small, result);
        let result = self.builder.ins().bor(sign, result);
        self.float_of(result)
    }

    /// The nearest number; of two, the even one.
    pub(crate) fn narrowed_half(&mut self, to: Scalar, value: Value) -> Value {
        let word = self.bits_of(value);
        let result = if to == Scalar::Bf16 {
            let normal_bits = self.round_half(word, 16, 0);
            let high = self.builder.ins().ushr_imm_u(word, 16);
            let quiet = self.builder.ins().bor_imm_u(high, 0x40);
            let nan = self.builder.ins().fcmp(FloatCC::Unordered, value, value);
            self.builder.ins().select(nan, quiet, normal_bits)
        } else {
            let sign = self.builder.ins().ushr_imm_u(word, 16);
            let sign = self.builder.ins().band_imm_u(sign, 0x8000);
            let bits = self.builder.ins().band_imm_u(word, 0x7fff_ffff);
            let normal = self.round_half(bits, 13, -0x3800_0000);
            // In 0.5 plus a small number, the lowest bits count the least steps.
            let (size, half) = (self.float_of(bits), self.builder.ins().f32const(0.5));
            let small = self.builder.ins().fadd(size, half);
            let small = self.bits_of(small);
            let small = self.builder.ins().iadd_imm_s(small, -0x3f00_0000);
            let [infinity, nan] = [0x7c00, 0x7e00].map(|bits| self.builder.ins().iconst(types::I32, bits));
            let result = self.chosen_below(bits, 0x7f80_0001, infinity, nan);
            let result = self.chosen_below(bits, 0x4780_0000, normal, result);
            let result = self.chosen_below(bits, 0x3880_0000, small, result);
            self.builder.ins().bor(sign, result)
        };
        self.builder.ins().ireduce(types::I16, result)
    }

    /// Adds a number, and shifts bits out to the nearest, of two to the even one.
    fn round_half(&mut self, word: Value, shift: i64, more: i64) -> Value {
        let odd = self.builder.ins().ushr_imm_u(word, shift);
        let odd = self.builder.ins().band_imm_u(odd, 1);
        let sum = self.builder.ins().iadd_imm_s(word, more + (1 << (shift - 1)) - 1);
        let sum = self.builder.ins().iadd(sum, odd);
        self.builder.ins().ushr_imm_u(sum, shift)
    }

    fn chosen_below(&mut self, word: Value, limit: i64, one: Value, two: Value) -> Value {
        let below = self.builder.ins().icmp_imm_s(IntCC::UnsignedLessThan, word, limit);
        self.builder.ins().select(below, one, two)
    }

    fn float_of(&mut self, bits: Value) -> Value {
        self.builder.ins().bitcast(types::F32, MemFlagsData::new(), bits)
    }

    fn bits_of(&mut self, value: Value) -> Value {
        self.builder.ins().bitcast(types::I32, MemFlagsData::new(), value)
    }
}
