//! Groups of a launch on several threads.

#![cfg(all(feature = "threads", feature = "macros"))]
#![allow(clippy::float_cmp)]

use core::time::Duration;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Instant;

use bytemuck::Pod;
use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{
    Concurrent, Group, InOrder, Kernel, LocalViews, Order, Proof, ReverseOrder, Values, Views, Write,
};

#[path = "common/kernels.rs"]
mod kernels;

use kernels::{histogram, matmul, reduce, reverse, saxpy, scan};

type Array<T> = UsmVec<T, Host, HostHeap>;

fn queue() -> Queue<HostHeap> {
    // More threads than processors find more interleavings. A test before this one may have made
    // the pool.
    let _ = rayon_core::ThreadPoolBuilder::new().num_threads(4).build_global();
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

fn floats(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i % 1013) as f32 / 16.0).collect()
}

/// Runs alone, on stated numbers of threads, and on as many as the launch takes.
fn on_threads<T: Pod + PartialEq + core::fmt::Debug>(
    start: &[T],
    run: impl Fn(&Queue<HostHeap>, Option<usize>, &mut Array<T>),
) {
    let queue = queue();
    let mut alone = Vec::new();
    for threads in [Some(1), Some(2), Some(3), Some(4), Some(1000), Some(0), None] {
        let mut array = Array::from_slice(&queue, start).unwrap();
        run(&queue, threads, &mut array);
        let found = array.to_vec(&queue).unwrap();
        if threads == Some(1) {
            assert!(found != start, "the kernel changes something");
            alone = found;
        } else {
            assert!(found == alone, "{threads:?} threads");
        }
    }
}

macro_rules! launch {
    ($launch:expr, $threads:expr) => {
        match $threads {
            Some(threads) => $launch.threads(threads),
            None => $launch,
        }
    };
}

#[test]
fn groups_with_local_memory() {
    for groups in [1, 2, 3, 1000] {
        on_threads(&floats(groups * 10), |queue, threads, a| {
            let range = NdRange::new([groups as u64 * 10], [10]).unwrap();
            let _ = launch!(Launch::new(queue, range), threads).run(reverse, (a,)).unwrap();
        });
    }
}

#[test]
fn sums_and_scans() {
    let a = floats(100_000);
    on_threads(&[0.0; 128], |queue, threads, sums| {
        let a = Array::from_slice(queue, &a).unwrap();
        let range = NdRange::new([128 * 64], [64]).unwrap();
        let _ = launch!(Launch::new(queue, range), threads).run(reduce, (&a, sums)).unwrap();
    });
    let a: Vec<u32> = (0..12_800).collect();
    on_threads(&vec![0; a.len()], |queue, threads, out| {
        let a = Array::from_slice(queue, &a).unwrap();
        let range = NdRange::new([a.len() as u64], [128]).unwrap();
        let _ = launch!(Launch::new(queue, range), threads).run(scan, (&a, out)).unwrap();
    });
}

#[test]
fn atomics() {
    let values: Vec<u8> = (0..300_000_u32).map(|i| (i.wrapping_mul(i) >> 5) as u8).collect();
    on_threads(&[0_u32; 256], |queue, threads, counts| {
        let values = Array::from_slice(queue, &values).unwrap();
        let range = NdRange::new([64 * 256], [256]).unwrap();
        let _ = launch!(Launch::new(queue, range), threads).run(histogram, (&values, counts)).unwrap();
    });
}

#[test]
fn tiles_in_two_dimensions() {
    let n = 70_u64;
    let (a, b) = (floats(4900), floats(4900));
    on_threads(&vec![-1.0; 4900], |queue, threads, c| {
        let (a, b) = (Array::from_slice(queue, &a).unwrap(), Array::from_slice(queue, &b).unwrap());
        let range = NdRange::covering([n, n], [16, 16]).unwrap();
        let _ = launch!(Launch::new(queue, range), threads).run(matmul, (n, &a, &b, c)).unwrap();
    });
}

/// Each item writes its number and what it sees of the range.
#[kernel]
fn numbers(out: &mut [u64]) {
    let (x, y, z) = (global_id(0), global_id(1), global_id(2));
    let i = (x * global_size(1) + y) * global_size(2) + z;
    if z >= 1 && i < out.len() {
        out[i] = x * 1_000_000 + y * 1000 + z + global_size(0) * 7;
    }
}

/// Over items, the launch divides the slowest dimension that has more than one position.
#[test]
fn items_in_three_dimensions() {
    for sizes in [[5, 7, 11], [1, 40, 3], [1, 1, 200], [64, 1, 2], [3, 1, 1], [1, 1, 1]] {
        let count = sizes.iter().product::<u64>() as usize;
        on_threads(&vec![1; count + 1], |queue, threads, out| {
            out.write().unwrap()[count] = 2;
            let launch = Launch::with_range(queue, Range::new(sizes).unwrap());
            let _ = launch!(launch, threads).run(numbers, (&mut *out,)).unwrap();
            for (i, found) in out.read().unwrap()[..count].iter().enumerate() {
                let (i, [_, b, c]) = (i as u64, sizes);
                let (x, y, z) = (i / c / b, i / c % b, i % c);
                let expected = if z == 0 { 1 } else { x * 1_000_000 + y * 1000 + z + sizes[0] * 7 };
                assert_eq!(*found, expected, "{sizes:?}, element {i}");
            }
        });
    }
}

#[test]
fn items_of_a_long_and_of_no_range() {
    let x = floats(1 << 20);
    on_threads(&vec![1.0; (1 << 20) - 5], |queue, threads, y| {
        let x = Array::from_slice(queue, &x).unwrap();
        let empty = Launch::with_range(queue, Range::new([0]).unwrap());
        let _ = launch!(empty, threads).run(saxpy, (2.0, &x, &mut *y)).unwrap();
        let launch = Launch::with_range(queue, Range::new([1 << 20]).unwrap());
        let _ = launch!(launch, threads).run(saxpy, (2.0, &x, &mut *y)).unwrap();
    });
    // Groups that the kernel does not need are no limit for the parts.
    on_threads(&vec![1.0; 3000], |queue, threads, y| {
        let x = Array::from_slice(queue, &x).unwrap();
        let launch = Launch::new(queue, NdRange::new([3000], [1]).unwrap());
        let _ = launch!(launch, threads).run(saxpy, (2.0, &x, y)).unwrap();
    });
}

/// What is not proven runs checked, on one thread, and panics at the index.
#[test]
fn an_index_outside_panics_on_the_calling_thread() {
    let queue = queue();
    let x = Array::from_slice(&queue, &[1.0; 999]).unwrap();
    let mut y = Array::from_slice(&queue, &[1.0; 1000]).unwrap();
    let launch = Launch::with_range(&queue, Range::new([1000]).unwrap()).threads(4);
    let run = core::panic::AssertUnwindSafe(|| launch.run(saxpy, (1.0, &x, &mut y)).map(drop));
    let panic = std::panic::catch_unwind(run).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("index 999 of `x`, which has 999 elements"), "{text}");
}

/// Notes the thread of each group. Waits in the first one until `threads` have come.
#[derive(Debug)]
struct Witness<const CONCURRENT: bool> {
    seen: &'static Mutex<Vec<ThreadId>>,
    threads: usize,
    fails: bool,
}

impl<const CONCURRENT: bool> Witness<CONCURRENT> {
    fn new(threads: usize) -> Self {
        Self { seen: Box::leak(Box::default()), threads, fails: false }
    }

    fn note(&self, group: usize) {
        self.seen.lock().unwrap().push(thread::current().id());
        let end = Instant::now() + Duration::from_secs(20);
        while self.distinct() < self.threads {
            assert!(Instant::now() < end, "{} of {} threads came", self.distinct(), self.threads);
            thread::yield_now();
        }
        assert!(!(self.fails && group == 37), "group 37 fails");
    }

    fn distinct(&self) -> usize {
        let mut seen = self.seen.lock().unwrap().clone();
        let all = seen.len();
        (0..all).filter(|i| !seen[..*i].contains(&seen[*i])).count().max(usize::from(seen.pop().is_some()))
    }
}

impl<const C: bool> Kernel<1> for Witness<C> {
    const NAME: &'static str = "witness";
    const CONCURRENT: bool = C;
    type Arguments = (Write<u32>,);
    type Local = ();

    fn proof(&self, _: &NdRange<1>, _: &[usize], _: &Values<Self::Arguments>) -> Proof {
        Proof::PROVEN
    }

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (a,): (&mut [u32],), (): ()) {
        a[group.index()] += 1;
        self.note(group.index());
    }

    fn group_beside_others(
        &self,
        group: &Group<'_, Self, 1, InOrder>,
        _: Views<'_, Self::Arguments, Concurrent>,
        (): LocalViews<'_, ()>,
    ) {
        self.note(group.index());
    }
}

const GROUPS: u64 = 200;

fn witnessed<const C: bool>(
    kernel: Witness<C>,
    launch: impl Fn(Launch<'_, HostHeap, 1>, Witness<C>, &mut Array<u32>),
) -> usize {
    let queue = queue();
    let seen = kernel.seen;
    let mut a = Array::from_slice(&queue, &[0; GROUPS as usize]).unwrap();
    launch(Launch::new(&queue, NdRange::new([GROUPS], [1]).unwrap()), kernel, &mut a);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len() as u64, GROUPS, "each group runs once");
    let mut distinct: Vec<ThreadId> = Vec::new();
    for id in &*seen {
        if !distinct.contains(id) {
            distinct.push(*id);
        }
    }
    if distinct.len() == 1 {
        assert_eq!(distinct[0], thread::current().id());
    }
    distinct.len()
}

#[test]
fn threads_run_at_once() {
    let run = |launch: Launch<'_, HostHeap, 1>, kernel, a: &mut Array<u32>| {
        let _ = launch.threads(3).run(kernel, (a,)).unwrap();
    };
    // The calling thread, and at least two of the pool, are in groups at the same time.
    assert_eq!(witnessed(Witness::<true>::new(3), run), 3);
}

#[test]
fn long_launches_use_the_pool_by_themselves() {
    // Each group takes long, so that the second one may be elsewhere.
    let kernel = Witness::<true>::new(1);
    let threads = witnessed(kernel, |launch, kernel, a| {
        let slow = Slow(kernel);
        let _ = launch.run(slow, (a,)).unwrap();
    });
    assert!(threads >= 2, "{threads}");
}

/// As its witness, and each group takes 200 us.
#[derive(Debug)]
struct Slow(Witness<true>);

impl Kernel<1> for Slow {
    const NAME: &'static str = "slow";
    const CONCURRENT: bool = true;
    type Arguments = (Write<u32>,);
    type Local = ();

    fn proof(&self, _: &NdRange<1>, _: &[usize], _: &Values<Self::Arguments>) -> Proof {
        Proof::PROVEN
    }

    fn group<O: Order>(&self, _: &mut Group<'_, Self, 1, O>, _: (&mut [u32],), (): ()) {
        unreachable!("the launch is in order");
    }

    fn group_beside_others(
        &self,
        group: &Group<'_, Self, 1, InOrder>,
        _: Views<'_, Self::Arguments, Concurrent>,
        (): LocalViews<'_, ()>,
    ) {
        thread::sleep(Duration::from_micros(200));
        self.0.note(group.index());
    }
}

#[test]
fn one_thread_runs_what_is_not_to_be_divided() {
    // A kernel that is written by hand.
    let hand = witnessed(Witness::<false>::new(1), |launch, kernel, a| {
        let _ = launch.threads(4).run(kernel, (a,)).unwrap();
    });
    // Another order.
    let order = witnessed(Witness::<true>::new(1), |launch, kernel, a| {
        let _ = launch.threads(4).order(ReverseOrder).run(kernel, (a,)).unwrap();
    });
    // Memory of the caller.
    let memory = witnessed(Witness::<true>::new(1), |launch, kernel, a| {
        let _ = launch.threads(4).local_memory(&mut [0; 64]).run(kernel, (a,)).unwrap();
    });
    // One thread, as stated.
    let stated = witnessed(Witness::<true>::new(1), |launch, kernel, a| {
        let _ = launch.threads(1).run(kernel, (a,)).unwrap();
    });
    // A thread of the pool.
    let mut pool = 0;
    let _ = queue();
    rayon_core::scope(|_| {
        pool = witnessed(Witness::<true>::new(1), |launch, kernel, a| {
            let _ = launch.threads(4).run(kernel, (a,)).unwrap();
        });
    });
    assert_eq!([hand, order, memory, stated, pool], [1; 5]);
}

#[test]
fn a_panic_in_another_thread_reaches_the_caller() {
    let queue = queue();
    let kernel = Witness::<true> { fails: true, ..Witness::new(3) };
    let mut a = Array::from_slice(&queue, &[5_u32; GROUPS as usize]).unwrap();
    let launch = Launch::new(&queue, NdRange::new([GROUPS], [1]).unwrap()).threads(3);
    let run = core::panic::AssertUnwindSafe(|| launch.run(kernel, (&mut a,)).map(drop));
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert!(panic.downcast_ref::<&str>().is_some_and(|text| text.contains("group 37 fails")));
    assert_eq!(a.to_vec(&queue).unwrap(), [5; GROUPS as usize]);
}

/// The programs of the conformance suite.
#[path = "../../tests/src/conformance/kernel/programs/kernels.rs"]
mod programs;

use programs::programs as typical;

fn whole<T: Pod>(queue: &Queue<HostHeap>, count: usize, value: impl Fn(usize) -> T) -> Array<T> {
    Array::from_slice(queue, &(0..count).map(value).collect::<Vec<T>>()).unwrap()
}

#[test]
fn typical_programs_in_planes() {
    let (h, w) = (130_u64, 210_u64);
    let count = (h * w) as usize;
    let over = NdRange::covering([h, w], [4, 8]).unwrap();
    on_threads(&vec![-1.0; count], |queue, threads, b| {
        let a = whole(queue, count, |i| (i * 37 % 64) as f32 / 8.0);
        let launch = launch!(Launch::new(queue, over), threads).require_proof();
        let _ = launch.run(typical::stencil, (h, w, &a, b)).unwrap();
    });
    on_threads(&vec![0_u32; count], |queue, threads, out| {
        let launch = launch!(Launch::new(queue, over), threads).require_proof();
        let _ = launch.run(typical::mandelbrot, (w, h, 50, out)).unwrap();
    });
    let (h, w) = (128_u64, 240_u64);
    let count = (h * w) as usize;
    on_threads(&vec![0_u16; count], |queue, threads, out| {
        let a = whole(queue, count, |i| (i * 1009) as u16);
        let range = NdRange::new([h, w], [8, 8]).unwrap();
        let launch = launch!(Launch::new(queue, range), threads).require_proof();
        let _ = launch.run(typical::transpose, (h, w, &a, out)).unwrap();
    });
}

#[test]
fn typical_programs_in_groups() {
    const COUNT: usize = 64 * 200;
    let over = NdRange::new([COUNT as u64], [64]).unwrap();
    let number = |i: usize| (i as u32).wrapping_mul(0x9E37_79B1) >> 5;
    on_threads(&[0_u32; COUNT], |queue, threads, out| {
        let a = whole(queue, COUNT, number);
        let heads = whole(queue, COUNT, |i| u8::from(i % 11 == 3 || i % 64 == 40));
        let launch = launch!(Launch::new(queue, over), threads).require_proof();
        let _ = launch.run(typical::segmented_scan, (&heads, &a, out)).unwrap();
    });
    let signed: Vec<i32> = (0..COUNT).map(|i| number(i) as i32 - (1 << 26)).collect();
    on_threads(&signed, |queue, threads, a| {
        let launch = launch!(Launch::new(queue, over), threads).require_proof();
        let _ = launch.run(typical::bitonic_sort, (a,)).unwrap();
    });
    on_threads(&[9_u32; COUNT], |queue, threads, ranks| {
        let a = whole(queue, COUNT, number);
        let mut counts = whole(queue, COUNT / 4, |_| 9_u32);
        let launch = launch!(Launch::new(queue, over), threads).require_proof();
        let _ = launch.run(typical::radix_ranks, (8, &a, &mut counts, &mut *ranks)).unwrap();
        assert_eq!(counts.read().unwrap().iter().sum::<u32>(), COUNT as u32);
    });
}

#[test]
fn typical_programs_of_numbers() {
    on_threads(&[0.0_f32; 96 * 200], |queue, threads, out| {
        let a = whole(queue, 96 * 200, |i| (i * 53 % 97) as f32 / 8.0 - 6.0);
        let range = NdRange::new([32 * 200], [32]).unwrap();
        let launch = launch!(Launch::new(queue, range), threads).require_proof();
        let _ = launch.run(typical::softmax, (96, &a, out)).unwrap();
    });
    on_threads(&[0.0_f32; 1000], |queue, threads, pulls| {
        let bodies = whole(queue, 1500, |i| (i * 71 % 101) as f32 / 16.0);
        let range = NdRange::new([512], [32]).unwrap();
        let launch = launch!(Launch::new(queue, range), threads).require_proof();
        let _ = launch.run(typical::n_body, (500, &bodies, pulls)).unwrap();
    });
    on_threads(&[0.0_f64; 3000], |queue, threads, calls| {
        let spot = whole(queue, 3000, |i| 80.0 + 0.015 * i as f64);
        let strike = whole(queue, 3000, |i| 100.0 + 0.0025 * i as f64);
        let years = whole(queue, 3000, |i| 0.25 + 0.00125 * i as f64);
        let mut puts = whole(queue, 3000, |_| 0.0_f64);
        let range = NdRange::covering([3000], [8]).unwrap();
        let launch = launch!(Launch::new(queue, range), threads).require_proof();
        let arguments = (0.02, 0.3, &spot, &strike, &years, calls, &mut puts);
        let _ = launch.run(typical::black_scholes, arguments).unwrap();
        assert!(puts.read().unwrap().iter().all(|price| *price > 0.0));
    });
}
