//! The ready algorithms by the order of elements beside std's sorts and plain loops.

use core::cmp::Ordering;

use bytemuck::{bytes_of, cast_slice};
use usm_core::{BackendKind, Context, Device, Element, ErrorKind, Queue, QueueOrder, Shared, UsmVec};
use usm_kernel::algorithms::{Comparable, Integer, OrderAlgorithms};
use usm_kernel::{Bf16, F16, LaunchError, Module, Programmable};

use super::{formats, queue, runs_kernels};
use crate::Fixture;

/// Elements of a test: their order, and values among which are equal ones, the ends, and NaNs.
trait Values: Comparable {
    fn compare(&self, other: &Self) -> Ordering;
    fn is_nan(&self) -> bool {
        false
    }
    /// The value of a number of 64 random bits.
    fn of(random: u64) -> Self;
    /// Edges of bins, ascending.
    fn edges() -> Vec<Self>;
}

macro_rules! integers {
    ($($ty:ident)*) => {$(
        impl Values for $ty {
            fn compare(&self, other: &Self) -> Ordering {
                self.cmp(other)
            }

            fn of(random: u64) -> Self {
                match random % 16 {
                    0 => Self::MIN,
                    1 => Self::MAX,
                    2..8 => (random >> 8 & 15) as Self,
                    _ => (random >> 3) as Self,
                }
            }

            fn edges() -> Vec<Self> {
                let mut edges: Vec<Self> = (0..60).chain([60, 60, Self::MAX - 2]).collect();
                edges.insert(0, Self::MIN);
                edges
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 i8 i16 i32 i64);

macro_rules! floats {
    ($($ty:ident $of:expr, $number:expr, $nan:expr;)*) => {$(
        impl Values for $ty {
            fn compare(&self, other: &Self) -> Ordering {
                let number: fn(&$ty) -> f64 = $number;
                let (one, two) = (number(self), number(other));
                one.partial_cmp(&two).unwrap_or_else(|| one.is_nan().cmp(&two.is_nan()))
            }

            fn is_nan(&self) -> bool {
                let number: fn(&$ty) -> f64 = $number;
                number(self).is_nan()
            }

            fn of(random: u64) -> Self {
                let of: fn(f32) -> $ty = $of;
                let any = (random >> 8) as i32 as f32 / 65_536.0;
                match random % 16 {
                    0 => of(f32::INFINITY),
                    1 => of(f32::NEG_INFINITY),
                    2 => of(0.0),
                    3 => of(-0.0),
                    // NaNs of both signs and of several bits.
                    4 => $nan(random),
                    5 => of(1e-7),
                    6 => of(f32::MIN_POSITIVE / -4.0),
                    7..12 => of((any as i32 % 9) as f32),
                    _ => of(any),
                }
            }

            fn edges() -> Vec<Self> {
                let of: fn(f32) -> $ty = $of;
                (-40_i8..=40).map(|k| of(f32::from(k) / 8.0)).collect()
            }
        }
    )*};
}

floats! {
    F16 F16::from_f32, |x| f64::from(x.to_f32()), |random: u64| F16::from_bits(0x7C01 | (random >> 9) as u16);
    Bf16 Bf16::from_f32, |x| f64::from(x.to_f32()), |random: u64| Bf16::from_bits(0x7F81 | (random >> 9) as u16);
    f32 |x| x, |x| f64::from(*x), |random: u64| f32::from_bits(0x7F80_0001 | (random >> 9) as u32);
    f64 f64::from, |x| *x, |random: u64| f64::from_bits(0x7FF0_0000_0000_0001 | random);
}

fn values<T: Values>(size: usize) -> Vec<T> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        T::of(state)
    };
    core::iter::repeat_with(next).take(size).collect()
}

/// Whether two elements have the same bits.
fn are_equal<T: Element>(one: &[T], two: &[T]) -> bool {
    cast_slice::<T, u8>(one) == cast_slice::<T, u8>(two)
}

fn array<T: Element, B: Programmable>(queue: &Queue<B>, values: &[T]) -> UsmVec<T, Shared, B> {
    UsmVec::from_slice(queue, values).expect("an array")
}

/// Whether the device is a driver of the tests, which interprets code, and a run is to be short.
fn is_brief<B: Programmable>(context: &Context<B>) -> bool {
    let interprets =
        matches!(context.info().backend, BackendKind::Cuda | BackendKind::Hip | BackendKind::LevelZero);
    interprets && skip::effort() == 1
}

/// Sizes of arrays of `T`, as many as the device does in seconds.
fn sizes<T, B: Programmable>(context: &Context<B>) -> &'static [usize] {
    let info = context.info();
    let is_small = info.max_alloc_size < 1 << 22;
    match (info.backend, size_of::<T>()) {
        // The drivers of the tests interpret code.
        (BackendKind::Cuda | BackendKind::Hip | BackendKind::LevelZero, 1) => &[0, 1, 2, 257, 5003],
        (BackendKind::Cuda | BackendKind::Hip | BackendKind::LevelZero, _) => &[0, 1, 257],
        (BackendKind::OpenCl | BackendKind::Sycl, 1) => &[0, 1, 2, 257, 5003, (1 << 20) + 7],
        (BackendKind::Host, 1) if !is_small => &[0, 1, 2, 257, 5003, (1 << 20) + 7],
        (BackendKind::OpenCl | BackendKind::Sycl, _) => &[0, 1, 257, 40_009],
        _ if is_small => &[0, 1, 2, 257, 1009],
        _ => &[0, 1, 2, 257, 20_011],
    }
}

fn sorts<T: Values, B: Programmable>(queue: &Queue<B>) -> OrderAlgorithms<T, B> {
    let of = OrderAlgorithms::<T, B>::build(queue.context()).expect("code that compiles");
    for &size in sizes::<T, B>(queue.context()) {
        let what = || format!("{size} of {}", core::any::type_name::<T>());
        let values = values::<T>(size);
        let mut places: Vec<u64> = (0..size as u64).collect();
        places.sort_by(|one, two| values[*one as usize].compare(&values[*two as usize]));
        let sorted: Vec<T> = places.iter().map(|place| values[*place as usize]).collect();

        let a = array(queue, &values);
        let mut results = UsmVec::<u64, Device, B>::zeroed(queue, size).expect("an array");
        of.argsort(queue, &a, &mut results).expect("a sort").wait().expect("an end");
        assert!(results.to_vec(queue).expect("a read") == places, "argsort of {}", what());
        assert!(are_equal(&a.to_vec(queue).expect("a read"), &values), "argsort changed {}", what());

        let mut keys = array(queue, &values);
        of.sort(queue, &mut keys).expect("a sort").wait().expect("an end");
        assert!(are_equal(&keys.to_vec(queue).expect("a read"), &sorted), "sort of {}", what());

        // Values of 1, 2, 8 and 12 bytes.
        let numbers: Vec<u64> = (0..size as u64).map(|i| i * 0x9E37_79B9).collect();
        let mut keys = array(queue, &values);
        let mut with = array(queue, &numbers);
        of.sort_by_key(queue, &mut keys, &mut with).expect("a sort").wait().expect("an end");
        assert!(are_equal(&keys.to_vec(queue).expect("a read"), &sorted), "keys of {}", what());
        let moved: Vec<u64> = places.iter().map(|place| numbers[*place as usize]).collect();
        assert!(with.to_vec(queue).expect("a read") == moved, "values of {}", what());
        if size < 1 << 16 && !is_brief(queue.context()) {
            by_key(queue, &of, &values, &places, |i| i as u8);
            by_key(queue, &of, &values, &places, |i| i as u16);
            by_key(queue, &of, &values, &places, |i| [i as f32, 1.0, i as f32 * 0.5]);
        }

        let best = |greatest: bool| {
            // The first NaN, or else the first of the best.
            let nan = values.iter().position(Values::is_nan);
            let order = |one: &T, two: &T| if greatest { two.compare(one) } else { one.compare(two) };
            // Of equal ones `min_by` takes the first.
            nan.or_else(|| (0..size).min_by(|one, two| order(&values[*one], &values[*two])))
        };
        assert_eq!(of.argmin(queue, &a).expect("a place"), best(false), "argmin of {}", what());
        assert_eq!(of.argmax(queue, &a).expect("a place"), best(true), "argmax of {}", what());
        let finite: Vec<T> = values.iter().copied().filter(|x| !x.is_nan()).collect();
        let b = array(queue, &finite);
        let first = |order: fn(Ordering) -> Ordering| {
            (0..finite.len()).min_by(|one, two| order(finite[*one].compare(&finite[*two])))
        };
        assert_eq!(of.argmin(queue, &b).expect("a place"), first(|order| order), "argmin of {}", what());
        assert_eq!(of.argmax(queue, &b).expect("a place"), first(Ordering::reverse), "argmax of {}", what());

        let edges = T::edges();
        let mut expected = vec![0_u64; edges.len() - 1];
        for x in values.iter().filter(|x| !x.is_nan()) {
            let above = edges.iter().filter(|edge| edge.compare(x) != Ordering::Greater).count();
            match above {
                0 => {}
                all if all < edges.len() => expected[all - 1] += 1,
                all if edges[all - 1].compare(x) == Ordering::Equal => expected[all - 2] += 1,
                _ => {}
            }
        }
        let mut counts = array(queue, &vec![9_u64; edges.len() - 1]);
        of.histogram(queue, &a, &edges, &mut counts).expect("counts").wait().expect("an end");
        assert_eq!(counts.to_vec(queue).expect("a read"), expected, "histogram of {}", what());
    }
    of
}

fn by_key<T: Values, V: Element + PartialEq, B: Programmable>(
    queue: &Queue<B>,
    of: &OrderAlgorithms<T, B>,
    values: &[T],
    places: &[u64],
    value: fn(u64) -> V,
) {
    let all: Vec<V> = (0..values.len() as u64).map(value).collect();
    let (mut keys, mut with) = (array(queue, values), array(queue, &all));
    of.sort_by_key(queue, &mut keys, &mut with).expect("a sort").wait().expect("an end");
    let moved: Vec<V> = places.iter().map(|place| all[*place as usize]).collect();
    assert!(are_equal(&with.to_vec(queue).expect("a read"), &moved), "{} bytes", size_of::<V>());
}

fn counts<T: Values + Integer, B: Programmable>(queue: &Queue<B>, of: &OrderAlgorithms<T, B>) {
    for &size in sizes::<T, B>(queue.context()) {
        let values = values::<T>(size);
        let a = array(queue, &values);
        // More counters than a group's memory has, and none.
        for bins in [16_usize, 5000, 0] {
            let mut expected = vec![0_u64; bins];
            for x in &values {
                let mut word = [0_u8; 8];
                let bytes = bytes_of(x);
                word[..bytes.len()].copy_from_slice(bytes);
                let number = u64::from_le_bytes(word);
                if x.compare(&T::of(2)) != Ordering::Less && number < bins as u64 {
                    expected[number as usize] += 1;
                }
            }
            let mut counts = array(queue, &vec![9_u64; bins]);
            of.bincount(queue, &a, &mut counts).expect("counts").wait().expect("an end");
            assert_eq!(counts.to_vec(queue).expect("a read"), expected, "{size} to {bins} bins");
        }
    }
}

fn refusals<B: Programmable>(queue: &Queue<B>, of: &OrderAlgorithms<f32, B>) {
    let mut a = array(queue, &[2.0_f32, 1.0, 3.0]);
    let mut counts = array(queue, &[9_u64; 2]);
    for (edges, edge) in [([0.0, 2.0, 1.0], 2), ([f32::NAN, 1.0, 2.0], 0), ([0.0, -f32::NAN, 2.0], 1)] {
        let refused = of.histogram(queue, &a, &edges, &mut counts).expect_err("edges");
        assert_eq!(refused, LaunchError::Edge { edge });
    }
    let mismatch = |error: LaunchError| match error {
        LaunchError::Memory(error) => match error.kind {
            ErrorKind::LengthMismatch { expected, found } => (expected, found),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    assert_eq!(mismatch(of.histogram(queue, &a, &[0.0, 1.0], &mut counts).expect_err("edges")), (2, 3));
    assert_eq!(mismatch(of.argsort(queue, &a, &mut counts).expect_err("places")), (2, 3));
    assert_eq!(mismatch(of.sort_by_key(queue, &mut a, &mut counts).expect_err("values")), (2, 3));
    assert_eq!(counts.to_vec(queue).expect("a read"), [9, 9]);
    assert_eq!(a.to_vec(queue).expect("a read"), [2.0, 1.0, 3.0]);
}

/// Sorts, places and counts of every size, with NaNs, infinities and equal elements.
pub fn algorithms_by_order_are_those_of_std<B: Programmable>(fixture: &Fixture<'_, B>) {
    let context = fixture.context;
    if !runs_kernels(context) || (!Module::formats(context).is_empty() && formats(context).is_empty()) {
        return;
    }
    let queue = &queue(fixture, QueueOrder::OutOfOrder);
    counts(queue, &sorts::<u8, B>(queue));
    refusals(queue, &sorts::<f32, B>(queue));
    if !is_brief(context) {
        let _ = sorts::<F16, B>(queue);
        counts(queue, &sorts::<i64, B>(queue));
    }
    if matches!(context.info().backend, BackendKind::Host) {
        counts(queue, &sorts::<i8, B>(queue));
        counts(queue, &sorts::<u16, B>(queue));
        counts(queue, &sorts::<i16, B>(queue));
        counts(queue, &sorts::<u32, B>(queue));
        counts(queue, &sorts::<i32, B>(queue));
        counts(queue, &sorts::<u64, B>(queue));
        let _ = (sorts::<Bf16, B>(queue), sorts::<f64, B>(queue));
    }
}
