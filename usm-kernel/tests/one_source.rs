//! Kernels from one source: the attribute's output on the host.

#![cfg(all(feature = "macros", feature = "alloc"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{Bounds, InOrder, Kernel, LaunchError, Proof, RangeError, ReverseOrder, ShuffledOrder};

#[path = "common/kernels.rs"]
mod kernels;

use kernels::{histogram, matmul, reduce, reverse, saxpy, scan};

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

/// Runs in three orders; `check` receives the state after each.
fn in_every_order<T: bytemuck::Pod>(
    queue: &Queue<HostHeap>,
    start: &[T],
    mut run: impl FnMut(usize, &mut UsmVec<T, Host, HostHeap>),
    check: impl Fn(&[T]),
) {
    for order in 0..3 {
        let mut a = UsmVec::from_slice(queue, start).unwrap();
        run(order, &mut a);
        check(&a.read().unwrap());
    }
}

macro_rules! launch {
    ($order:expr, $launch:expr, $kernel:expr, $arguments:expr) => {
        match $order {
            0 => $launch.order(InOrder).run($kernel, $arguments),
            1 => $launch.order(ReverseOrder).run($kernel, $arguments),
            _ => $launch.order(ShuffledOrder(7)).run($kernel, $arguments),
        }
    };
}

#[test]
fn reverse_by_groups() {
    let start: Vec<f32> = (0..40_u8).map(f32::from).collect();
    let queue = queue();
    in_every_order(
        &queue,
        &start,
        |order, a| {
            let range = NdRange::new([40], [10]).unwrap();
            let _ = launch!(order, Launch::new(&queue, range), reverse, (a,)).unwrap();
        },
        |found| {
            for (i, value) in found.iter().enumerate() {
                assert_eq!(*value, (2 * (i / 10 * 10) + 9) as f32);
            }
        },
    );
}

#[test]
fn saxpy_over_items_and_groups() {
    let queue = queue();
    let x = UsmVec::<f32, Host, _>::from_slice(&queue, &[3.0; 100]).unwrap();
    in_every_order(
        &queue,
        &[1.0_f32; 100],
        |order, y| {
            let _ =
                launch!(order, Launch::with_range(&queue, Range::new([120]).unwrap()), saxpy, (2.0, &x, y))
                    .unwrap();
        },
        |found| assert_eq!(found, [7.0; 100]),
    );
}

#[test]
fn reduce_to_one_sum_a_group() {
    let queue = queue();
    let values: Vec<f32> = (0..1000_u16).map(|i| f32::from(i % 7)).collect();
    let a = UsmVec::<f32, Host, _>::from_slice(&queue, &values).unwrap();
    in_every_order(
        &queue,
        &[0.0_f32; 3],
        |order, sums| {
            let range = NdRange::new([192], [64]).unwrap();
            let _ = launch!(order, Launch::new(&queue, range), reduce, (&a, sums)).unwrap();
        },
        |found| assert_eq!(found.iter().sum::<f32>(), values.iter().sum::<f32>()),
    );
}

#[test]
fn histogram_by_atomics() {
    let queue = queue();
    let values: Vec<u8> = (0..5000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let mut plain = [0_u32; 256];
    values.iter().for_each(|value| plain[usize::from(*value)] += 1);
    let a = UsmVec::<u8, Host, _>::from_slice(&queue, &values).unwrap();
    in_every_order(
        &queue,
        &[0_u32; 256],
        |order, counts| {
            let range = NdRange::new([512], [256]).unwrap();
            let _ = launch!(order, Launch::new(&queue, range), histogram, (&a, counts)).unwrap();
        },
        |found| assert_eq!(found, plain),
    );
}

#[test]
fn matmul_in_tiles() {
    let queue = queue();
    let n = 37_usize;
    let left: Vec<f32> = (0..n * n).map(|i| (i % 5) as f32).collect();
    let right: Vec<f32> = (0..n * n).map(|i| (i % 3) as f32 - 1.0).collect();
    let (a, b) = (
        UsmVec::<f32, Host, _>::from_slice(&queue, &left).unwrap(),
        UsmVec::<f32, Host, _>::from_slice(&queue, &right).unwrap(),
    );
    in_every_order(
        &queue,
        &vec![0.0_f32; n * n],
        |order, c| {
            let range = NdRange::covering([n as u64, n as u64], [16, 16]).unwrap();
            let _ = launch!(order, Launch::new(&queue, range), matmul, (n as u64, &a, &b, c)).unwrap();
        },
        |found| {
            for row in 0..n {
                for column in 0..n {
                    let sum: f32 = (0..n).map(|k| left[row * n + k] * right[k * n + column]).sum();
                    assert_eq!(found[row * n + column], sum);
                }
            }
        },
    );
}

#[test]
fn scan_in_groups() {
    let queue = queue();
    let values: Vec<u32> = (0..256).map(|i| i % 11).collect();
    let a = UsmVec::<u32, Host, _>::from_slice(&queue, &values).unwrap();
    in_every_order(
        &queue,
        &[0_u32; 256],
        |order, out| {
            let range = NdRange::new([256], [128]).unwrap();
            let _ = launch!(order, Launch::new(&queue, range), scan, (&a, out)).unwrap();
        },
        |found| {
            for (i, value) in found.iter().enumerate() {
                assert_eq!(*value, values[i / 128 * 128..=i].iter().sum::<u32>());
            }
        },
    );
}

#[test]
fn a_launch_reports_what_it_proved() {
    let range = NdRange::new([40], [10]).unwrap();
    assert_eq!(reverse.proof(&range, &[40], &((),)), Proof::PROVEN);
    let Bounds::Checked { index, why } = reverse.proof(&range, &[39], &((),)).bounds else {
        panic!("39 elements are too few")
    };
    assert!(index.ends_with("kernels.rs:10:15"), "{index}");
    assert_eq!(why, "global_size(0) <= a.len()");
    assert_eq!(reduce.proof(&NdRange::new([192], [64]).unwrap(), &[1000, 3], &((), ())), Proof::PROVEN);
    assert_eq!(scan.proof(&NdRange::new([256], [128]).unwrap(), &[256, 256], &((), ())), Proof::PROVEN);
    let range = NdRange::new([48, 48], [16, 16]).unwrap();
    assert_eq!(matmul.proof(&range, &[1, 37 * 37, 37 * 37, 37 * 37], &(37, (), (), ())), Proof::PROVEN);
    assert!(matches!(
        matmul.proof(&range, &[1, 37 * 37, 37 * 37 - 1, 37 * 37], &(37, (), (), ())).bounds,
        Bounds::Checked { .. }
    ));
}

#[test]
fn an_index_outside_is_a_panic_with_a_place() {
    let queue = queue();
    let mut a = UsmVec::<f32, Host, _>::from_slice(&queue, &[0.0; 39]).unwrap();
    let range = NdRange::new([40], [10]).unwrap();
    let run = core::panic::AssertUnwindSafe(|| Launch::new(&queue, range).run(reverse, (&mut a,)).map(drop));
    let panic = std::panic::catch_unwind(run).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("kernels.rs:10:15: index 39 of `a`, which has 39 elements"), "{text}");
}

/// The width is arbitrary: without the condition two items write one element.
#[kernel]
fn rows(width: u64, a: &mut [u32]) {
    let (y, x) = (global_id(0), global_id(1));
    a[y * width + x] += 1;
}

#[test]
fn a_race_of_this_range_is_refused_with_both_places() {
    let queue = queue();
    let mut a = UsmVec::<u32, Host, _>::zeroed(&queue, 64).unwrap();
    let range = NdRange::new([8, 8], [1, 8]).unwrap();
    let _ = Launch::new(&queue, range).run(rows, (8, &mut a)).unwrap();
    assert_eq!(a.read().unwrap()[..], [1; 64]);
    let refused = Launch::new(&queue, range).run(rows, (7, &mut a)).unwrap_err();
    assert!(matches!(refused, LaunchError::ShownRace { kernel: "rows", .. }), "{refused}");
    assert_eq!(a.read().unwrap()[..], [1; 64], "nothing has run");
}

/// It states a group that nothing in it needs.
#[kernel(group = 4)]
fn doubled(a: &mut [f32]) {
    a[global_id(0)] *= 2.0;
}

#[test]
fn a_stated_group_that_nothing_needs_changes_nothing() {
    let queue = queue();
    in_every_order(
        &queue,
        &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0_f32],
        |order, a| {
            let range = NdRange::new([8], [4]).unwrap();
            let _ = launch!(order, Launch::new(&queue, range), doubled, (a,)).unwrap();
        },
        |found| assert_eq!(found, [2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0]),
    );
}

/// The local size of each item.
#[kernel]
fn local_sizes(a: &mut [u64]) {
    let i = global_id(0);
    a[i] = local_size(0) * 1000 + groups(0);
}

#[test]
fn a_launch_without_a_local_size_takes_the_kernels() {
    let queue = queue();
    let over = |items| Launch::with_range(&queue, Range::new([items]).unwrap());
    // The declared group.
    let values: Vec<f32> = (0..20_u8).map(f32::from).collect();
    let mut a = UsmVec::<f32, Host, _>::from_slice(&queue, &values).unwrap();
    assert_eq!(over(20).proof(reverse, (&mut a,)), Ok(Proof::PROVEN));
    let _ = over(20).run(reverse, (&mut a,)).unwrap();
    assert!(a.read().unwrap().iter().enumerate().all(|(i, value)| *value == [9.0, 29.0][i / 10]));
    let refused = over(15).run(reverse, (&mut a,)).unwrap_err();
    let error = RangeError::NotDivisible { dimension: 0, global: 15, local: 10 };
    assert_eq!(refused, LaunchError::Range(error));
    assert_eq!(over(15).proof(reverse, (&mut a,)), Err(LaunchError::Range(error)));
    let _ = over(0).run(reverse, (&mut a,)).unwrap();
    // One group, for a kernel that reads ids of groups.
    let mut b = UsmVec::<u64, Host, _>::zeroed(&queue, 7).unwrap();
    let _ = over(7).run(local_sizes, (&mut b,)).unwrap();
    assert_eq!(b.read().unwrap()[..], [7001; 7]);
    let mut b = UsmVec::<u64, Host, _>::zeroed(&queue, 2000).unwrap();
    let refused = over(2000).run(local_sizes, (&mut b,)).unwrap_err();
    assert_eq!(refused, LaunchError::GroupTooLarge { size: 2000, limit: 1024 });
}

/// Groups inside the range, and groups that its edges cut on all sides.
#[kernel(group = [4, 8])]
fn framed(h: u64, w: u64, a: &[u32], out: &mut [u32]) {
    #[local]
    let mut tile: [u32; 32];
    #[local]
    let mut count: [u32; 32];
    let (row, column) = (global_id(0), global_id(1));
    let at = local_id(0) * 8 + local_id(1);
    for t in 0..3_u64 {
        tile[at] = if row > 1 && row < h && column + t < w { a[row * w + (column + t)] } else { 7 };
        count[at] = 1;
        if row < h && column < w {
            count[at] += 1;
        }
        barrier(LOCAL);
        if row < h && column > 2 && column < w {
            out[row * w + column] += tile[31 - at] * 10 + count[31 - at];
        }
        barrier(LOCAL);
    }
}

#[test]
fn groups_inside_and_at_the_edges() {
    let (h, w) = (14_usize, 29_usize);
    let values: Vec<u32> = (0..(h * w) as u32).map(|i| i % 13).collect();
    let queue = queue();
    let a = UsmVec::<u32, Host, _>::from_slice(&queue, &values).unwrap();
    let mut expected = vec![0_u32; h * w];
    for (i, sum) in expected.iter_mut().enumerate() {
        let (row, column) = (i / w, i % w);
        // The item at the mirrored place of the group.
        let (other_row, other) = (row / 4 * 4 + 3 - row % 4, column / 8 * 8 + 7 - column % 8);
        for t in 0..3 {
            let inside = other_row > 1 && other_row < h && other + t < w;
            let tile = if inside { values[other_row * w + other + t] } else { 7 };
            let count = if other_row < h && other < w { 2 } else { 1 };
            *sum += if column > 2 { tile * 10 + count } else { 0 };
        }
    }
    in_every_order(
        &queue,
        &vec![0_u32; h * w],
        |order, out| {
            let range = NdRange::covering([h as u64, w as u64], [4, 8]).unwrap();
            let arguments = (h as u64, w as u64, &a, out);
            let _ = launch!(order, Launch::new(&queue, range), framed, arguments).unwrap();
        },
        |found| assert_eq!(found, expected),
    );
}

/// A declared group that the kernel does not need is no limit of its loops.
#[kernel(group = [16, 16])]
fn fill_inside(width: u64, height: u64, out: &mut [u32]) {
    let (y, x) = (global_id(0), global_id(1));
    if y < height && x < width {
        out[y * width + x] = 1;
    }
}

#[test]
fn groups_that_no_kernel_needs_are_whole() {
    let queue = queue();
    in_every_order(
        &queue,
        &[0_u32; 64 * 48],
        |order, out| {
            let range = NdRange::new([64, 48], [16, 16]).unwrap();
            let _ = launch!(order, Launch::new(&queue, range), fill_inside, (48, 64, out)).unwrap();
        },
        |found| assert_eq!(found.iter().sum::<u32>(), 64 * 48),
    );
}
