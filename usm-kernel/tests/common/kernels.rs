//! Kernels from one source.

use usm_kernel::kernel;

#[kernel(group = 10)]
pub(crate) fn reverse(a: &mut [f32]) {
    #[local]
    let mut lm: [f32; 10];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    a[i] += lm[9 - l];
}

#[kernel]
pub(crate) fn saxpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    if i < y.len() {
        y[i] += alpha * x[i];
    }
}

#[kernel(group = 64)]
pub(crate) fn reduce(a: &[f32], sums: &mut [f32]) {
    #[local]
    let mut lm: [f32; 64];
    let l = local_id(0);
    let mut sum = 0.0_f32;
    let mut i = global_id(0);
    while i < a.len() {
        sum += a[i];
        i += global_size(0);
    }
    lm[l] = sum;
    barrier(LOCAL);
    let mut h = 32_u64;
    while h > 0 {
        if l < h {
            lm[l] += lm[l + h];
        }
        barrier(LOCAL);
        h /= 2;
    }
    if l == 0 {
        sums[group_id(0)] = lm[0];
    }
}

#[kernel(group = 256)]
pub(crate) fn histogram(values: &[u8], counts: &[Atomic<u32>]) {
    #[local]
    let mut bins: [u32; 256];
    let l = local_id(0);
    bins[l] = 0;
    barrier(LOCAL);
    let mut i = global_id(0);
    while i < values.len() {
        bins[values[i] as u64].fetch_add(1);
        i += global_size(0);
    }
    barrier(LOCAL);
    counts[l].fetch_add(bins[l]);
}

#[kernel(group = [16, 16])]
pub(crate) fn matmul(n: u64, a: &[f32], b: &[f32], c: &mut [f32]) {
    #[local]
    let mut left: [f32; 256];
    #[local]
    let mut right: [f32; 256];
    let (y, x) = (local_id(0), local_id(1));
    let (row, column) = (global_id(0), global_id(1));
    let mut sum = 0.0_f32;
    for t in (0..n).step_by(16) {
        left[y * 16 + x] = if row < n && t + x < n { a[row * n + (t + x)] } else { 0.0 };
        right[y * 16 + x] = if t + y < n && column < n { b[(t + y) * n + column] } else { 0.0 };
        barrier(LOCAL);
        for k in 0..16_u64 {
            sum += left[y * 16 + k] * right[k * 16 + x];
        }
        barrier(LOCAL);
    }
    if row < n && column < n {
        c[row * n + column] = sum;
    }
}

#[kernel(group = 128)]
pub(crate) fn scan(a: &[u32], out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 128];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    let mut d = 1_u64;
    while d < 128 {
        let mut before = 0_u32;
        if l >= d {
            before = lm[l - d];
        }
        barrier(LOCAL);
        lm[l] += before;
        barrier(LOCAL);
        d *= 2;
    }
    out[i] = lm[l];
}
