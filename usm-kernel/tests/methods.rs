//! Methods of numbers in kernels that are compiled, beside std's.

#![cfg(all(feature = "macros", feature = "alloc"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;

#[kernel]
fn methods(x: &[i32], y: &[u32], a: &mut [i32], b: &mut [u32]) {
    let i = global_id(0);
    a[i] = x[i].clamp(-5, 100).rem_euclid(7) + x[i].signum();
    b[i] = (y[i].rotate_left(i as u32) ^ y[i].div_ceil(3)) + y[i].leading_zeros() * y[i].count_ones()
        - x[i].abs_diff(3);
}

#[test]
fn compiled_methods_are_those_of_std() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let x: Vec<i32> = (0..64).map(|i: i32| (i - 32).wrapping_mul(i * 12_345_677)).collect();
    let y: Vec<u32> = (0..64).map(|i: u32| i.wrapping_mul(2_654_435_769)).collect();
    let from = (
        UsmVec::<i32, Host, _>::from_slice(&queue, &x).unwrap(),
        UsmVec::<u32, Host, _>::from_slice(&queue, &y).unwrap(),
    );
    let mut a = UsmVec::<i32, Host, _>::zeroed(&queue, 64).unwrap();
    let mut b = UsmVec::<u32, Host, _>::zeroed(&queue, 64).unwrap();
    let launch = Launch::with_range(&queue, Range::new([64]).unwrap());
    launch.run(methods, (&from.0, &from.1, &mut a, &mut b)).unwrap().wait().unwrap();
    for (i, (x, y)) in x.into_iter().zip(y).enumerate() {
        let wanted = x.clamp(-5, 100).rem_euclid(7) + x.signum();
        assert_eq!(a.read().unwrap()[i], wanted, "{x}");
        let bits = y.rotate_left(i as u32) ^ y.div_ceil(3);
        let ones = y.leading_zeros() * y.count_ones();
        assert_eq!(b.read().unwrap()[i], bits.wrapping_add(ones).wrapping_sub(x.abs_diff(3)), "{x} {y}");
    }
}
