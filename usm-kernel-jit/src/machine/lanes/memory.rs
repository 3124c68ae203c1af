//! Rows of elements, and separate elements.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use usm_kernel_ir::{ArrayId, Expr, Scalar};

use super::vector::{registers, type_of};
use super::{LANES, Lanes, Row};
use crate::machine::function::{MEMORY, Writer};

/// The type in memory.
const fn stored(ty: Scalar) -> Scalar {
    if matches!(ty, Scalar::Bool) { Scalar::U8 } else { ty }
}

impl Writer<'_> {
    /// Loads sixteen elements from an address.
    pub(super) fn load_row(&mut self, ty: Scalar, address: Value) -> Vec<Value> {
        let memory = stored(ty);
        let values: Vec<Value> = (0..registers(memory))
            .map(|register| self.builder.ins().load(type_of(memory), MEMORY, address, 16 * register as i32))
            .collect();
        if ty != Scalar::Bool {
            return values;
        }
        let zero = self.spread_zero(memory);
        let masks = values
            .into_iter()
            .zip(zero)
            .map(|(value, zero)| self.builder.ins().icmp(IntCC::NotEqual, value, zero))
            .collect();
        self.masks(memory, masks)
    }

    pub(super) fn store_row(&mut self, ty: Scalar, address: Value, values: &[Value]) {
        let values = self.stored_lanes(ty, values);
        for (register, value) in values.into_iter().enumerate() {
            self.builder.ins().store(MEMORY, value, address, 16 * register as i32);
        }
    }

    /// Converts to the representation in memory.
    fn stored_lanes(&mut self, ty: Scalar, values: &[Value]) -> Vec<Value> {
        if ty != Scalar::Bool {
            return values.to_vec();
        }
        let masks = self.masks_for(Scalar::U8, values.to_vec());
        let one = self.builder.ins().iconst(types::I8, 1);
        let one = self.builder.ins().splat(types::I8X16, one);
        masks.into_iter().map(|mask| self.builder.ins().band(mask, one)).collect()
    }

    /// The lanes in reverse order.
    fn reverse(&mut self, ty: Scalar, values: &[Value]) -> Vec<Value> {
        let bytes = ty.bytes() as usize;
        let order = core::array::from_fn(|place| (16 - bytes - place / bytes * bytes + place % bytes) as u8);
        values.iter().rev().map(|value| self.shuffle(*value, *value, order)).collect()
    }

    pub(super) fn load_lanes(&mut self, row: &mut Row, id: ArrayId, index: &Expr) -> Vec<Value> {
        let ty = self.kernel.array(id).element;
        match self.lanes(row, index) {
            Lanes::Line(first, 1) => {
                let address = self.address_at(id, first);
                self.load_row(ty, address)
            }
            Lanes::Line(first, -1) if ty != Scalar::Bool => {
                let last = self.builder.ins().iadd_imm_s(first, 1 - LANES as i64);
                let address = self.address_at(id, last);
                let values = self.load_row(ty, address);
                self.reverse(ty, &values)
            }
            index => self.by_lane(ty, |writer, lane| {
                let index = writer.lane(&index, Scalar::U64, lane);
                let address = writer.address_at(id, index);
                writer.load(ty, address)
            }),
        }
    }

    pub(super) fn store_lanes(
        &mut self,
        row: &mut Row,
        id: ArrayId,
        index: &Expr,
        ty: Scalar,
        value: &Lanes,
    ) {
        match self.lanes(row, index) {
            Lanes::Line(first, step @ (1 | -1)) if step == 1 || ty != Scalar::Bool => {
                let first =
                    if step == 1 { first } else { self.builder.ins().iadd_imm_s(first, 1 - LANES as i64) };
                let address = self.address_at(id, first);
                let values = self.spread(value.clone(), ty);
                let values = if step == 1 { values } else { self.reverse(ty, &values) };
                self.store_row(ty, address, &values);
            }
            index => {
                for lane in 0..LANES {
                    let index = self.lane(&index, Scalar::U64, lane);
                    let address = self.address_at(id, index);
                    let value = self.lane(value, ty, lane);
                    self.builder.ins().store(MEMORY, value, address, 0);
                }
            }
        }
    }
}
