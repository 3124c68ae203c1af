//! The whole language on the host: by the body in three orders, and by the interpreter, which finds
//! no fault.

#![cfg(all(feature = "macros", feature = "std"))]

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{Bounds, InOrder, Kernel, Proof, ReverseOrder, ShuffledOrder};

#[path = "common/language.rs"]
mod language;

fn queue() -> Queue<HostHeap> {
    HostHeap::new().context().queue(QueueOrder::InOrder).unwrap()
}

type Array<T> = UsmVec<T, Host, HostHeap>;

fn array<T: bytemuck::Pod>(queue: &Queue<HostHeap>, values: &[T]) -> Array<T> {
    UsmVec::from_slice(queue, values).unwrap()
}

/// Checks a launch, and runs it in each order: `$start` makes the arrays of the arguments, `$check`
/// checks them afterwards.
macro_rules! every_order {
    ($queue:expr, $range:expr, $kernel:expr, $start:expr, |$arrays:ident| $arguments:expr, $check:expr) => {{
        let mut $arrays = $start;
        Launch::new($queue, $range).check($kernel, $arguments).unwrap();
        let _ = Launch::new($queue, $range).order(InOrder).run($kernel, $arguments).unwrap();
        $check(&$arrays);
        let mut $arrays = $start;
        let _ = Launch::new($queue, $range).order(ReverseOrder).run($kernel, $arguments).unwrap();
        $check(&$arrays);
        let mut $arrays = $start;
        let _ = Launch::new($queue, $range).order(ShuffledOrder(5)).run($kernel, $arguments).unwrap();
        $check(&$arrays);
    }};
}

#[test]
fn functions_are_put_in() {
    let queue = &queue();
    let values: Vec<u32> = (0..96).map(|i| i * 37 % 50).collect();
    let a = &array(queue, &values);
    for (flag, low) in [(true, -3), (false, 0)] {
        let (out, found) = language::functions_plain(flag, &values, low);
        let range = NdRange::new([96], [48]).unwrap();
        every_order!(
            queue,
            range,
            language::functions,
            (array(queue, &[0_u32; 96]), array(queue, &[0_u64; 96])),
            |arrays| (flag, a, low, &mut arrays.0, &mut arrays.1),
            |arrays: &(Array<u32>, Array<u64>)| {
                assert_eq!(arrays.0.read().unwrap()[..], out);
                assert_eq!(arrays.1.read().unwrap()[..], found);
            }
        );
    }
}

#[test]
fn a_group_collects() {
    let queue = &queue();
    for least in [-40, 0] {
        let values: Vec<i32> = (0..144).map(|i| i * 31 % 96 + least).collect();
        let a = &array(queue, &values);
        let plain = language::collect_plain(&values);
        let range = NdRange::new([144], [48]).unwrap();
        assert_eq!(language::collect.proof(&range, &[144; 5], &((), (), (), (), ())), Proof::PROVEN);
        let zeros = || array(queue, &[0_i32; 144]);
        every_order!(
            queue,
            range,
            language::collect,
            (zeros(), zeros(), zeros(), array(queue, &[0_u32; 144])),
            |arrays| (a, &mut arrays.0, &mut arrays.1, &mut arrays.2, &mut arrays.3),
            |arrays: &(Array<i32>, Array<i32>, Array<i32>, Array<u32>)| {
                let wide = |array: &Array<i32>| {
                    array.read().unwrap().iter().map(|value| i64::from(*value)).collect::<Vec<_>>()
                };
                let truths: Vec<i64> =
                    arrays.3.read().unwrap().iter().map(|value| i64::from(*value)).collect();
                assert_eq!([wide(&arrays.0), wide(&arrays.1), wide(&arrays.2), truths], plain);
            }
        );
    }
}

#[test]
fn a_group_of_two_dimensions_collects() {
    let queue = &queue();
    let values: Vec<u32> = (0..96).map(|i| i * 29 % 41).collect();
    let a = &array(queue, &values);
    let plain = language::collect_plane_plain(&values);
    every_order!(
        queue,
        NdRange::new([8, 12], [4, 6]).unwrap(),
        language::collect_plane,
        array(queue, &[0_u32; 96]),
        |out| (a, &mut out),
        |out: &Array<u32>| assert_eq!(out.read().unwrap()[..], plain)
    );
}

#[test]
fn sub_groups_are_parts_of_the_linear_group() {
    let queue = &queue();
    for least in [-40, 0] {
        let values: Vec<i32> = (0..192).map(|i| i * 31 % 96 + least).collect();
        let a = &array(queue, &values);
        let (out, moved) = language::sub_groups_plain(&values);
        every_order!(
            queue,
            NdRange::new([8, 24], [4, 12]).unwrap(),
            language::sub_groups,
            (array(queue, &[0_i64; 192]), array(queue, &[0_i32; 192])),
            |arrays| (a, 24, &mut arrays.0, &mut arrays.1),
            |arrays: &(Array<i64>, Array<i32>)| {
                assert_eq!(arrays.0.read().unwrap()[..], out);
                assert_eq!(arrays.1.read().unwrap()[..], moved);
            }
        );
    }
}

#[test]
fn atomics_of_numbers_and_compare_exchange() {
    let queue = &queue();
    let values: Vec<f32> = (0..96_u8).map(|i| f32::from(i) - 20.0).collect();
    let a = &array(queue, &values);
    let sum: f32 = values.iter().sum();
    every_order!(
        queue,
        NdRange::new([96], [48]).unwrap(),
        language::atomics,
        (array(queue, &[0.0_f32; 4]), array(queue, &[0_u32; 3]), array(queue, &[0_i64; 2])),
        |arrays| (a, &mut arrays.0, &mut arrays.1, &mut arrays.2),
        |arrays: &(Array<f32>, Array<u32>, Array<i64>)| {
            assert_eq!(arrays.0.read().unwrap()[..], [sum, 75.0, -20.0, -sum]);
            assert_eq!(arrays.1.read().unwrap()[..], [95 * 48, 95, 96]);
            assert_eq!(arrays.2.read().unwrap()[..], [-95 * 48, 7]);
        }
    );
}

#[test]
fn sums_and_private_arrays_outlive_barriers() {
    let queue = &queue();
    let values: Vec<u32> = (0..50).map(|i| i * 17 % 23).collect();
    let a = &array(queue, &values);
    for n in [1_usize, 10, 49] {
        let group = language::sums_plain(n, &values);
        every_order!(
            queue,
            NdRange::new([8, 16], [4, 8]).unwrap(),
            language::sums,
            array(queue, &[0_u32; 128]),
            |out| (n as u64, a, &mut out),
            |out: &Array<u32>| {
                for (place, found) in out.read().unwrap().iter().enumerate() {
                    assert_eq!(*found, group[place / 16 % 4 * 8 + place % 8], "{place} of {n}");
                }
            }
        );
    }
}

#[test]
fn loops_are_left_by_their_labels() {
    let queue = &queue();
    let values: Vec<u32> = (0..48).map(|i| i * 7 % 37).collect();
    let a = &array(queue, &values);
    for n in [0_u32, 1, 5, 7, 30] {
        let plain = language::labels_plain(n, &values);
        every_order!(
            queue,
            NdRange::new([48], [16]).unwrap(),
            language::labels,
            array(queue, &[0_u32; 48]),
            |out| (n, a, &mut out),
            |out: &Array<u32>| assert_eq!(out.read().unwrap()[..], plain, "{n}")
        );
    }
}

#[test]
fn types_have_limits_and_numbers_have_kinds() {
    let queue = &queue();
    let plain = language::limits_plain();
    let a = &array(queue, &plain.map(|row| row.0));
    every_order!(
        queue,
        NdRange::new([6], [6]).unwrap(),
        language::limits,
        (array(queue, &[0_u32; 6]), array(queue, &[0.0_f32; 6]), array(queue, &[0_u64; 6])),
        |arrays| (a, &mut arrays.0, &mut arrays.1, &mut arrays.2),
        |arrays: &(Array<u32>, Array<f32>, Array<u64>)| {
            assert_eq!(arrays.0.read().unwrap()[..], plain.map(|row| row.1));
            assert_eq!(arrays.1.read().unwrap()[..], plain.map(|row| row.2));
            assert_eq!(arrays.2.read().unwrap()[..], plain.map(|row| row.3));
        }
    );
}

#[test]
fn a_scalar_gives_the_length_of_local_memory() {
    let queue = &queue();
    let values: Vec<u32> = (0..64).collect();
    for (by, group) in [(3, 16), (8, 8), (0, 32)] {
        let plain = language::rotate_plain(by, group, &values);
        every_order!(
            queue,
            NdRange::new([64], [group as u64]).unwrap(),
            language::rotate,
            array(queue, &values),
            |a| (by as u64, &mut a),
            |a: &Array<u32>| assert_eq!(a.read().unwrap()[..], plain)
        );
    }
}

#[test]
fn functions_of_numbers() {
    let queue = &queue();
    let values: Vec<f32> = (1..40_u8).map(|i| f32::from(i) / 40.0).collect();
    let a = &array(queue, &values);
    every_order!(
        queue,
        NdRange::new([48], [16]).unwrap(),
        language::functions_of_numbers,
        array(queue, &[0.0_f32; 39 * 32]),
        |out| (a, &mut out),
        |out: &Array<f32>| {
            for (row, x) in out.read().unwrap().chunks(32).zip(&values) {
                let plain = language::functions_of_numbers_plain(f64::from(*x));
                for (place, (found, wanted)) in row.iter().zip(plain).enumerate() {
                    let error = (f64::from(*found) - wanted).abs();
                    assert!(error <= 4e-7 * wanted.abs().max(1.0), "{place} of {x}: {found}, not {wanted}");
                }
            }
        }
    );
}

#[test]
fn a_length_given_by_a_scalar_is_proven() {
    let range = NdRange::new([64], [16]).unwrap();
    assert_eq!(language::rotate.proof(&range, &[1, 64], &(3, ())), Proof::PROVEN);
    assert_eq!(language::rotate.proof(&range, &[1, 64], &(16, ())), Proof::PROVEN);
    assert!(matches!(language::rotate.proof(&range, &[1, 63], &(3, ())).bounds, Bounds::Checked { .. }));
    // The sum for the length wraps.
    assert_ne!(language::rotate.proof(&range, &[1, 64], &(u64::MAX - 3, ())), Proof::PROVEN);
}

#[test]
fn instances_of_a_kernel_have_their_types() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let (counts, values): (Vec<i64>, Vec<i64>) = ((0..20).collect(), (0..20).map(|i| 5 - i).collect());
    let bytes: Vec<u8> = counts.iter().map(|x| *x as u8).collect();
    let given = UsmVec::<u8, Host, _>::from_slice(&queue, &bytes).unwrap();
    let mut a = UsmVec::<i64, Host, _>::from_slice(&queue, &values).unwrap();
    let n = values.len() - 3;
    let launch = Launch::with_range(&queue, Range::new([20]).unwrap());
    let _ = launch.run(language::nodes::mix_i64_u8, (3, n, &given, &mut a)).unwrap();
    assert_eq!(a.read().unwrap()[..], language::mix_plain(3, n, &counts, &values));
}

/// Macros by example put numbers, types and expressions in invisible groups.
macro_rules! made {
    ($name:ident, $parameter:ty, $atomic:ty, $ty:ty, $count:literal, $value:expr) => {
        #[kernel(group = $count)]
        fn $name(a: $parameter, by: $ty, c: &[$atomic]) {
            #[local]
            let mut lm: [$ty; $count];
            let mut own: [$ty; $count] = [$value; $count];
            let last: $ty = $count;
            own[0] = $value * by;
            lm[local_id(0)] = own[0];
            barrier(LOCAL);
            a[global_id(0)] = lm[$count - 1 - local_id(0)] + last as $ty;
            c[0].fetch_add($value);
        }
    };
}

made!(made_by_example, &mut [u32], Atomic<u32>, u32, 4, 1 + 2);

#[test]
fn macros_by_example_make_kernels() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let mut a = UsmVec::<u32, Host, _>::zeroed(&queue, 8).unwrap();
    let mut c = UsmVec::<u32, Host, _>::zeroed(&queue, 1).unwrap();
    let range = NdRange::new([8], [4]).unwrap();
    let _ = Launch::new(&queue, range).run(made_by_example, (&mut a, 5, &mut c)).unwrap();
    assert_eq!(a.read().unwrap()[..], [(1 + 2) * 5 + 4; 8]);
    assert_eq!(c.read().unwrap()[..], [8 * 3]);
}

/// Items leave before a barrier together, and behind it one by one.
#[kernel(group = 8)]
fn leaving(n: u32, x: &[u32], o: &mut [u32]) {
    let i = global_id(0);
    o[i] = 1;
    for k in 0..3_u32 {
        if n > 7 + k {
            return;
        }
    }
    barrier(LOCAL);
    if n != 3 {
        barrier(LOCAL);
        if x[i] > 5 {
            return;
        }
    }
    o[i] = 2;
    if n == 4 {
        return;
    }
    o[i] = 3;
}

#[test]
fn an_item_that_has_returned_enters_no_later_phase() {
    let queue = &queue();
    let x = &array(queue, &[0_u32, 9, 3, 6, 5, 7, 2, 8, 1, 6, 0, 9, 4, 5, 6, 7]);
    for n in 2..9 {
        let wanted: Vec<u32> = x
            .read()
            .unwrap()
            .iter()
            .map(|x| {
                if n > 7 || n != 3 && *x > 5 {
                    1
                } else if n == 4 {
                    2
                } else {
                    3
                }
            })
            .collect();
        every_order!(
            queue,
            NdRange::new([16], [8]).unwrap(),
            leaving,
            array(queue, &[0_u32; 16]),
            |o| (n, x, &mut o),
            |o: &Array<u32>| assert_eq!(o.read().unwrap()[..], wanted, "{n}")
        );
    }
}
