//! The samples as plain loops.

use super::BINS;

/// Specifies [`reverse`](super::reverse) for groups of `group` elements.
pub fn reverse_plain(a: &mut [f32], group: usize) {
    for block in a.chunks_exact_mut(group.max(1)) {
        let (last, middle) = (block.len() - 1, block.len() / 2);
        for i in 0..middle {
            let sum = block[i] + block[last - i];
            (block[i], block[last - i]) = (sum, sum);
        }
        if block.len() % 2 == 1 {
            block[middle] += block[middle];
        }
    }
}

/// Specifies [`saxpy`](super::saxpy).
pub fn saxpy_plain(alpha: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

/// The sum of an array, to which the sums of [`reduce`](super::reduce) add up.
#[must_use]
pub fn reduce_plain(a: &[f32]) -> f32 {
    a.iter().sum()
}

/// Specifies [`histogram`](super::histogram).
pub fn histogram_plain(values: &[u8], counts: &mut [u32; BINS]) {
    for value in values {
        let count = &mut counts[usize::from(*value)];
        *count = count.wrapping_add(1);
    }
}

/// Specifies [`matmul`](super::matmul). It reads `b` by rows.
pub fn matmul_plain(inner: usize, columns: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    if columns == 0 {
        return;
    }
    c.fill(0.0);
    for (row, c) in c.chunks_exact_mut(columns).enumerate() {
        for k in 0..inner {
            let factor = a[row * inner + k];
            for (sum, value) in c.iter_mut().zip(&b[k * columns..]) {
                *sum += factor * value;
            }
        }
    }
}

/// `output` = the running sums of `input`, modulo 2^32: [`scan`](super::scan) of one group.
pub fn scan_plain(input: &[u32], output: &mut [u32]) {
    let mut sum = 0_u32;
    for (to, from) in output.iter_mut().zip(input) {
        sum = sum.wrapping_add(*from);
        *to = sum;
    }
}
