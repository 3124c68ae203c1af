//! Random indices, mostly other ones for each item.

use usm_kernel_ir::Scalar;

use super::Writer;
use super::expression::cast;

impl Writer {
    /// An index of `o` or `r`. Items often have different ones, so that some launches are right.
    pub(super) fn index(&mut self) -> String {
        let index = self.plain_index();
        match self.random.below(10) {
            0 | 1 => format!("{index} * {}", self.literal(Scalar::U64)),
            2 | 3 => format!("{index} + {}", self.expr(Scalar::U64, 1)),
            // Wraps where the type is small.
            4 => format!("(({index}) as {}) as u64", self.scalar()),
            5 => format!("({index}) % {}", self.literal(Scalar::U64)),
            _ => index,
        }
    }

    fn plain_index(&mut self) -> String {
        match self.random.below(12) {
            0..=2 => self.linear(),
            3 if self.grouped => "(group_id(0) * local_size(0) + local_id(0))".to_owned(),
            4 if self.grouped => format!("(group_id(0) * {} + local_id(0))", self.expr(Scalar::U64, 1)),
            5 => format!("({} - global_id(0))", self.expr(Scalar::U64, 1)),
            6 | 7 => self.variable_as(Scalar::U64),
            8 => self.expr(Scalar::U64, 2),
            9 => {
                let ty = self.scalar();
                cast(&self.expr(ty, 2), ty, Scalar::U64)
            }
            _ => {
                let (ty, id) = (self.scalar(), self.linear());
                let factor = self.literal(Scalar::U64);
                cast(&cast(&format!("({id} * {factor})"), Scalar::U64, ty), ty, Scalar::U64)
            }
        }
    }

    /// The number of the item in the range or in one dimension, or with another size of the rows.
    pub(super) fn linear(&mut self) -> String {
        if self.dimensions == 1 || self.random.percent(30) {
            return format!("global_id({})", self.random.below(self.dimensions));
        }
        let width = self.word(&["global_size(1)", "(n as u64)", "m", "3"]);
        format!("(global_id(0) * {width} + global_id(1))")
    }

    /// An index of the local array.
    pub(super) fn local_index(&mut self) -> String {
        match self.random.below(8) {
            0..=2 => "local_id(0)".to_owned(),
            3 => format!("{} - local_id(0)", self.literal(Scalar::U64)),
            4 => format!("local_id(0) + {}", self.expr(Scalar::U64, 1)),
            5 => self.expr(Scalar::U64, 1),
            6 => format!("local_id(0) * {}", self.literal(Scalar::U64)),
            _ => format!("local_id(0) % {}", self.literal(Scalar::U64)),
        }
    }
}
