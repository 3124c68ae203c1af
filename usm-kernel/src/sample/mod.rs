//! Sample kernels, each written once for the host and all devices, and plain loops that specify
//! their results.

#[cfg(feature = "alloc")]
mod drive;
mod plain;

#[cfg(feature = "alloc")]
pub use drive::{running_sums, sum};
pub use plain::{histogram_plain, matmul_plain, reduce_plain, reverse_plain, saxpy_plain, scan_plain};

use crate::kernel;

/// Number of different bytes: the length of a histogram.
pub const BINS: usize = 256;

/// Each group of `a` becomes the sum of itself and its reverse.
#[kernel]
pub fn reverse(a: &mut [f32]) {
    #[local]
    let mut lm: [f32; local_size(0)];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    a[i] += lm[local_size(0) - 1 - l];
}

/// `y[i] += alpha * x[i]` for each work-item.
#[kernel]
pub fn saxpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    y[i] += alpha * x[i];
}

/// `sums[group]` = the sum of the elements that the group's work-items took. An item takes every
/// element whose index differs from its own by a multiple of the global size.
#[kernel]
pub fn reduce(a: &[f32], sums: &mut [f32]) {
    let mut sum = 0.0_f32;
    for i in (global_id(0)..a.len()).step_by(global_size(0)) {
        sum += a[i];
    }
    let total = group_reduce(sum, ADD);
    if local_id(0) == 0 {
        sums[group_id(0)] = total;
    }
}

/// Adds the number of occurrences of `v` in `values` to `counts[v]`. Each group counts in local
/// memory and adds its counts to the result once; each item counts neighbouring values.
#[kernel]
pub fn histogram(values: &[u8], counts: &[Atomic<u32>]) {
    #[local]
    let mut bins: [u32; 256];
    for bin in (local_id(0)..256).step_by(local_size(0)) {
        bins[bin] = 0;
    }
    barrier(LOCAL);
    let part = (values.len() + global_size(0) - 1) / global_size(0);
    let start = global_id(0) * part;
    for i in start..min(start + part, values.len()) {
        bins[values[i] as u64].fetch_add(1);
    }
    barrier(LOCAL);
    for bin in (local_id(0)..256).step_by(local_size(0)) {
        counts[bin].fetch_add(bins[bin]);
    }
}

/// `c = a * b` for row-major matrices: `a` of `rows x inner`, `b` of `inner x columns`. Tiles of
/// 16 x 16 elements pass through local memory. The range covers `c`; sizes need not divide.
#[kernel(group = [16, 16])]
pub fn matmul(rows: u64, inner: u64, columns: u64, a: &[f32], b: &[f32], c: &mut [f32]) {
    #[local]
    let mut left: [f32; 256];
    #[local]
    let mut right: [f32; 256];
    let (y, x) = (local_id(0), local_id(1));
    let (row, column) = (global_id(0), global_id(1));
    let mut sum = 0.0_f32;
    for t in (0..inner).step_by(16) {
        left[y * 16 + x] = if row < rows && t + x < inner { a[row * inner + (t + x)] } else { 0.0 };
        right[y * 16 + x] =
            if t + y < inner && column < columns { b[(t + y) * columns + column] } else { 0.0 };
        barrier(LOCAL);
        for k in 0..16_u64 {
            sum += left[y * 16 + k] * right[k * 16 + x];
        }
        barrier(LOCAL);
    }
    if row < rows && column < columns {
        c[row * columns + column] = sum;
    }
}

/// Each group's part of `output` = the running sums (modulo 2^32) of its part of `input`;
/// `sums[group]` = the part's total.
#[kernel]
pub fn scan(input: &[u32], output: &mut [u32], sums: &mut [u32]) {
    let i = global_id(0);
    let value = if i < input.len() { input[i] } else { 0 };
    let running = group_inclusive_scan(value, ADD);
    if i < output.len() {
        output[i] = running;
    }
    let total = group_broadcast(running, local_size(0) - 1);
    if local_id(0) == 0 {
        sums[group_id(0)] = total;
    }
}

/// Adds `carries[group - 1]` to each group's part of `output`. With the running sums of all parts'
/// totals as carries, this makes the running sums of the parts those of the whole.
#[kernel]
pub fn add_carries(carries: &[u32], output: &mut [u32]) {
    let (i, group) = (global_id(0), group_id(0));
    if group > 0 && i < output.len() {
        output[i] += carries[group - 1];
    }
}
