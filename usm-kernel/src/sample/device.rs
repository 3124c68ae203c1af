//! The samples' code for devices, beside their host bodies.
//!
//! SPIR-V is made of the OpenCL C by `cargo xtask spirv`, which also checks that it still is what
//! the source gives. The code is written for any range and length that the kernels accept: parts of
//! an array are cut with saturating arithmetic, as [`Group::chunk`](crate::Group::chunk) does.

use super::{Histogram, Matmul, Reduce, Reverse, Saxpy, ScanCarry, ScanParts};
use crate::executable::DeviceCode;
use crate::range::NdRange;

macro_rules! code {
    ($name:literal) => {
        const OPENCL_C: Option<&'static str> = Some(include_str!(concat!("device/", $name, ".cl")));
        const CUDA_C: Option<&'static str> = Some(include_str!(concat!("device/", $name, ".cu")));
        const SPIR_V: Option<&'static [u8]> = Some(include_bytes!(concat!("device/", $name, ".spv")));
    };
}

/// Elements of an array of `len` that a group of `range` has, when each item has `per_item` of
/// them; and `len`.
fn part_and_len(range: &NdRange<1>, per_item: usize, len: usize) -> [u64; 2] {
    let len = len as u64;
    [range.local().items().saturating_mul(per_item as u64).min(len), len]
}

// SAFETY: an item reads and writes its own element of `a`, which has one for each item, and of
// local memory; the barrier lies between.
unsafe impl DeviceCode<1> for Reverse {
    code!("reverse");
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

// SAFETY: an item reads and writes its own element, and both arrays have one for each item.
unsafe impl DeviceCode<1> for Saxpy {
    code!("saxpy");
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

// SAFETY: reads end at `len`, local memory has one element for each item, and `sums` one for each
// group, which its first item writes.
unsafe impl DeviceCode<1> for Reduce {
    code!("reduce");
    type Numbers = [u64; 2];

    fn numbers(&self, range: &NdRange<1>, lengths: &[usize]) -> [u64; 2] {
        part_and_len(range, self.per_item, lengths[0])
    }
}

// SAFETY: reads end at `len`, a byte is below the 256 elements of `bins` and `counts`, and both are
// added to atomically.
unsafe impl DeviceCode<1> for Histogram {
    code!("histogram");
    type Numbers = [u64; 2];

    fn numbers(&self, range: &NdRange<1>, lengths: &[usize]) -> [u64; 2] {
        part_and_len(range, self.per_item, lengths[0])
    }
}

// SAFETY: rows and columns beyond the matrices are left out, an element of `c` has one item, the
// tile has the 16 x 16 elements that `local` asks for, and all items pass all barriers.
unsafe impl DeviceCode<2> for Matmul {
    code!("matmul");
    type Numbers = [u64; 3];

    fn numbers(&self, _: &NdRange<2>, _: &[usize]) -> [u64; 3] {
        [self.rows as u64, self.inner as u64, self.columns as u64]
    }
}

// SAFETY: an item has its own elements of both arrays, which end at `len`; `output` is as long,
// local arrays have one element for each item, and `sums` one for each group, which its first item
// writes.
unsafe impl DeviceCode<1> for ScanParts {
    code!("scan");
    type Numbers = [u64; 2];

    fn numbers(&self, range: &NdRange<1>, lengths: &[usize]) -> [u64; 2] {
        part_and_len(range, Self::PER_ITEM, lengths[0])
    }
}

// SAFETY: an item has its own elements of `output`, which end at `len`; `sums` has one element for
// each group of the range, which the item counts by itself: where a launch has none, the device's
// groups are others.
unsafe impl DeviceCode<1> for ScanCarry {
    code!("scan");
    type Numbers = [u64; 2];

    fn numbers(&self, range: &NdRange<1>, lengths: &[usize]) -> [u64; 2] {
        part_and_len(range, ScanParts::PER_ITEM, lengths[1])
    }
}
