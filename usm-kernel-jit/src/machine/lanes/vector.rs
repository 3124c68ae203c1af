//! Vectors: registers of sixteen lanes, and their parts.
//!
//! A `bool` is a mask of 32 bits: all bits of a lane are set, or none.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{ConstantData, Endianness, InstBuilder, MemFlagsData, Type, Value, types};
use usm_kernel_ir::Scalar;

use super::{LANES, Lanes};
use crate::machine::function::{Writer, type_of as lane_type};

/// The type of a register.
pub(super) const fn type_of(ty: Scalar) -> Type {
    match ty {
        Scalar::I8 | Scalar::U8 => types::I8X16,
        Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => types::I16X8,
        Scalar::Bool | Scalar::I32 | Scalar::U32 => types::I32X4,
        Scalar::I64 | Scalar::U64 => types::I64X2,
        Scalar::F32 => types::F32X4,
        Scalar::F64 => types::F64X2,
    }
}

/// Bytes of a lane.
pub(super) const fn lane_bytes(ty: Scalar) -> i64 {
    if matches!(ty, Scalar::Bool) { 4 } else { ty.bytes() as i64 }
}

pub(super) const fn registers(ty: Scalar) -> usize {
    LANES * lane_bytes(ty) as usize / 16
}

const fn per_register(ty: Scalar) -> usize {
    LANES / registers(ty)
}

const BITS: MemFlagsData = MemFlagsData::new().with_endianness(Endianness::Little);

impl Writer<'_> {
    pub(super) fn as_type(&mut self, ty: Type, value: Value) -> Value {
        if self.builder.func.dfg.value_type(value) == ty {
            return value;
        }
        self.builder.ins().bitcast(ty, BITS, value)
    }

    /// A vector with these bytes.
    fn constant(&mut self, ty: Type, bytes: Vec<u8>) -> Value {
        let bytes = self.builder.func.dfg.constants.insert(ConstantData::from(bytes));
        self.builder.ins().vconst(ty, bytes)
    }

    /// Shuffles the bytes of two registers; indices from 16 on select from the second.
    pub(super) fn shuffle(&mut self, one: Value, two: Value, bytes: [u8; 16]) -> Value {
        let ty = self.builder.func.dfg.value_type(one);
        let [one, two] = [one, two].map(|value| self.as_type(types::I8X16, value));
        let mask = self.builder.func.dfg.immediates.push(ConstantData::from(bytes.to_vec()));
        let value = self.builder.ins().shuffle(one, two, mask);
        self.as_type(ty, value)
    }

    /// The low halves of all lanes of `bytes` bytes of two registers.
    pub(super) fn low_halves(&mut self, one: Value, two: Value, bytes: usize) -> Value {
        let half = bytes / 2;
        let order = core::array::from_fn(|place| (place / half * bytes + place % half) as u8);
        self.shuffle(one, two, order)
    }

    pub(super) fn spread_zero(&mut self, ty: Scalar) -> Vec<Value> {
        let zero = self.constant(type_of(ty), vec![0; 16]);
        vec![zero; registers(ty)]
    }

    /// Converts to vectors.
    pub(super) fn spread(&mut self, lanes: Lanes, ty: Scalar) -> Vec<Value> {
        match lanes {
            Lanes::Many(values) => values,
            Lanes::One(value) => {
                let value = if ty == Scalar::Bool { self.mask_of(value) } else { value };
                let value = self.builder.ins().splat(type_of(ty), value);
                vec![value; registers(ty)]
            }
            Lanes::Line(first, step) => {
                let first = self.builder.ins().splat(type_of(ty), first);
                let (count, bytes) = (per_register(ty), lane_bytes(ty) as usize);
                (0..registers(ty))
                    .map(|register| {
                        let more = (0..count).flat_map(|lane| {
                            let number = (register * count + lane) as i64;
                            number.wrapping_mul(step).to_le_bytes().into_iter().take(bytes)
                        });
                        let more = self.constant(type_of(ty), more.collect());
                        self.builder.ins().iadd(first, more)
                    })
                    .collect()
            }
        }
    }

    /// A lane of a mask for a `bool`.
    fn mask_of(&mut self, value: Value) -> Value {
        let wide = self.builder.ins().uextend(types::I32, value);
        self.builder.ins().ineg(wide)
    }

    /// The value of an item.
    pub(super) fn lane(&mut self, lanes: &Lanes, ty: Scalar, number: usize) -> Value {
        match lanes {
            Lanes::One(value) => *value,
            Lanes::Line(first, step) => {
                self.builder.ins().iadd_imm_s(*first, (number as i64).wrapping_mul(*step))
            }
            Lanes::Many(values) => {
                let count = per_register(ty);
                let value = self.builder.ins().extractlane(values[number / count], (number % count) as u8);
                if ty == Scalar::Bool {
                    self.builder.ins().icmp_imm_s(IntCC::NotEqual, value, 0)
                } else {
                    value
                }
            }
        }
    }

    /// Vectors made from a value for each item.
    pub(super) fn by_lane(
        &mut self,
        ty: Scalar,
        mut value: impl FnMut(&mut Self, usize) -> Value,
    ) -> Vec<Value> {
        let count = per_register(ty);
        (0..registers(ty))
            .map(|register| {
                let mut whole = None;
                for lane in 0..count {
                    let mut one = value(self, register * count + lane);
                    if ty == Scalar::Bool {
                        one = self.mask_of(one);
                    }
                    whole = Some(match whole {
                        None => self.builder.ins().splat(type_of(ty), one),
                        Some(whole) => self.builder.ins().insertlane(whole, one, lane as u8),
                    });
                }
                whole.expect("a register has lanes")
            })
            .collect()
    }

    /// Loads a `bool` from an item's stack slot.
    pub(super) fn load_lane(&mut self, ty: Scalar, address: Value) -> Value {
        let element = if ty == Scalar::Bool { types::I32 } else { lane_type(ty) };
        let value = self.builder.ins().load(element, crate::machine::function::MEMORY, address, 0);
        if ty == Scalar::Bool { self.builder.ins().icmp_imm_s(IntCC::NotEqual, value, 0) } else { value }
    }

    pub(super) fn store_lane(&mut self, ty: Scalar, address: Value, value: Value) {
        let value = if ty == Scalar::Bool { self.mask_of(value) } else { value };
        self.builder.ins().store(crate::machine::function::MEMORY, value, address, 0);
    }

    /// Converts masks of 32 bits to masks of a type's lane width.
    pub(super) fn masks(&mut self, ty: Scalar, values: Vec<Value>) -> Vec<Value> {
        match lane_bytes(ty) {
            1 => {
                let wide = self.with_double_width(values, true);
                self.with_double_width(wide, true)
            }
            2 => self.with_double_width(values, true),
            4 => values,
            _ => self.narrow(values, 8, types::I32X4),
        }
    }

    /// The reverse conversion.
    pub(super) fn masks_for(&mut self, ty: Scalar, values: Vec<Value>) -> Vec<Value> {
        match lane_bytes(ty) {
            1 => {
                let half = self.narrow(values, 4, types::I16X8);
                self.narrow(half, 2, types::I8X16)
            }
            2 => self.narrow(values, 4, types::I16X8),
            4 => values,
            _ => self.with_double_width(values, true),
        }
    }

    /// Doubles the number of registers, and the width of their lanes.
    pub(super) fn with_double_width(&mut self, values: Vec<Value>, signed: bool) -> Vec<Value> {
        let mut wide = Vec::new();
        for value in values {
            for high in [false, true] {
                let ins = self.builder.ins();
                wide.push(match (signed, high) {
                    (true, false) => ins.swiden_low(value),
                    (true, true) => ins.swiden_high(value),
                    (false, false) => ins.uwiden_low(value),
                    (false, true) => ins.uwiden_high(value),
                });
            }
        }
        wide
    }

    /// Halves the number of registers, now of this type: the low halves of lanes of `bytes` bytes.
    pub(super) fn narrow(&mut self, values: Vec<Value>, bytes: usize, ty: Type) -> Vec<Value> {
        let mut narrow = Vec::new();
        for pair in values.chunks_exact(2) {
            let value = self.low_halves(pair[0], pair[1], bytes);
            narrow.push(self.as_type(ty, value));
        }
        narrow
    }
}
