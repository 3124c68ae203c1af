//! Kernels from one source compared with hand-written loops, including launch and proof.

use core::hint::black_box;

use usm_core::Queue;
use usm_core::backend::host::HostHeap;
use usm_kernel::prelude::*;
use usm_kernel::{Kernel, Proof};

use super::{usm, values};
use crate::row::{Row, microseconds};

const PEER: &str = "hand-written loop";
const SIZES: [usize; 2] = [1 << 16, 1 << 20];

pub(super) fn rows(queue: &Queue<HostHeap>) -> Vec<Row> {
    let mut rows = Vec::new();
    for n in SIZES {
        rows.extend([reversed(queue, n), saxpied(queue, n), counted(queue, n), reduced(queue, n)]);
        rows.extend([measure_stencil(queue, n, false), measure_stencil(queue, n, true), scanned(queue, n)]);
    }
    rows.push(multiplied(queue));
    rows.extend(launches(queue));
    rows
}

fn row(case: &str, n: usize, (ours, theirs): (f64, f64)) -> Row {
    Row::new(&format!("{case} n={n}"), PEER, "us", ours, theirs)
}

fn grid(items: usize, group: usize) -> NdRange<1> {
    NdRange::new([items as u64], [group as u64]).expect("the sizes divide")
}

#[kernel(group = 256)]
fn reverse(a: &mut [f32]) {
    #[local]
    let mut lm: [f32; 256];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    a[i] += lm[255 - l];
}

fn reversed(queue: &Queue<HostHeap>, n: usize) -> Row {
    let mut a = usm(queue, &vec![0.0_f32; n]);
    let mut b = vec![0.0_f32; n];
    let mut lm = [0.0_f32; 256];
    let ours = || {
        let _ =
            Launch::new(queue, grid(n, 256)).threads(1).run(reverse, (black_box(&mut a),)).expect("launches");
    };
    let theirs = || {
        for block in black_box(&mut b).chunks_exact_mut(256) {
            lm.copy_from_slice(block);
            for (value, mirror) in block.iter_mut().zip(lm.iter().rev()) {
                *value += mirror;
            }
        }
    };
    row("reverse, one source", n, microseconds(ours, theirs))
}

#[kernel]
pub(super) fn saxpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    y[i] += alpha * x[i];
}

fn saxpied(queue: &Queue<HostHeap>, n: usize) -> Row {
    let some: Vec<f32> = values().into_iter().cycle().take(n).collect();
    let (x, mut y) = (usm(queue, &some), usm(queue, &some));
    let (plain_x, mut plain_y) = (some.clone(), some);
    let range = Range::new([n as u64]).expect("fits");
    let ours = || {
        let arguments = (1e-6, black_box(&x), black_box(&mut y));
        let _ = Launch::with_range(queue, range).threads(1).run(saxpy, arguments).expect("launches");
    };
    let theirs = || {
        for (y, x) in black_box(&mut plain_y).iter_mut().zip(black_box(&plain_x)) {
            *y += 1e-6 * x;
        }
    };
    row("saxpy, one source", n, microseconds(ours, theirs))
}

#[kernel(group = 256)]
fn histogram(values: &[u8], counts: &[Atomic<u32>]) {
    #[local]
    let mut bins: [u32; 256];
    let l = local_id(0);
    bins[l] = 0;
    barrier(LOCAL);
    let per_item = values.len() / global_size(0);
    let start = global_id(0) * per_item;
    for i in start..min(start + per_item, values.len()) {
        bins[values[i] as u64].fetch_add(1);
    }
    barrier(LOCAL);
    counts[l].fetch_add(bins[l]);
}

fn counted(queue: &Queue<HostHeap>, n: usize) -> Row {
    let bytes: Vec<u8> = (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
    let a = usm(queue, &bytes);
    let mut counts = usm(queue, &[0_u32; 256]);
    let mut plain = [0_u32; 256];
    let ours = || {
        let arguments = (black_box(&a), &mut counts);
        let _ =
            Launch::new(queue, grid(n / 256, 256)).threads(1).run(histogram, arguments).expect("launches");
    };
    let theirs = || {
        for value in black_box(&bytes) {
            let count = &mut black_box(&mut plain)[usize::from(*value)];
            *count = count.wrapping_add(1);
        }
    };
    row("histogram, one source", n, microseconds(ours, theirs))
}

#[kernel(group = 256)]
fn reduce(a: &[f32], sums: &mut [f32]) {
    #[local]
    let mut lm: [f32; 256];
    let l = local_id(0);
    lm[l] = a[global_id(0)];
    barrier(LOCAL);
    let mut h = 128_u64;
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

fn reduced(queue: &Queue<HostHeap>, n: usize) -> Row {
    let some: Vec<f32> = values().into_iter().cycle().take(n).collect();
    let (a, mut sums) = (usm(queue, &some), usm(queue, &vec![0.0_f32; n / 256]));
    let mut plain = vec![0.0_f32; n / 256];
    let mut lm = [0.0_f32; 256];
    let ours = || {
        let arguments = (black_box(&a), &mut sums);
        let _ = Launch::new(queue, grid(n, 256)).threads(1).run(reduce, arguments).expect("launches");
    };
    let theirs = || {
        for (block, sum) in black_box(&some).chunks_exact(256).zip(black_box(&mut plain)) {
            lm.copy_from_slice(block);
            let mut h = 128;
            while h > 0 {
                let (low, high) = lm.split_at_mut(h);
                for (low, high) in low.iter_mut().zip(high) {
                    *low += *high;
                }
                h /= 2;
            }
            *sum = lm[0];
        }
    };
    row("reduce, one source, same tree", n, microseconds(ours, theirs))
}

#[kernel(dimensions = 2)]
fn stencil(w: u64, h: u64, a: &[f32], b: &mut [f32]) {
    let (y, x) = (global_id(0), global_id(1));
    if y > 0 && y < h - 1 && x > 0 && x < w - 1 {
        let i = y * w + x;
        b[i] = 0.2 * (a[i] + a[i - 1] + a[i + 1] + a[i - w] + a[i + w]);
    }
}

fn measure_stencil(queue: &Queue<HostHeap>, n: usize, groups: bool) -> Row {
    let side = n.isqrt();
    let some: Vec<f32> = values().into_iter().cycle().take(n).collect();
    let (a, mut b) = (usm(queue, &some), usm(queue, &vec![0.0_f32; n]));
    let mut plain = vec![0.0_f32; n];
    let sizes = [side as u64; 2];
    let ours = || {
        let arguments = (side as u64, side as u64, black_box(&a), black_box(&mut b));
        let launch = if groups {
            Launch::new(queue, NdRange::new(sizes, [16, 16]).expect("the sizes divide")).threads(1)
        } else {
            Launch::with_range(queue, Range::new(sizes).expect("fits")).threads(1)
        };
        let _ = launch.run(stencil, arguments).expect("launches");
    };
    let theirs = || {
        let (a, b) = (black_box(&some), black_box(&mut plain));
        for y in 1..side - 1 {
            let (above, middle, below) =
                (&a[(y - 1) * side..][..side], &a[y * side..][..side], &a[(y + 1) * side..][..side]);
            let row = &mut b[y * side..][..side];
            for x in 1..side - 1 {
                row[x] = 0.2 * (middle[x] + middle[x - 1] + middle[x + 1] + above[x] + below[x]);
            }
        }
    };
    let case = if groups { "stencil in 16x16 groups, one source" } else { "stencil over items, one source" };
    row(case, n, microseconds(ours, theirs))
}

#[kernel(group = 256)]
fn scan(a: &[u32], out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 256];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    let mut d = 1_u64;
    while d < 256 {
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

fn scanned(queue: &Queue<HostHeap>, n: usize) -> Row {
    let some: Vec<u32> = (0..n as u32).map(|i| i % 1000).collect();
    let (a, mut out) = (usm(queue, &some), usm(queue, &vec![0_u32; n]));
    let mut plain = vec![0_u32; n];
    let ours = || {
        let arguments = (black_box(&a), black_box(&mut out));
        let _ = Launch::new(queue, grid(n, 256)).threads(1).run(scan, arguments).expect("launches");
    };
    let theirs = || {
        for (from, to) in black_box(&some).chunks_exact(256).zip(black_box(&mut plain).chunks_exact_mut(256))
        {
            let mut sum = 0_u32;
            for (value, to) in from.iter().zip(to) {
                sum = sum.wrapping_add(*value);
                *to = sum;
            }
        }
    };
    row("scan in groups, one source", n, microseconds(ours, theirs))
}

#[kernel(group = [16, 16])]
pub(super) fn matmul(n: u64, a: &[f32], b: &[f32], c: &mut [f32]) {
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

/// Beside a loop over blocks of 4 rows and 32 columns, with the columns of `b` packed.
fn multiplied(queue: &Queue<HostHeap>) -> Row {
    const N: usize = 512;
    let some: Vec<f32> = values().into_iter().cycle().take(N * N).collect();
    let (a, b, mut c) = (usm(queue, &some), usm(queue, &some), usm(queue, &vec![0.0_f32; N * N]));
    let mut plain = vec![0.0_f32; N * N];
    let mut panel = vec![[0.0_f32; 32]; N];
    let ours = || {
        let range = NdRange::new([N as u64; 2], [16, 16]).expect("the sizes divide");
        let arguments = (N as u64, black_box(&a), black_box(&b), black_box(&mut c));
        let _ = Launch::new(queue, range).threads(1).run(matmul, arguments).expect("launches");
    };
    let theirs = || {
        let (a, b, c) = (black_box(&some), black_box(&some), black_box(&mut plain));
        for columns in (0..N).step_by(32) {
            for (k, row) in panel.iter_mut().enumerate() {
                row.copy_from_slice(&b[k * N + columns..][..32]);
            }
            for rows in (0..N).step_by(4) {
                let mut sums = [[0.0_f32; 32]; 4];
                for (k, values) in panel.iter().enumerate() {
                    for (r, sums) in sums.iter_mut().enumerate() {
                        let factor = a[(rows + r) * N + k];
                        for (sum, value) in sums.iter_mut().zip(values) {
                            *sum += factor * value;
                        }
                    }
                }
                for (r, sums) in sums.iter().enumerate() {
                    c[(rows + r) * N + columns..][..32].copy_from_slice(sums);
                }
            }
        }
    };
    row("matmul, one output an item, one source", N, microseconds(ours, theirs))
}

/// Little work, so that the launch dominates.
#[kernel(group = 4)]
fn reverse_few(a: &mut [f32]) {
    #[local]
    let mut lm: [f32; 4];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    a[i] += lm[3 - l];
}

/// The cost of a launch without work, beside 50 ns; and of its proof, beside 5.
fn launches(queue: &Queue<HostHeap>) -> Vec<Row> {
    const CALLS: u32 = 1000;
    let nanoseconds = |mut work: Box<dyn FnMut() + '_>| {
        let mut samples: Vec<f64> = (0..101)
            .map(|_| {
                let start = std::time::Instant::now();
                (0..CALLS).for_each(|_| work());
                start.elapsed().as_secs_f64() * 1e9 / f64::from(CALLS)
            })
            .collect();
        crate::row::median(&mut samples)
    };
    let (x, mut y) = (usm(queue, &[1.0_f32]), usm(queue, &[1.0_f32]));
    let one = Range::new([1]).expect("fits");
    let plain = nanoseconds(Box::new(|| {
        let _ = Launch::with_range(queue, one)
            .threads(1)
            .run(saxpy, (1e-6, black_box(&x), black_box(&mut y)))
            .expect("launches");
    }));
    let mut a = usm(queue, &[0.0_f32; 4]);
    let few = grid(4, 4);
    let local = nanoseconds(Box::new(|| {
        let _ = Launch::new(queue, few).threads(1).run(reverse_few, (black_box(&mut a),)).expect("launches");
    }));
    let tree = grid(1 << 16, 256);
    let sums = nanoseconds(Box::new(|| {
        let proof = reduce.proof(black_box(&tree), black_box(&[1 << 16, 1 << 8]), &((), ()));
        assert_eq!(black_box(proof), Proof::PROVEN);
    }));
    let square = NdRange::new([256, 256], [16, 16]).expect("the sizes divide");
    let points = nanoseconds(Box::new(|| {
        let lengths = [1, 1, 1 << 16, 1 << 16];
        let proof = stencil.proof(black_box(&square), black_box(&lengths), black_box(&(256, 256, (), ())));
        assert_eq!(black_box(proof), Proof::PROVEN);
    }));
    let products = nanoseconds(Box::new(|| {
        let lengths = [1, 1 << 16, 1 << 16, 1 << 16];
        let proof = matmul.proof(black_box(&square), black_box(&lengths), black_box(&(256, (), (), ())));
        assert_eq!(black_box(proof), Proof::PROVEN);
    }));
    vec![
        Row::new("launch", "limit", "ns", plain, 50.0),
        Row::new("launch with local memory, 4 items", "limit", "ns", local, 50.0),
        Row::new("proof alone, reduce", "limit", "ns", sums, 5.0),
        Row::new("proof alone, stencil", "limit", "ns", points, 5.0),
        Row::new("proof alone, matmul", "limit", "ns", products, 5.0),
    ]
}
