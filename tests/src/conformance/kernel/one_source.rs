//! Kernels from one source: the host's body and every generated code give the same results.

use usm_core::{Device, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{LaunchError, Programmable};

use super::{queue, range, ready_in_every_format, refused, shared};
use crate::Fixture;

#[kernel(group = 10)]
fn reverse(a: &mut [f32]) {
    #[local]
    let mut lm: [f32; 10];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    a[i] += lm[9 - l];
}

#[kernel]
fn saxpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    let i = global_id(0);
    if i < y.len() {
        y[i] += alpha * x[i];
    }
}

#[kernel(group = 64)]
fn reduce(a: &[f32], sums: &mut [f32]) {
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

#[kernel(group = 64)]
fn histogram(values: &[u8], counts: &[Atomic<u32>]) {
    #[local]
    let mut bins: [u32; 256];
    let l = local_id(0);
    for bin in (l..256).step_by(64) {
        bins[bin] = 0;
    }
    barrier(LOCAL);
    for i in (global_id(0)..values.len()).step_by(global_size(0)) {
        bins[values[i] as u64].fetch_add(1);
    }
    barrier(LOCAL);
    for bin in (l..256).step_by(64) {
        counts[bin].fetch_add(bins[bin]);
    }
}

#[kernel(group = [8, 8])]
fn matmul(rows: u64, inner: u64, columns: u64, a: &[f32], b: &[f32], c: &mut [f32]) {
    #[local]
    let mut left: [f32; 64];
    #[local]
    let mut right: [f32; 64];
    let (y, x) = (local_id(0), local_id(1));
    let (row, column) = (global_id(0), global_id(1));
    let mut sum = 0.0_f32;
    for t in (0..inner).step_by(8) {
        left[y * 8 + x] = if row < rows && t + x < inner { a[row * inner + (t + x)] } else { 0.0 };
        right[y * 8 + x] =
            if t + y < inner && column < columns { b[(t + y) * columns + column] } else { 0.0 };
        barrier(LOCAL);
        for k in 0..8_u64 {
            sum += left[y * 8 + k] * right[k * 8 + x];
        }
        barrier(LOCAL);
    }
    if row < rows && column < columns {
        c[row * columns + column] = sum;
    }
}

#[kernel(group = 64)]
fn scan(a: &[u32], out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 64];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    let mut d = 1_u64;
    while d < 64 {
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

/// Names that are keywords of OpenCL C or CUDA C, shadowing, and arithmetic in which the languages
/// differ.
#[kernel]
fn private(kernel: &[i32], half: &[i32], global: &mut [i32], float: &mut [u32]) {
    let int = global_id(0);
    if int >= global.len() {
        return;
    }
    let (x, y) = (kernel[int], half[int]);
    let mut double = x + y;
    double = double * 31 - (x / y);
    let double = double ^ (x % y) ^ (x << y) ^ (y >> 33);
    let x = (x as f32 * 1.0e8_f32) as i32;
    let switch = (y as i8 as i32) + min(double, x) + max(x, y);
    global[int] = if y != 0 && double / y > 3 || !(x == y) { switch } else { -double };
    float[int] = (y as f32 * -1.0_f32) as u32 + (double as u16 as u32) + ((y as f32 / 0.0_f32) as u32);
}

fn private_of(x: i32, y: i32) -> (i32, u32) {
    let quotient = x.checked_div(y).unwrap_or(x);
    let remainder = x.checked_rem(y).unwrap_or(0);
    let double = x.wrapping_add(y).wrapping_mul(31).wrapping_sub(quotient);
    let double = double ^ remainder ^ x.wrapping_shl(y as u32) ^ y.wrapping_shr(33);
    let x = (x as f32 * 1.0e8) as i32;
    let switch = i32::from(y as i8).wrapping_add(double.min(x)).wrapping_add(x.max(y));
    let first = if y != 0 && double.checked_div(y).unwrap_or(double) > 3 || x != y {
        switch
    } else {
        double.wrapping_neg()
    };
    let second =
        ((-(y as f32)) as u32).wrapping_add(u32::from(double as u16)).wrapping_add((y as f32 / 0.0) as u32);
    (first, second)
}

fn numbers(count: usize, step: usize) -> Vec<f32> {
    (0..count).map(|i| (i * step % 17) as f32 - 8.0).collect()
}

/// Local memory and a barrier; scalars; strided loops; a tree.
pub fn one_source_in_one_dimension<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    for ready in ready_in_every_format::<reverse, B, 1>(fixture.context) {
        let values = numbers(100, 5);
        let expected: Vec<f32> = (0..100).map(|i| values[i] + values[i / 10 * 10 + 9 - i % 10]).collect();
        let whole = Range::new([100]).expect("a range");
        // Without a local size, the launch takes the declared one.
        for launch in [Launch::new(&queue, range([100], [10])), Launch::with_range(&queue, whole)] {
            let mut a = shared(&queue, &values);
            let _ = launch.run_on(&ready, reverse, (&mut a,)).expect("a launch");
            assert_eq!(a.read().expect("a view")[..], expected);
        }
    }
    for ready in ready_in_every_format::<saxpy, B, 1>(fixture.context) {
        let (x, y) = (numbers(251, 5), numbers(251, 7));
        let (device_x, mut device_y) = (shared(&queue, &x), shared(&queue, &y));
        let whole = Range::new([251]).expect("a range");
        let arguments = (0.5, &device_x, &mut device_y);
        let _ = Launch::with_range(&queue, whole).run_on(&ready, saxpy, arguments).expect("a launch");
        let arguments = (2.0, &device_x, &mut device_y);
        let _ = Launch::new(&queue, range([256], [16])).run_on(&ready, saxpy, arguments).expect("a launch");
        let expected: Vec<f32> = x.iter().zip(&y).map(|(x, y)| y + 2.5 * x).collect();
        assert_eq!(device_y.read().expect("a view")[..], expected);
    }
    for ready in ready_in_every_format::<reduce, B, 1>(fixture.context) {
        let values = numbers(5_000, 5);
        let a = shared(&queue, &values);
        let mut sums = UsmVec::<f32, Device, B>::zeroed(&queue, 4).expect("an array");
        let _ = Launch::new(&queue, range([256], [64]))
            .run_on(&ready, reduce, (&a, &mut sums))
            .expect("a launch");
        let sums = sums.to_vec(&queue).expect("the result");
        assert_eq!(sums.iter().sum::<f32>(), values.iter().sum::<f32>());
    }
    for ready in ready_in_every_format::<scan, B, 1>(fixture.context) {
        let values: Vec<u32> = (0..256).map(|i| i % 1_000 + u32::MAX / 8).collect();
        let a = shared(&queue, &values);
        let mut out = UsmVec::<u32, Device, B>::zeroed(&queue, 256).expect("an array");
        let _ =
            Launch::new(&queue, range([256], [64])).run_on(&ready, scan, (&a, &mut out)).expect("a launch");
        for (i, found) in out.to_vec(&queue).expect("the result").into_iter().enumerate() {
            let sum = values[i / 64 * 64..=i].iter().fold(0_u32, |sum, value| sum.wrapping_add(*value));
            assert_eq!(found, sum, "{i}");
        }
    }
}

/// Atomic operations on local and global memory.
pub fn one_source_with_atomics<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    for ready in ready_in_every_format::<histogram, B, 1>(fixture.context) {
        let values: Vec<u8> = (0..5_000_u32).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 16) as u8).collect();
        let mut plain = [0_u32; 256];
        values.iter().for_each(|value| plain[usize::from(*value)] += 1);
        let (a, mut counts) = (shared(&queue, &values), shared(&queue, &[0_u32; 256]));
        let _ = Launch::new(&queue, range([256], [64]))
            .run_on(&ready, histogram, (&a, &mut counts))
            .expect("a launch");
        assert_eq!(counts.read().expect("a view")[..], plain);
    }
}

/// Two dimensions, two local arrays, a sum that outlives barriers; sizes that no group divides.
pub fn one_source_in_two_dimensions<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<matmul, B, 2>(fixture.context) {
        for [rows, inner, columns] in [[1, 1, 1], [16, 16, 16], [33, 17, 41], [5, 40, 3]] {
            let (a, b) = (numbers(rows * inner, 5), numbers(inner * columns, 7));
            let (device_a, device_b) = (shared(&queue, &a), shared(&queue, &b));
            let mut c = UsmVec::<f32, Device, B>::zeroed(&queue, rows * columns).expect("an array");
            let range = NdRange::covering([rows as u64, columns as u64], [8, 8]).expect("a range");
            let sizes = (rows as u64, inner as u64, columns as u64);
            let arguments = (sizes.0, sizes.1, sizes.2, &device_a, &device_b, &mut c);
            let _ = Launch::new(&queue, range).run_on(&ready, matmul, arguments).expect("a launch");
            for (place, found) in c.to_vec(&queue).expect("the result").into_iter().enumerate() {
                let (row, column) = (place / columns, place % columns);
                let sum: f32 = (0..inner).map(|k| a[row * inner + k] * b[k * columns + column]).sum();
                assert_eq!(found, sum, "{rows} x {inner} x {columns} at {row}, {column}");
            }
        }
    }
}

/// Integers agree bit for bit, whatever the device's language defines for overflow, division and
/// shifts.
pub fn one_source_has_one_arithmetic<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let some =
        [0, 1, -1, 2, 3, 7, -8, 31, 32, 33, 127, 128, 255, -129, 65_535, i32::MAX, i32::MIN, 123_456_789];
    let pairs: Vec<(i32, i32)> = some.iter().flat_map(|x| some.iter().map(|y| (*x, *y))).collect();
    for ready in ready_in_every_format::<private, B, 1>(fixture.context) {
        let (x, y): (Vec<i32>, Vec<i32>) = pairs.iter().copied().unzip();
        let (x, y) = (shared(&queue, &x), shared(&queue, &y));
        let mut first = UsmVec::<i32, Device, B>::zeroed(&queue, pairs.len()).expect("an array");
        let mut second = UsmVec::<u32, Device, B>::zeroed(&queue, pairs.len()).expect("an array");
        let range = NdRange::covering([pairs.len() as u64], [16]).expect("a range");
        let arguments = (&x, &y, &mut first, &mut second);
        let _ = Launch::new(&queue, range).run_on(&ready, private, arguments).expect("a launch");
        let found =
            first.to_vec(&queue).expect("results").into_iter().zip(second.to_vec(&queue).expect("results"));
        for ((x, y), found) in pairs.iter().zip(found) {
            assert_eq!(found, private_of(*x, *y), "{x} and {y}");
        }
    }
}

/// A kernel that may race is refused everywhere.
pub fn one_source_refuses_what_may_race<B: Programmable>(fixture: &Fixture<'_, B>) {
    #[kernel]
    fn rows(width: u64, a: &mut [u32]) {
        a[global_id(0) * width + global_id(1)] += 1;
    }

    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<rows, B, 2>(fixture.context) {
        let mut a = shared(&queue, &[0_u32; 64]);
        let range = range([8, 8], [1, 8]);
        let _ = Launch::new(&queue, range).run_on(&ready, rows, (8, &mut a)).expect("a launch");
        let race = refused(Launch::new(&queue, range).run_on(&ready, rows, (7, &mut a)));
        assert!(matches!(race, LaunchError::ShownRace { kernel: "rows", .. }), "{race}");
        assert_eq!(a.read().expect("a view")[..], [1; 64], "nothing has run");
    }
}
