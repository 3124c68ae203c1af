//! Local, private, constant and atomic memory, and launches of faulty kernels.

#![cfg(feature = "alloc")]

use core::mem::MaybeUninit;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicU32, Ordering};
use std::panic::catch_unwind;

use usm_core::backend::host::HostHeap;
use usm_core::backend::mock::{Mock, Progress};
use usm_core::{Device, ErrorKind, Host, Queue, QueueOrder, UsmVec};
use usm_kernel::host::phased;
use usm_kernel::{
    ArgumentError, Atomic, Constant, Description, FenceSpace, Group, InOrder, Kernel, Launch, LaunchError,
    Local, NdRange, Order, Output, ParameterKind, Private, PrivateArrays, Range, Read, ReverseOrder,
    ShuffledOrder, Value, Values, Write, ZeroedLocal,
};

#[path = "common/by_hand.rs"]
mod by_hand;

use by_hand::Reverse;

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

/// A filter with its coefficients in constant memory and its sums in private memory, which outlive
/// the barriers; it counts the negative results with an atomic.
struct Filter;

impl Kernel<1> for Filter {
    const NAME: &'static str = "filter";
    type Arguments = (Constant<i64, 3>, Read<i64>, Write<i64>, Atomic<u32>, Value<i64>);
    type Local = (Private<i64>, ZeroedLocal<u8>, Local<i64>);

    fn local(&self, range: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 3] {
        [2, 3, range.local().items() as usize]
    }

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
        (taps, x, y, negative, offset): (&[i64; 3], &[i64], &mut [i64], &[AtomicU32], i64),
        (mut sums, zeros, stage): (PrivateArrays<'_, i64>, &mut [u8], &mut [i64]),
    ) {
        assert_eq!(zeros, [0; 3], "zeroed for each group");
        zeros.fill(9);
        for item in group.items() {
            let sums = sums.of(item);
            assert_eq!(sums.len(), 2);
            sums.fill(offset);
        }
        for (tap, factor) in taps.iter().enumerate() {
            for item in group.items() {
                stage[item.local()] = x.get(item.global() + tap).copied().unwrap_or(0);
            }
            group.barrier(FenceSpace::LOCAL | FenceSpace::GLOBAL);
            for item in group.items() {
                sums.of(item)[tap % 2] += factor * stage[item.local()];
            }
        }
        for item in group.items() {
            let result: i64 = sums.of(item).iter().sum();
            y[item.global()] = result;
            if result < 0 {
                negative[0].fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn filter_plain(taps: &[i64; 3], x: &[i64], offset: i64) -> Vec<i64> {
    let at = |i: usize| x.get(i).copied().unwrap_or(0);
    (0..x.len()).map(|i| 2 * offset + (0..3).map(|tap| taps[tap] * at(i + tap)).sum::<i64>()).collect()
}

#[test]
fn all_kinds_of_memory_work_together_in_every_order() {
    let (taps, x): ([i64; 3], Vec<i64>) = ([3, -5, 7], (0..120).map(|i| i * i % 31 - 15).collect());
    let plain = filter_plain(&taps, &x, -4);
    let below = plain.iter().filter(|value| **value < 0).count() as u32;
    assert!(below > 0);

    fn once<O: Order>(order: O, taps: [i64; 3], x: &[i64]) -> (Vec<i64>, u32) {
        let queue = queue();
        let from = UsmVec::<i64, Device, _>::from_slice(&queue, x).unwrap();
        let mut to = UsmVec::<i64, Host, _>::zeroed(&queue, x.len()).unwrap();
        let mut negative = UsmVec::<u32, Device, _>::zeroed(&queue, 1).unwrap();
        let launch = Launch::new(&queue, NdRange::new([120], [12]).unwrap()).order(order);
        let _ = launch.run(Filter, (taps, &from, &mut to, &mut negative, -4)).unwrap();
        (to.to_vec(&queue).unwrap(), negative.to_vec(&queue).unwrap()[0])
    }
    assert_eq!(once(InOrder, taps, &x), (plain.clone(), below));
    assert_eq!(once(ReverseOrder, taps, &x), (plain.clone(), below));
    assert_eq!(once(ShuffledOrder(7), taps, &x), (plain, below));
}

/// Writes doubled values to uninitialised memory.
struct Doubled;

impl Kernel<1> for Doubled {
    const NAME: &'static str = "doubled";
    type Arguments = (Read<f32>, Output<f32>);
    type Local = ();

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
        (x, y): (&[f32], &mut [MaybeUninit<f32>]),
        (): (),
    ) {
        for item in group.items() {
            y[item.global()].write(2.0 * x[item.global()]);
        }
    }
}

#[test]
fn a_kernel_fills_memory_that_has_no_value() {
    let queue = queue();
    let x = UsmVec::<f32, Host, _>::from_slice(&queue, &[1.0, 2.0, 3.0]).unwrap();
    let mut y = UsmVec::<f32, Host, _>::uninit(queue.context(), 3).unwrap();
    let _ = Launch::with_range(&queue, Range::new([3]).unwrap()).run(Doubled, (&x, &mut y)).unwrap();
    // SAFETY: the range has one item for each element, and each item writes its own.
    let y = unsafe { y.assume_init() };
    assert_eq!(y.read().unwrap()[..], [2.0, 4.0, 6.0]);
}

#[test]
fn a_kernel_is_described_by_a_value() {
    let description =
        Description::new(&Filter, &NdRange::new([120], [12]).unwrap(), &((), (), (), (), 0)).unwrap();
    assert_eq!(description.name, "filter");
    let table: Vec<_> = description.parameters.iter().map(|row| (row.kind, row.element_bytes)).collect();
    let kinds = [
        ParameterKind::Constant,
        ParameterKind::Read,
        ParameterKind::Write,
        ParameterKind::Atomic,
        ParameterKind::Value,
    ];
    assert_eq!(table, kinds.into_iter().zip([8, 8, 8, 4, 8]).collect::<Vec<_>>());
    // Private arrays are not local memory of a device, but need memory on the host.
    assert_eq!(description.local.local, 3 + 12 * 8);
    assert!(description.local.region >= 3 + 12 * 8 + 12 * 2 * 8);
}

/// Reads local memory that it has not written: correct only in order on fresh memory.
struct ReadsNoise;

impl Kernel<1> for ReadsNoise {
    const NAME: &'static str = "reads_noise";
    type Arguments = (Write<u32>,);
    type Local = (Local<u32>,);

    fn local(&self, _: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 1] {
        [1]
    }

    fn group<O: Order>(
        &self,
        group: &mut Group<'_, Self, 1, O>,
        (sum,): (&mut [u32],),
        (lm,): (&mut [u32],),
    ) {
        for _ in group.items() {
            lm[0] = lm[0].wrapping_add(1);
        }
        for _ in group.first(1) {
            sum[group.index()] = lm[0];
        }
    }
}

/// An item reads its neighbour's write of the same phase: a missing barrier.
struct MissingBarrier;

impl Kernel<1> for MissingBarrier {
    const NAME: &'static str = "missing_barrier";
    type Arguments = (Write<u32>,);
    type Local = ();

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (a,): (&mut [u32],), (): ()) {
        for item in group.items() {
            let before = if item.local() == 0 { 0 } else { a[item.local() - 1] };
            a[item.local()] += before;
        }
    }
}

#[test]
fn other_orders_find_wrong_kernels() {
    let range = NdRange::new([4], [4]).unwrap();
    let mut sums = [0];
    phased::run(&ReadsNoise, &range, (&mut sums,), &mut [0; 8], InOrder).unwrap();
    assert_eq!(sums, [4], "looks right");
    phased::run(&ReadsNoise, &range, (&mut sums,), &mut [0; 8], ReverseOrder).unwrap();
    assert_ne!(sums, [4], "found by noise");

    let mut in_order = [1; 4];
    phased::run(&MissingBarrier, &range, (&mut in_order,), &mut [], InOrder).unwrap();
    let mut reversed = [1; 4];
    phased::run(&MissingBarrier, &range, (&mut reversed,), &mut [], ReverseOrder).unwrap();
    assert_ne!(in_order, reversed, "found by the order");
}

#[test]
fn lengths_that_cannot_be_counted_are_refused() {
    struct Huge(usize);
    impl Kernel<1> for Huge {
        const NAME: &'static str = "huge";
        type Arguments = (Write<u8>,);
        type Local = (Local<u64>, Private<u64>);

        fn local(&self, _: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 2] {
            [self.0, self.0]
        }

        fn group<O: Order>(
            &self,
            _: &mut Group<'_, Self, 1, O>,
            _: (&mut [u8],),
            _: (&mut [u64], PrivateArrays<'_, u64>),
        ) {
            unreachable!("never runs");
        }
    }
    let queue = queue();
    let mut a = UsmVec::<u8, Host, _>::zeroed(&queue, 8).unwrap();
    let range = NdRange::new([8], [4]).unwrap();
    for len in [usize::MAX, usize::MAX / 8, usize::MAX / 16, usize::MAX / 64, 1 << 40] {
        let refused = Launch::new(&queue, range).run(Huge(len), (&mut a,)).unwrap_err();
        assert!(matches!(refused, LaunchError::LocalMemoryTooLarge { .. }), "{refused}");
        let refused = phased::run(&Huge(len), &range, (&mut [0; 8],), &mut [0; 64], InOrder).unwrap_err();
        assert!(
            matches!(refused, LaunchError::LocalMemoryTooLarge { .. } | LaunchError::ArenaTooSmall { .. }),
            "{refused}"
        );
    }
}

/// Writes past the end.
struct Panics;
impl Kernel<1> for Panics {
    const NAME: &'static str = "panics";
    type Arguments = (Write<f32>,);
    type Local = ();

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (a,): (&mut [f32],), (): ()) {
        for item in group.items() {
            a[item.global() * 2] = 1.0;
        }
    }
}

#[test]
fn a_kernel_that_panics_leaves_queue_and_array_usable() {
    let queue = queue();
    let mut a = UsmVec::<f32, Host, _>::zeroed(&queue, 4).unwrap();
    let range = NdRange::new([4], [2]).unwrap();
    let launch = AssertUnwindSafe(|| Launch::new(&queue, range).run(Panics, (&mut a,)).map(drop));
    assert!(catch_unwind(launch).is_err());
    assert_eq!(a.read().unwrap()[..], [1.0, 0.0, 1.0, 0.0]);
    let _ = Launch::new(&queue, range).run(Reverse, (&mut a,)).unwrap();
    assert_eq!(a.read().unwrap()[..], [1.0; 4]);
}

/// The same arguments on the asynchronous mock: the task owns copies of tables and values.
#[test]
fn tables_and_values_travel_with_a_late_kernel() {
    let mock = Mock::default();
    let queue = mock.context().queue(QueueOrder::InOrder).unwrap();
    let x: Vec<i64> = (0..24).collect();
    let mut to = UsmVec::<i64, Host, _>::zeroed(&queue, 24).unwrap();
    {
        let taps = [1, 2, 3];
        let from = UsmVec::<i64, Device, _>::from_slice(&queue, &x).unwrap();
        let mut negative = UsmVec::<u32, Device, _>::zeroed(&queue, 1).unwrap();
        let launch = Launch::new(&queue, NdRange::new([24], [4]).unwrap());
        let _ = launch.run(Filter, (taps, &from, &mut to, &mut negative, 5)).unwrap();
    }
    assert_eq!(to.read().unwrap()[..], filter_plain(&[1, 2, 3], &x, 5));
    assert_eq!(mock.violations(), []);
}

#[test]
fn a_late_kernel_that_panics_fails_its_event_and_nothing_else() {
    let mock = Mock::new(Progress::Manual);
    let context = mock.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let other = context.queue(QueueOrder::InOrder).unwrap();
    let mut a = UsmVec::<f32, Host, _>::zeroed(&queue, 4).unwrap();
    let mut b = UsmVec::<f32, Host, _>::zeroed(&other, 4).unwrap();
    let range = NdRange::new([4], [2]).unwrap();
    let event = Launch::new(&queue, range).run(Panics, (&mut a,)).unwrap();
    assert!(catch_unwind(AssertUnwindSafe(|| mock.step())).is_err());
    assert_eq!(event.status().unwrap_err().to_string(), a.read().unwrap_err().to_string());
    assert!(!matches!(a.read().unwrap_err().kind, ErrorKind::Timeout { .. }));
    let _ = Launch::new(&other, range).run(Reverse, (&mut b,)).unwrap();
    mock.finish();
    assert_eq!(b.read().unwrap()[..], [0.0; 4]);
}

/// Adds elements that are `stride` apart: the required length depends on a value.
struct Strided;
impl Kernel<1> for Strided {
    const NAME: &'static str = "strided";
    type Arguments = (Value<u64>, Write<u32>);
    type Local = ();

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        (stride, ()): &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 1, range.global().items().saturating_mul(*stride))
    }

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (stride, a): (u64, &mut [u32]), (): ()) {
        for item in group.items() {
            a[item.global() * stride as usize] += 1;
        }
    }
}

#[test]
fn a_check_sees_the_values_of_the_launch() {
    let queue = queue();
    let mut a = UsmVec::<u32, Host, _>::zeroed(&queue, 12).unwrap();
    let range = NdRange::new([4], [2]).unwrap();
    let _ = Launch::new(&queue, range).run(Strided, (3, &mut a)).unwrap();
    assert_eq!(a.read().unwrap()[..], [1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0]);
    let refused = Launch::new(&queue, range).run(Strided, (4, &mut a)).unwrap_err();
    assert_eq!(refused.to_string(), "kernel strided: argument 1 has 12 elements, the kernel reaches 16");
    let refused = phased::run(&Strided, &range, (4, &mut [0; 12]), &mut [], InOrder).unwrap_err();
    assert_eq!(refused.to_string(), "kernel strided: argument 1 has 12 elements, the kernel reaches 16");
}
