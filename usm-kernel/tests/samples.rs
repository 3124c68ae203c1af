//! Every sample kernel compared with its plain loop, over random sizes, groups and orders.

#![cfg(all(feature = "alloc", feature = "macros"))]

use core::sync::atomic::AtomicU32;

use proptest::prelude::*;
use usm_core::backend::host::HostHeap;
use usm_core::{Device, Host, Queue, QueueOrder, UsmVec};
use usm_kernel::host::phased;
use usm_kernel::sample::{
    BINS, add_carries, histogram, histogram_plain, matmul, matmul_plain, reduce, reverse, reverse_plain,
    running_sums, saxpy, saxpy_plain, scan, scan_plain, sum,
};
use usm_kernel::{
    Executable, InOrder, Kernel, Launch, LaunchError, NdRange, Order, Proof, Range, ReverseOrder,
    ShuffledOrder, Views,
};

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

/// Runs a kernel over plain slices in every order, each time on a result of `fresh`.
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
        // The region's old content must not matter.
        let mut region = vec![0x5A; 1 << 18];
        phased::run(kernel, range, views(state), &mut region, order).unwrap();
    }
    let mut state = fresh();
    once(kernel, range, &mut state, &views, InOrder);
    check(state);
    let mut state = fresh();
    once(kernel, range, &mut state, &views, ReverseOrder);
    check(state);
    let mut state = fresh();
    once(kernel, range, &mut state, &views, ShuffledOrder(seed));
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
    fn reverse_is_the_plain_loop(groups in 0_usize..20, group in 1_usize..70, seed: u64) {
        let a = floats(groups * group, seed);
        let mut plain = a.clone();
        reverse_plain(&mut plain, group);
        in_every_order(&reverse, &line(groups, group), seed, || a.clone(), |a| (a,), |a| assert_eq!(a, plain));
    }

    #[test]
    fn reduce_sums_what_its_groups_take(len in 0_usize..3_000, groups in 1_usize..9, group in 1_usize..70, seed: u64) {
        let a = floats(len, seed);
        let exact: f64 = a.iter().map(|value| f64::from(*value)).sum();
        let size: f64 = a.iter().map(|value| f64::from(value.abs())).sum();
        in_every_order(&reduce, &line(groups, group), seed, || (a.clone(), vec![f32::NAN; groups]),
            |(a, sums)| (a, sums),
            |(_, sums)| {
                let found: f64 = sums.iter().map(|sum| f64::from(*sum)).sum();
                // An element is the result of at most 3,000 additions, each off by half a unit in
                // the last place.
                assert!((found - exact).abs() <= 3_000.0 * f64::from(f32::EPSILON) * size, "{found} {exact}");
            });
    }

    #[test]
    fn histogram_counts(values: Vec<u8>, groups in 1_usize..5, group in 1_usize..300, seed: u64) {
        let mut plain = [7_u32; BINS];
        histogram_plain(&values, &mut plain);
        in_every_order(&histogram, &line(groups, group), seed,
            || (values.clone(), (0..BINS).map(|_| AtomicU32::new(7)).collect::<Vec<_>>()),
            |(values, counts)| (values, counts),
            |(_, counts)| assert!(counts.into_iter().map(AtomicU32::into_inner).eq(plain)));
    }

    #[test]
    fn saxpy_is_the_plain_loop(len in 0_usize..500, group in 1_usize..70, alpha in -2.0_f32..2.0, seed: u64) {
        let len = len / group * group;
        let (x, y) = (floats(len, seed), floats(len, !seed));
        let mut plain = y.clone();
        saxpy_plain(alpha, &x, &mut plain);
        in_every_order(&saxpy, &line(len / group, group), seed, || (x.clone(), y.clone()),
            |(x, y)| (alpha, x, y),
            |(_, y)| assert_eq!(y, plain));
    }

    #[test]
    fn matmul_is_the_plain_loop(m in 0_usize..40, k in 0_usize..40, n in 0_usize..40, seed: u64) {
        let (a, b) = (floats(m * k, seed), floats(k * n, !seed));
        let mut plain = vec![0.0; m * n];
        matmul_plain(k, n, &a, &b, &mut plain);
        let range = NdRange::covering([m as u64, n as u64], [16, 16]).unwrap();
        in_every_order(&matmul, &range, seed,
            || (a.clone(), b.clone(), vec![f32::NAN; m * n]),
            |(a, b, c)| (m as u64, k as u64, n as u64, a, b, c),
            // The same additions in the same order, and zeros after the last tile.
            |(_, _, c)| assert_eq!(c, plain));
    }

    #[test]
    fn scan_is_the_plain_loop(input: Vec<u32>, group in 1_usize..20, seed: u64) {
        let mut plain = vec![0; input.len()];
        scan_plain(&input, &mut plain);
        let parts = input.len().div_ceil(group);
        let range = line(parts, group);
        in_every_order(&scan, &range, seed,
            || (input.clone(), vec![0; input.len()], vec![0; parts]),
            |(input, output, sums)| (input, output, sums),
            |(_, output, sums)| {
                let mut carries = vec![0; parts];
                scan_plain(&sums, &mut carries);
                in_every_order(&add_carries, &range, seed, || (carries.clone(), output.clone()),
                    |(carries, output)| (carries, output),
                    |(_, output)| assert_eq!(output, plain));
            });
    }

    #[test]
    fn launches_of_many_rounds(len in 0_usize..20_000, group in 2_u64..5) {
        let queue = queue();
        let context = queue.context();
        let input: Vec<u32> = (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761)).collect();
        let mut plain = vec![0; len];
        scan_plain(&input, &mut plain);
        let from = UsmVec::<u32, Host, _>::from_slice(&queue, &input).unwrap();
        let mut to = UsmVec::<u32, Device, _>::zeroed(&queue, len).unwrap();
        let (ready, carry) = (Executable::build(context).unwrap(), Executable::build(context).unwrap());
        let _ = running_sums((&ready, &carry), &queue, &from, &mut to, group).unwrap();
        prop_assert_eq!(to.to_vec(&queue).unwrap(), plain);

        let ones = UsmVec::<f32, Device, _>::from_slice(&queue, &vec![1.0; len]).unwrap();
        prop_assert_eq!(sum(&Executable::build(context).unwrap(), &queue, &ones, group).unwrap(), len as f32);
    }
}

#[test]
fn every_sample_is_proven_for_its_usual_range() {
    let range = line(16, 256);
    let n = 16 * 256;
    assert_eq!(reverse.proof(&range, &[n], &((),)), Proof::PROVEN);
    assert_eq!(saxpy.proof(&range, &[1, n, n], &(0.5, (), ())), Proof::PROVEN);
    assert_eq!(reduce.proof(&range, &[10 * n, 16], &((), ())), Proof::PROVEN);
    assert_eq!(histogram.proof(&range, &[10 * n, BINS], &((), ())), Proof::PROVEN);
    assert_eq!(scan.proof(&range, &[n - 5, n - 5, 16], &((), (), ())), Proof::PROVEN);
    assert_eq!(add_carries.proof(&range, &[16, n - 5], &((), ())), Proof::PROVEN);
    let tiles = NdRange::covering([100, 70], [16, 16]).unwrap();
    let lengths = [1, 1, 1, 100 * 33, 33 * 70, 100 * 70];
    assert_eq!(matmul.proof(&tiles, &lengths, &(100, 33, 70, (), (), ())), Proof::PROVEN);
}

#[test]
fn a_plain_range_runs_a_kernel_without_groups() {
    let queue = queue();
    let x = UsmVec::<f32, Device, _>::from_slice(&queue, &[1.0; 100]).unwrap();
    let mut y = UsmVec::<f32, Host, _>::from_slice(&queue, &[2.0; 100]).unwrap();
    let _ = Launch::with_range(&queue, Range::new([60]).unwrap()).run(saxpy, (3.0, &x, &mut y)).unwrap();
    let y = y.read().unwrap();
    assert_eq!((y[..60].to_vec(), y[60..].to_vec()), (vec![5.0; 60], vec![2.0; 40]));
}

#[test]
fn running_sums_in_groups_of_one_item_are_refused() {
    let queue = queue();
    let context = queue.context();
    let input = UsmVec::<u32, Host, _>::zeroed(&queue, 3).unwrap();
    let mut output = UsmVec::<u32, Host, _>::zeroed(&queue, 3).unwrap();
    let (ready, carry) = (Executable::build(context).unwrap(), Executable::build(context).unwrap());
    let refused = running_sums((&ready, &carry), &queue, &input, &mut output, 1).unwrap_err();
    assert_eq!(refused, LaunchError::WrongGroup { dimension: 0, expected: 2, found: 1 });
}
