//! Every sample kernel against its plain loop, over random sizes, groups and orders.

#![cfg(feature = "alloc")]

use proptest::prelude::*;
use usm_core::backend::host::HostHeap;
use usm_core::{Device, Host, Queue, QueueOrder, UsmVec};
use usm_kernel::host::phased;
use usm_kernel::sample::{
    Histogram, Matmul, Reduce, Saxpy, ScanCarry, ScanParts, histogram_plain, matmul_plain, reduce,
    saxpy_plain, scan, scan_plain,
};
use usm_kernel::{InOrder, Kernel, Launch, NdRange, Order, Range, Reversed, Shuffled, Views};

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

/// Runs a kernel over plain slices in every order, each time on what `fresh` makes.
fn in_every_order<const D: usize, K: Kernel<D>, S>(
    kernel: &K,
    range: &NdRange<D>,
    seed: u64,
    mut fresh: impl FnMut() -> S,
    views: impl for<'v> Fn(&'v mut S) -> Views<'v, K::Arguments>,
    mut check: impl FnMut(S),
) {
    fn once<const D: usize, K: Kernel<D>, S, O: Order>(
        kernel: &K,
        range: &NdRange<D>,
        state: &mut S,
        views: &impl for<'v> Fn(&'v mut S) -> Views<'v, K::Arguments>,
        order: O,
    ) {
        // What lies in the region before must not matter.
        let mut region = vec![0x5A; 1 << 18];
        phased::run(kernel, range, views(state), &mut region, order).unwrap();
    }
    let mut state = fresh();
    once(kernel, range, &mut state, &views, InOrder);
    check(state);
    let mut state = fresh();
    once(kernel, range, &mut state, &views, Reversed);
    check(state);
    let mut state = fresh();
    once(kernel, range, &mut state, &views, Shuffled(seed));
    check(state);
}

fn line(groups: usize, group: usize) -> NdRange<1> {
    NdRange::new([(groups * group) as u64], [group as u64]).unwrap()
}

fn floats(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

proptest! {
    #[test]
    fn reduce_sums_its_parts(len in 0_usize..3_000, group in 1_usize..70, per_item in 1_usize..40, seed: u64) {
        let kernel = Reduce::new(per_item);
        let groups = kernel.groups(len, group);
        let a = floats(len, seed);
        let exact: f64 = a.iter().map(|value| f64::from(*value)).sum();
        let size: f64 = a.iter().map(|value| f64::from(value.abs())).sum();
        in_every_order(&kernel, &line(groups, group), seed, || (a.clone(), vec![f32::NAN; groups]),
            |(a, sums)| (a, sums),
            |(_, sums)| {
                let found: f64 = sums.iter().map(|sum| f64::from(*sum)).sum();
                // At most some 40 additions lie on the way of an element, each off by half a unit
                // in the last place.
                assert!((found - exact).abs() <= 100.0 * f64::from(f32::EPSILON) * size, "{found} {exact}");
            });
    }

    #[test]
    fn reduce_of_the_compiled_sizes(blocks in 0_usize..3, size in 0_u32..5, extra in 0_usize..5_000, seed: u64) {
        let group = 64 << size;
        let len = blocks * 16 * group + extra;
        let a: Vec<f32> = (0..len).map(|i| (i % 7) as f32).collect();
        let exact: f32 = a.iter().sum();
        let kernel = Reduce::new(40);
        let groups = kernel.groups(len, group);
        in_every_order(&kernel, &line(groups, group), seed, || (a.clone(), vec![f32::NAN; groups]),
            |(a, sums)| (a, sums),
            // Small integers: every order of additions is exact.
            |(_, sums)| assert_eq!(sums.iter().sum::<f32>(), exact));
    }

    #[test]
    fn histogram_counts(values: Vec<u8>, group in 1_usize..300, per_item in 1_usize..40, seed: u64) {
        let kernel = Histogram::new(per_item);
        let mut plain = [7_u32; Histogram::BINS];
        histogram_plain(&values, &mut plain);
        in_every_order(&kernel, &line(kernel.groups(values.len(), group), group), seed,
            || (values.clone(), vec![7_u32; Histogram::BINS]),
            |(values, counts)| (values, counts),
            |(_, counts)| assert_eq!(counts, plain));
    }

    #[test]
    fn saxpy_is_the_plain_loop(len in 0_usize..500, group in 1_usize..70, alpha in -2.0_f32..2.0, seed: u64) {
        let len = len / group * group;
        let (x, y) = (floats(len, seed), floats(len, !seed));
        let mut plain = y.clone();
        saxpy_plain(alpha, &x, &mut plain);
        in_every_order(&Saxpy, &line(len / group, group), seed, || (x.clone(), y.clone()),
            |(x, y)| (alpha, x, y),
            |(_, y)| assert_eq!(y, plain));
    }

    #[test]
    fn matmul_is_the_plain_loop(
        m in 0_usize..40, k in 0_usize..40, n in 0_usize..40, group in 1_u64..20, seed: u64,
    ) {
        let kernel = Matmul::new(m, k, n);
        let (a, b) = (floats(m * k, seed), floats(k * n, !seed));
        let mut plain = vec![0.0; m * n];
        matmul_plain(&kernel, &a, &b, &mut plain);
        in_every_order(&kernel, &kernel.range(group).unwrap(), seed,
            || (a.clone(), b.clone(), vec![f32::NAN; m * n]),
            |(a, b, c)| (a, b, c),
            // The same additions in the same order.
            |(_, _, c)| assert_eq!(c, plain));
    }

    #[test]
    fn scan_is_the_plain_loop(input: Vec<u32>, group in 1_usize..20, seed: u64) {
        let mut plain = vec![0; input.len()];
        scan_plain(&input, &mut plain);
        let parts = ScanParts::groups(input.len(), group);
        let range = line(parts, group);
        in_every_order(&ScanParts, &range, seed,
            || (input.clone(), vec![0; input.len()], vec![0; parts]),
            |(input, output, sums)| (input, output, sums),
            |(_, output, sums)| {
                let mut carries = vec![0; parts];
                scan_plain(&sums, &mut carries);
                in_every_order(&ScanCarry, &range, seed, || (carries.clone(), output.clone()),
                    |(carries, output)| (carries, output),
                    |(_, output)| assert_eq!(output, plain));
            });
    }

    #[test]
    fn launches_of_many_rounds(len in 0_usize..20_000, group in 1_u64..5) {
        let queue = queue();
        let input: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let mut plain = vec![0; len];
        scan_plain(&input, &mut plain);
        let from = UsmVec::<u32, Host, _>::from_slice(&queue, &input).unwrap();
        let mut to = UsmVec::<u32, Device, _>::zeroed(&queue, len).unwrap();
        let _ = scan(&queue, &from, &mut to, group).unwrap();
        prop_assert_eq!(to.to_vec(&queue).unwrap(), plain);

        let ones = UsmVec::<f32, Device, _>::from_slice(&queue, &vec![1.0; len]).unwrap();
        prop_assert_eq!(reduce(&queue, &ones, group).unwrap(), len as f32);
    }
}

#[test]
fn a_plain_range_runs_a_kernel_without_groups() {
    let queue = queue();
    let x = UsmVec::<f32, Device, _>::from_slice(&queue, &[1.0; 100]).unwrap();
    let mut y = UsmVec::<f32, Host, _>::from_slice(&queue, &[2.0; 100]).unwrap();
    let _ = Launch::with_range(&queue, Range::new([60]).unwrap()).run(Saxpy, (3.0, &x, &mut y)).unwrap();
    let y = y.read().unwrap();
    assert_eq!((y[..60].to_vec(), y[60..].to_vec()), (vec![5.0; 60], vec![2.0; 40]));
}

#[test]
fn an_argument_that_is_too_short_is_named() {
    let queue = queue();
    let x = UsmVec::<f32, Host, _>::zeroed(&queue, 10).unwrap();
    let mut y = UsmVec::<f32, Host, _>::zeroed(&queue, 20).unwrap();
    let launch = Launch::with_range(&queue, Range::new([20]).unwrap());
    let refused = launch.run(Saxpy, (1.0, &x, &mut y)).unwrap_err();
    assert_eq!(refused.to_string(), "kernel saxpy: argument 1 has 10 elements, the kernel reaches 20");

    let kernel = Matmul::new(3, 4, 5);
    let square = NdRange::new([4, 4], [2, 2]).unwrap();
    let a = UsmVec::<f32, Host, _>::zeroed(&queue, 20).unwrap();
    let refused = Launch::new(&queue, square).run(kernel, (&a, &a, &mut y)).unwrap_err();
    assert_eq!(refused.to_string(), "local size 2 in dimension 1, the kernel is written for 1");
}
