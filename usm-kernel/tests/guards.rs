//! Guards of items on the host, which become bounds of loops in code that the attribute writes,
//! beside plain Rust.

#![cfg(all(feature = "macros", feature = "alloc"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel::prelude::*;

const ROWS: u64 = 6;
const COLUMNS: u64 = 10;

/// Bounds at the ends of the range, inside, outside of it, and at the end of their type.
const BOUNDS: [u64; 7] = [0, 1, 5, 9, 10, 11, u64::MAX];

#[kernel]
fn negated(low: u64, high: u64, y: &mut [u32]) {
    let (i, j) = (global_id(0), global_id(1));
    if !(j < low || high < j || i == high) {
        y[i * global_size(1) + j] = 1;
    }
}

#[kernel]
fn nested(low: u64, high: u64, y: &mut [u32]) {
    let (i, j) = (global_id(0), global_id(1));
    if i != low {
        if high > j {
            if j >= low && j % 3 != 0 {
                y[i * global_size(1) + j] = 1;
            }
        }
    }
}

#[kernel]
fn left(low: u64, high: u64, y: &mut [u32]) {
    let (i, j) = (global_id(0), global_id(1));
    if i >= high || j <= low {
        return;
    } else {
        y[i * global_size(1) + j] = 1;
    }
}

#[kernel]
fn left_by_sums(low: u64, high: u64, y: &mut [u32]) {
    let (i, j) = (global_id(0), global_id(1));
    if j.wrapping_add(low) >= high || high <= i.wrapping_add(low) {
        return;
    }
    y[i * global_size(1) + j] = 1;
}

/// Runs a kernel for all pairs of bounds.
macro_rules! agree {
    ($kernel:expr, $holds:expr) => {
        let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
        let holds: fn([u64; 2], u64, u64) -> bool = $holds;
        for low in BOUNDS {
            for high in BOUNDS {
                let len = (ROWS * COLUMNS) as usize;
                let mut y = UsmVec::<u32, Host, _>::from_slice(&queue, &vec![0; len]).unwrap();
                let launch = Launch::new(&queue, NdRange::new([ROWS, COLUMNS], [3, 5]).unwrap());
                let _ = launch.run($kernel, (low, high, &mut y)).unwrap();
                let items = (0..ROWS).flat_map(|i| (0..COLUMNS).map(move |j| [i, j]));
                let expected: Vec<u32> = items.map(|id| u32::from(holds(id, low, high))).collect();
                assert_eq!(y.read().unwrap().to_vec(), expected, "{low} {high}");
            }
        }
    };
}

#[test]
fn guards_that_are_negated_hold() {
    agree!(negated, |[i, j], low, high| j >= low && j <= high && i != high);
}

#[test]
fn guards_in_guards_hold() {
    agree!(nested, |[i, j], low, high| i != low && j < high && j >= low && j % 3 != 0);
}

#[test]
fn guards_that_leave_hold() {
    agree!(left, |[i, j], low, high| i < high && j > low);
}

#[test]
fn guards_of_sums_that_wrap_hold() {
    agree!(left_by_sums, |[i, j], low, high| j.wrapping_add(low) < high && i.wrapping_add(low) < high);
}
