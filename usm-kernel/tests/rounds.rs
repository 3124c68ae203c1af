//! Loops of a group whose rounds are known when the kernel is compiled.

#![cfg(all(feature = "macros", feature = "alloc"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{InOrder, Order, ReverseOrder, ShuffledOrder};

const N: usize = 48;

/// Runs a kernel with groups of 16 in three orders.
macro_rules! agree {
    ($kernel:expr, $given:expr, $expected:expr) => {{
        fn run(order: impl Order) {
            let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
            let a = UsmVec::<u32, Host, _>::from_slice(&queue, &numbers()).unwrap();
            let mut out = UsmVec::<u32, Host, _>::from_slice(&queue, &[0; N]).unwrap();
            let launch = Launch::new(&queue, NdRange::new([N as u64], [16]).unwrap());
            let _ = launch.order(order).run($kernel, ($given, &a, &mut out)).unwrap();
            let expected: Vec<u32> = numbers().chunks(16).flat_map($expected).collect();
            assert_eq!(out.read().unwrap().to_vec(), expected);
        }
        run(InOrder);
        run(ReverseOrder);
        run(ShuffledOrder(7));
    }};
}

fn numbers() -> Vec<u32> {
    (0..N as u32).map(|i| i * i % 31 + 1).collect()
}

/// The value of one round is read behind the loop, and the first items do not set it in later
/// rounds.
#[kernel(group = 16)]
fn last(n: u32, a: &[u32], out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 16];
    let (l, i) = (local_id(0), global_id(0));
    let mut before = n;
    lm[l] = a[i];
    barrier(LOCAL);
    let mut d = 1_u64;
    while d < 16 {
        if l >= d {
            before = lm[l - d];
        }
        barrier(LOCAL);
        lm[l] += before;
        barrier(LOCAL);
        d *= 2;
    }
    out[i] = lm[l] * 1000 + before;
}

#[test]
fn a_value_that_a_round_keeps_from_the_one_before() {
    agree!(last, 5, |a: &[u32]| {
        let (mut lm, mut before) = (a.to_vec(), [5; 16]);
        for d in [1, 2, 4, 8] {
            (d..16).for_each(|l| before[l] = lm[l - d]);
            (0..16).for_each(|l| lm[l] += before[l]);
        }
        lm.into_iter().zip(before).map(|(sum, before)| sum * 1000 + before).collect::<Vec<_>>()
    });
}

/// The number wraps, and a number of the group and a size are read in each round.
#[kernel(group = 16)]
fn wraps(size: usize, a: &[u32], out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 16];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    let mut factor = 3_u32;
    if size > 4 {
        factor = 7;
    }
    barrier(LOCAL);
    lm[l] *= factor;
    barrier(LOCAL);
    let mut d = 3_u8;
    while d != 58 {
        let other = lm[(l + d as u64 + size) % 16];
        barrier(LOCAL);
        lm[l] = lm[l] * factor + other;
        barrier(LOCAL);
        d = d * 11 + 1;
    }
    out[i] = lm[l] + d as u32;
}

#[test]
fn numbers_of_rounds_wrap() {
    agree!(wraps, 5, |a: &[u32]| {
        let mut lm: Vec<u32> = a.iter().map(|value| value.wrapping_mul(7)).collect();
        let mut d = 3_u8;
        while d != 58 {
            let others: Vec<u32> = (0..16).map(|l| lm[(l + usize::from(d) + 5) % 16]).collect();
            for (value, other) in lm.iter_mut().zip(others) {
                *value = value.wrapping_mul(7).wrapping_add(other);
            }
            d = d.wrapping_mul(11).wrapping_add(1);
        }
        lm.into_iter().map(|value| value.wrapping_add(u32::from(d))).collect::<Vec<_>>()
    });
}

/// From 5 down to -3 in rounds, none, and more rounds than are written one by one.
#[kernel(group = 16)]
fn counts(n: u32, a: &[u32], out: &mut [u32]) {
    #[local]
    let mut lm: [u32; 16];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i] + n;
    barrier(LOCAL);
    let mut d = 5_i32;
    while d > -3 {
        let other = lm[15 - l];
        barrier(LOCAL);
        lm[l] = other * 2 + (d + 3) as u32;
        barrier(LOCAL);
        d -= 2;
    }
    while d > 0 {
        lm[l] += 1;
        barrier(LOCAL);
        d -= 1;
    }
    let mut many = 0_u32;
    while many < 40 {
        let other = lm[(l + 1) % 16];
        barrier(LOCAL);
        lm[l] = other + many;
        barrier(LOCAL);
        many += 1;
    }
    out[i] = lm[l] + many;
}

#[test]
fn rounds_downwards_none_and_many() {
    agree!(counts, 2, |a: &[u32]| {
        let mut lm: Vec<u32> = a.iter().map(|value| value + 2).collect();
        for d in [5_u32, 3, 1] {
            lm = lm.iter().rev().map(|other| other * 2 + d + 3).collect();
        }
        // -1
        lm = lm.iter().rev().map(|other| other * 2 + 2).collect();
        for many in 0..40 {
            lm.rotate_left(1);
            lm.iter_mut().for_each(|value| *value += many);
        }
        lm.into_iter().map(|value| value + 40).collect::<Vec<_>>()
    });
}
