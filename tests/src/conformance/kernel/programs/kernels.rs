//! Ten typical kernels, from one source.

use usm_kernel::prelude::*;

#[kernels]
pub(super) mod programs {
    /// A five-point stencil; the border keeps its values.
    #[kernel(dimensions = 2)]
    pub fn stencil(h: u64, w: u64, a: &[f32], b: &mut [f32]) {
        let (y, x) = (global_id(0), global_id(1));
        if y > 0 && y + 1 < h && x > 0 && x + 1 < w {
            let near = a[(y - 1) * w + x] + a[(y + 1) * w + x] + a[y * w + (x - 1)] + a[y * w + (x + 1)];
            b[y * w + x] = 0.5 * a[y * w + x] + 0.125 * near;
        }
    }

    /// Sums from the last head on, in each group.
    #[kernel(group = 64)]
    pub fn segmented_scan(heads: &[u8], a: &[u32], out: &mut [u32]) {
        #[local]
        let mut sums: [u32; 64];
        #[local]
        let mut ends: [bool; 64];
        let (l, i) = (local_id(0), global_id(0));
        sums[l] = a[i];
        ends[l] = heads[i] != 0;
        barrier(LOCAL);
        let mut d = 1_u64;
        while d < 64 {
            let mut before = 0_u32;
            let mut ended = ends[l];
            if l >= d && !ended {
                before = sums[l - d];
                ended = ends[l - d];
            }
            barrier(LOCAL);
            sums[l] += before;
            ends[l] = ended;
            barrier(LOCAL);
            d *= 2;
        }
        out[i] = sums[l];
    }

    /// Sorts each group's elements in ascending order. Each item writes only its own element, so
    /// items do not race.
    #[kernel(group = 64)]
    pub fn bitonic_sort(a: &mut [i32]) {
        #[local]
        let mut lm: [i32; 64];
        let (l, i) = (local_id(0), global_id(0));
        lm[l] = a[i];
        barrier(LOCAL);
        let mut k = 2_u64;
        while k <= 64 {
            let mut j = k / 2;
            while j > 0 {
                let (own, other) = (lm[l], lm[(l ^ j) & 63]);
                let takes_less = (l & j == 0) == (l & k == 0);
                barrier(LOCAL);
                lm[l] = if takes_less { min(own, other) } else { max(own, other) };
                barrier(LOCAL);
                j /= 2;
            }
            k *= 2;
        }
        a[i] = lm[l];
    }

    /// One group for each row.
    #[kernel(group = 32)]
    pub fn softmax(columns: u64, a: &[f32], out: &mut [f32]) {
        let (l, row) = (local_id(0), group_id(0));
        let mut greatest = -3.0e38_f32;
        for c in (l..columns).step_by(32) {
            greatest = max(greatest, a[row * columns + c]);
        }
        let greatest = group_reduce(greatest, MAX);
        let mut sum = 0.0_f32;
        for c in (l..columns).step_by(32) {
            sum += (a[row * columns + c] - greatest).exp();
        }
        let sum = group_reduce(sum, ADD);
        for c in (l..columns).step_by(32) {
            out[row * columns + c] = (a[row * columns + c] - greatest).exp() / sum;
        }
    }

    /// A sparse matrix times a vector. The indices come from memory, so devices check them.
    #[kernel]
    pub fn csr(starts: &[u32], columns: &[u32], values: &[f32], x: &[f32], y: &mut [f32]) {
        let row = global_id(0);
        if row < y.len() {
            let mut sum = 0.0_f32;
            for k in (starts[row] as u64)..(starts[row + 1] as u64) {
                sum += values[k] * x[columns[k] as u64];
            }
            y[row] = sum;
        }
    }

    const SOFTENING: f32 = 0.01;

    #[kernel_fn]
    fn pull(dx: f32, dy: f32, mass: f32) -> f32 {
        let square = dx * dx + dy * dy + SOFTENING;
        mass / (square * square.sqrt())
    }

    /// Accelerations of bodies in a plane: x, y and mass of each; a tile of them at a time.
    #[kernel(group = 32)]
    pub fn n_body(n: u64, bodies: &[f32], pulls: &mut [f32]) {
        #[local]
        let mut tile: [f32; 96];
        let (l, i) = (local_id(0), global_id(0));
        let mut own: [f32; 2] = [0.0; 2];
        let mut sums: [f32; 2] = [0.0; 2];
        if i < n {
            own[0] = bodies[3 * i];
            own[1] = bodies[3 * i + 1];
        }
        for start in (0..n).step_by(32) {
            let j = start + l;
            tile[l] = if j < n { bodies[3 * j] } else { 0.0 };
            tile[l + 32] = if j < n { bodies[3 * j + 1] } else { 0.0 };
            tile[l + 64] = if j < n { bodies[3 * j + 2] } else { 0.0 };
            barrier(LOCAL);
            for k in 0..32_u64 {
                let (dx, dy) = (tile[k] - own[0], tile[k + 32] - own[1]);
                let by = pull(dx, dy, tile[k + 64]);
                sums[0] += dx * by;
                sums[1] += dy * by;
            }
            barrier(LOCAL);
        }
        if i < n {
            pulls[2 * i] = sums[0];
            pulls[2 * i + 1] = sums[1];
        }
    }

    /// In integers of 2^-20, so that all targets count the same iterations.
    #[kernel(dimensions = 2)]
    pub fn mandelbrot(w: u64, h: u64, most: u32, out: &mut [u32]) {
        let (row, column) = (global_id(0), global_id(1));
        if row >= h || column >= w {
            return;
        }
        let cx = (column as i64 * 3 - w as i64 * 2) * 1_048_576 / w as i64;
        let cy = (row as i64 * 2 - h as i64) * 1_048_576 / h as i64;
        let (mut x, mut y) = (0_i64, 0_i64);
        let mut rounds = 0_u32;
        while rounds < most {
            let (xx, yy) = (x * x / 1_048_576, y * y / 1_048_576);
            if xx + yy > 4 * 1_048_576 {
                break;
            }
            y = x * y / 524_288 + cy;
            x = xx - yy + cx;
            rounds += 1;
        }
        out[row * w + column] = rounds;
    }

    /// Tiles of 8 by 8 through local memory.
    #[kernel(group = [8, 8])]
    pub fn transpose(h: u64, w: u64, a: &[u16], out: &mut [u16]) {
        #[local]
        let mut tile: [u16; 72];
        let (y, x) = (local_id(0), local_id(1));
        let (row, column) = (group_id(0) * 8, group_id(1) * 8);
        if row + y < h && column + x < w {
            tile[y * 9 + x] = a[(row + y) * w + (column + x)];
        } else {
            tile[y * 9 + x] = 0;
        }
        barrier(LOCAL);
        if column + y < w && row + x < h {
            out[(column + y) * h + (row + x)] = tile[x * 9 + y];
        }
    }

    /// The rank of each element in its group by four of its bits; the order is stable.
    #[kernel(group = 64)]
    pub fn radix_ranks(shift: u32, a: &[u32], counts: &mut [u32], ranks: &mut [u32]) {
        let (l, i) = (local_id(0), global_id(0));
        let digit = a[i] >> shift & 15;
        let (mut first, mut rank) = (0_u32, 0_u32);
        for d in 0..16_u32 {
            let is = (digit == d) as u32;
            let before = group_exclusive_scan(is, ADD);
            let all = group_reduce(is, ADD);
            if digit == d {
                rank = first + before;
            }
            first += all;
            if l == 0 {
                counts[group_id(0) * 16 + d as u64] = all;
            }
        }
        ranks[i] = rank;
    }

    /// The part of a normal distribution below `x`, by Abramowitz and Stegun 26.2.17.
    #[kernel_fn]
    fn below(x: f64) -> f64 {
        let k = 1.0 / (1.0 + 0.2316419 * x.abs());
        let powers =
            k * (0.319381530 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))));
        let rest = 0.3989422804014327 * (-0.5 * x * x).exp() * powers;
        if x < 0.0 {
            return rest;
        }
        1.0 - rest
    }

    /// Prices of European calls and puts.
    #[kernel]
    pub fn black_scholes(
        rate: f64,
        volatility: f64,
        spot: &[f64],
        strike: &[f64],
        years: &[f64],
        call: &mut [f64],
        put: &mut [f64],
    ) {
        let i = global_id(0);
        if i < call.len() {
            let (s, k, t) = (spot[i], strike[i], years[i]);
            let spread = volatility * t.sqrt();
            let d1 = ((s / k).ln() + (rate + 0.5 * volatility * volatility) * t) / spread;
            let d2 = d1 - spread;
            let later = k * (-rate * t).exp();
            call[i] = s * below(d1) - later * below(d2);
            put[i] = later * below(-d2) - s * below(-d1);
        }
    }
}
