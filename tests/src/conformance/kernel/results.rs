//! Results of kernels, and refusals of launches.

use usm_core::{Backend, Device, Host, QueueOrder, UsmVec};
use usm_kernel::sample::{
    BINS, histogram, histogram_plain, matmul, matmul_plain, reduce, reduce_plain, reverse, reverse_plain,
    running_sums, saxpy, saxpy_plain, scan_plain, sum,
};
use usm_kernel::{Launch, LaunchError, NdRange, Programmable, Range, RangeError};

use super::samples::{CountOdd, GroupOf, Hungry, Lookup, Mixed, Places, Widths};
use super::{queue, range, ready, ready_in_every_format, refused, runs_kernels, shared};
use crate::{Fixture, skip};

fn numbers(count: usize, step: usize) -> Vec<f32> {
    (0..count).map(|i| (i * step % 17) as f32 - 8.0).collect()
}

/// Local memory and a barrier, several groups.
pub fn reverse_is_the_plain_loop<B: Programmable>(fixture: &Fixture<'_, B>) {
    for ready in ready_in_every_format::<reverse, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        for (count, group) in [(1, 1), (10, 10), (1000, 10), (1024, 64), (4096, 256)] {
            let mut expected = numbers(count, 5);
            let mut a = shared(&queue, &expected);
            let range = range([count as u64], [group as u64]);
            let _ = Launch::new(&queue, range).run_on(&ready, reverse, (&mut a,)).expect("a launch");
            reverse_plain(&mut expected, group);
            assert_eq!(a.read().expect("a view")[..], expected, "{count} in groups of {group}");
        }
    }
}

/// Sums of groups, two launches.
pub fn reduce_is_the_plain_loop<B: Programmable>(fixture: &Fixture<'_, B>) {
    for ready in ready_in_every_format::<reduce, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        for (count, group) in [(0, 4), (1, 1), (17, 3), (4096, 7), (20_000, 64), (20_000, 1)] {
            let values = numbers(count, 5);
            let a = UsmVec::<f32, Host, B>::from_slice(&queue, &values).expect("an array");
            let found = sum(&ready, &queue, &a, group).expect("a sum");
            assert_eq!(found, reduce_plain(&values), "{count} in groups of {group}");
        }
    }
}

/// Two dimensions, two local arrays, a sum that outlives barriers; sizes that divide nothing.
pub fn matmul_is_the_plain_loop<B: Programmable>(fixture: &Fixture<'_, B>) {
    for ready in ready_in_every_format::<matmul, B, 2>(fixture.context) {
        let queue = queue(fixture, QueueOrder::InOrder);
        for [rows, inner, columns] in [[1, 1, 1], [16, 16, 16], [33, 17, 41], [5, 40, 3]] {
            let (a, b) = (numbers(rows * inner, 5), numbers(inner * columns, 7));
            let (device_a, device_b) = (shared(&queue, &a), shared(&queue, &b));
            let mut c = UsmVec::<f32, Device, B>::zeroed(&queue, rows * columns).expect("an array");
            let range = NdRange::covering([rows as u64, columns as u64], [16, 16]).expect("a range");
            let arguments = (rows as u64, inner as u64, columns as u64, &device_a, &device_b, &mut c);
            let _ = Launch::new(&queue, range).run_on(&ready, matmul, arguments).expect("a launch");
            let mut expected = vec![0.0; rows * columns];
            matmul_plain(inner, columns, &a, &b, &mut expected);
            assert_eq!(c.to_vec(&queue).expect("the result"), expected, "{rows} x {inner} x {columns}");
        }
    }
}

/// Counters in local memory, then additions of all groups to the same result.
pub fn histogram_is_the_plain_loop<B: Programmable>(fixture: &Fixture<'_, B>) {
    for ready in ready_in_every_format::<histogram, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        for (count, groups, group) in [(1, 1, 1), (5_000, 40, 16), (5_000, 1, 64), (300, 1, 256)] {
            let values: Vec<u8> =
                (0..count as u32).map(|i| (i.wrapping_mul(0x9E37_79B1) >> 16) as u8).collect();
            let device_values = shared(&queue, &values);
            let mut counts = shared(&queue, &[0_u32; BINS]);
            let launch = Launch::new(&queue, range([groups * group], [group]));
            let _ = launch.run_on(&ready, histogram, (&device_values, &mut counts)).expect("a launch");
            let mut expected = [0; BINS];
            histogram_plain(&values, &mut expected);
            assert_eq!(counts.read().expect("a view")[..], expected);
        }
    }
}

/// A scalar argument; with groups, and over a plain range that the runtime cuts.
pub fn saxpy_is_the_plain_loop<B: Programmable>(fixture: &Fixture<'_, B>) {
    for ready in ready_in_every_format::<saxpy, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        for count in [1, 251, 1024] {
            let (x, mut expected) = (numbers(count, 5), numbers(count, 7));
            let (device_x, mut y) = (shared(&queue, &x), shared(&queue, &expected));
            let whole = Range::new([count as u64]).expect("a range");
            let _ = Launch::with_range(&queue, whole)
                .run_on(&ready, saxpy, (0.5, &device_x, &mut y))
                .expect("a launch over items");
            let _ = Launch::new(&queue, range([count as u64], [1]))
                .run_on(&ready, saxpy, (2.0, &device_x, &mut y))
                .expect("a launch over groups");
            saxpy_plain(0.5, &x, &mut expected);
            saxpy_plain(2.0, &x, &mut expected);
            assert_eq!(y.read().expect("a view")[..], expected, "{count}");
        }
    }
}

/// Two kernels and several rounds; sizes on both sides of a part.
pub fn scan_is_the_plain_loop<B: Programmable>(fixture: &Fixture<'_, B>) {
    let (parts, carry) = (ready_in_every_format(fixture.context), ready_in_every_format(fixture.context));
    for (parts, carry) in parts.iter().zip(&carry) {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        for (count, group) in [(1, 2), (15, 2), (17, 16), (5_000, 5), (5_000, 64)] {
            let input: Vec<u32> = (0..count).map(|i| i % 1_000 + u32::MAX / 8).collect();
            let device_input = shared(&queue, &input);
            let mut output = UsmVec::<u32, Device, B>::zeroed(&queue, input.len()).expect("an array");
            let _ =
                running_sums((parts, carry), &queue, &device_input, &mut output, group).expect("launches");
            let mut expected = vec![0; input.len()];
            scan_plain(&input, &mut expected);
            assert_eq!(output.to_vec(&queue).expect("the result"), expected, "{count} in groups of {group}");
        }
    }
}

/// A range without groups is one group for the kernel, however the device divides it.
pub fn a_kernel_over_a_plain_range_is_in_one_group<B: Programmable>(fixture: &Fixture<'_, B>) {
    // A prime above the largest group of every device, so there are several groups.
    const ITEMS: usize = 8_209;
    for ready in ready_in_every_format::<GroupOf, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::InOrder);
        let mut groups = shared(&queue, &[7_u32; ITEMS]);
        let whole = Range::new([ITEMS as u64]).expect("a range");
        let _ = Launch::with_range(&queue, whole).run_on(&ready, GroupOf, (&mut groups,)).expect("a launch");
        assert!(groups.read().expect("a view").iter().all(|group| *group == 0));
    }
}

/// A table by value: two launches with different tables do not affect each other.
pub fn constant_memory_belongs_to_its_launch<B: Programmable>(fixture: &Fixture<'_, B>) {
    for lookup in ready_in_every_format::<Lookup, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::OutOfOrder);
        let places: Vec<u32> = (0..256).map(|i| i * 7).collect();
        let device_places = shared(&queue, &places);
        let tables = [1.0, 100.0].map(|factor| core::array::from_fn::<f32, 16, _>(|i| i as f32 * factor));
        let mut found = [shared(&queue, &[0.0_f32; 256]), shared(&queue, &[0.0_f32; 256])];
        for (table, found) in tables.iter().zip(&mut found) {
            let launch = Launch::new(&queue, range([256], [32]));
            let _ = launch.run_on(&lookup, Lookup, (*table, &device_places, found)).expect("a launch");
        }
        for (table, found) in tables.iter().zip(&found) {
            let expected: Vec<f32> = places.iter().map(|place| table[*place as usize % 16]).collect();
            assert_eq!(found.read().expect("a view")[..], expected);
        }
    }
}

/// Three local arrays of different widths, one of them zeroed, and a private one.
pub fn local_arrays_are_apart_and_aligned<B: Programmable>(fixture: &Fixture<'_, B>) {
    for mixed in ready_in_every_format::<Mixed, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::InOrder);
        let mut found = shared(&queue, &[0_u32; 96]);
        let _ =
            Launch::new(&queue, range([96], [32])).run_on(&mixed, Mixed, (&mut found,)).expect("a launch");
        let expected: Vec<u32> = (0..96).map(|i| (10_100 * (31 - i % 32)) + 3 * (i % 32)).collect();
        assert_eq!(found.read().expect("a view")[..], expected);
    }
}

/// The last dimension is the fastest one everywhere.
pub fn ids_in_three_dimensions_are_row_major<B: Programmable>(fixture: &Fixture<'_, B>) {
    for places in ready_in_every_format::<Places, B, 3>(fixture.context) {
        let queue = queue(fixture, QueueOrder::InOrder);
        let (global, local) = ([4_u32, 6, 10], [2_u32, 3, 5]);
        let mut found = shared(&queue, &[0_u32; 4 * 240]);
        let launch = Launch::new(&queue, range(global.map(u64::from), local.map(u64::from)));
        let _ = launch.run_on(&places, Places, (&mut found,)).expect("a launch");
        let found = found.read().expect("a view");
        for i in 0..240_u32 {
            let ids = [i / 60, i / 10 % 6, i % 10];
            let [l0, l1, l2] = [0, 1, 2].map(|d| ids[d] % local[d]);
            let expected = [ids[0], ids[1], ids[2], (l0 * 3 + l1) * 5 + l2];
            assert_eq!(found[4 * i as usize..][..4], expected, "item {i}");
        }
    }
}

/// One to eight bytes, and a structure of twelve.
pub fn values_of_every_width_arrive<B: Programmable>(fixture: &Fixture<'_, B>) {
    for widths in ready_in_every_format::<Widths, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::InOrder);
        let mut found = shared(&queue, &[0.0_f64; 4]);
        let big = 1_u64 << 40;
        let arguments = (&mut found, 7_u8, 300_u16, 70_000_u32, big, 0.5_f32, 0.25_f64, [1.0_f32, 2.0, 4.0]);
        let _ = Launch::new(&queue, range([4], [2])).run_on(&widths, Widths, arguments).expect("a launch");
        let expected = 7.0 + 300.0 + 70_000.0 + big as f64 + 0.75 + 7.0;
        assert_eq!(found.read().expect("a view")[..], [expected; 4]);
    }
}

/// All items of all groups change one element.
pub fn atomic_additions_are_not_lost<B: Programmable>(fixture: &Fixture<'_, B>) {
    for count_odd in ready_in_every_format::<CountOdd, B, 1>(fixture.context) {
        let queue = queue(fixture, QueueOrder::InOrder);
        let values = shared(&queue, &(0..4096_u32).map(|i| i / 3).collect::<Vec<_>>());
        let mut count = shared(&queue, &[5_u32]);
        let launch = Launch::new(&queue, range([4096], [64]));
        let _ = launch.run_on(&count_odd, CountOdd, (&values, &mut count)).expect("a launch");
        let odd = (0..4096_u32).filter(|i| i / 3 % 2 == 1).count() as u32;
        assert_eq!(count.read().expect("a view")[..], [5 + odd]);
    }
}

/// Nothing runs, and work that waits for the launch continues.
pub fn a_range_of_no_items_runs_nothing<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(ready) = ready::<reverse, B, 1>(fixture.context) else { return };
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    let mut a = shared(&queue, &[1.0_f32; 8]);
    let event = Launch::new(&queue, range([0], [4])).run_on(&ready, reverse, (&mut a,)).expect("a launch");
    event.wait().expect("done");
    assert_eq!(a.read().expect("a view")[..], [1.0; 8]);
}

/// The range itself refuses it, without a device.
pub fn a_global_size_that_is_no_multiple_is_refused<B: Backend>(_: &Fixture<'_, B>) {
    let refused = refused(NdRange::new([10], [4]));
    assert_eq!(refused, RangeError::NotDivisible { dimension: 0, global: 10, local: 4 });
}

/// The error has both numbers; the array is unchanged.
pub fn a_group_above_the_limit_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(ready) = ready::<saxpy, B, 1>(fixture.context) else { return };
    let queue = queue(fixture, QueueOrder::InOrder);
    let function = ready.function().map_or(u64::MAX, |function| function.info().max_work_group_size);
    let limit = fixture.context.info().max_work_group_size.min(function);
    let Some(size) = limit.checked_add(1).filter(|size| *size <= 1 << 16) else {
        return skip::limit(fixture.context.info().backend, "groups have no limit");
    };
    let (x, mut y) = (shared(&queue, &vec![1.0; size as usize]), shared(&queue, &vec![1.0; size as usize]));
    let launch = Launch::new(&queue, range([size], [size]));
    let error = refused(launch.run_on(&ready, saxpy, (1.0, &x, &mut y)));
    assert_eq!(error, LaunchError::GroupTooLarge { size, limit });
    assert!(y.read().expect("a view").iter().all(|value| *value == 1.0));
}

/// The error has both numbers.
pub fn local_memory_above_the_limit_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(hungry) = ready(fixture.context) else { return };
    let queue = queue(fixture, QueueOrder::InOrder);
    let limit = fixture.context.info().local_mem_size;
    let Some(needed) = limit.checked_add(1).filter(|needed| *needed <= 1 << 30) else {
        return skip::limit(fixture.context.info().backend, "local memory has no limit");
    };
    let mut a = shared(&queue, &[0_u32]);
    let kernel = Hungry { bytes: needed as usize };
    let error = refused(Launch::new(&queue, range([1], [1])).run_on(&hungry, kernel, (&mut a,)));
    assert_eq!(error, LaunchError::LocalMemoryTooLarge { size: needed, limit });
}

/// The error has the position and both numbers; nothing runs.
pub fn an_array_shorter_than_the_range_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(ready) = ready::<GroupOf, B, 1>(fixture.context) else { return };
    let queue = queue(fixture, QueueOrder::InOrder);
    let mut groups = shared(&queue, &[0_u32; 63]);
    let error = refused(Launch::new(&queue, range([64], [8])).run_on(&ready, GroupOf, (&mut groups,)));
    let LaunchError::Argument { kernel, error } = error else { panic!("{error}") };
    assert_eq!((kernel.as_str(), error.argument, error.expected, error.found), ("group_of", 0, 64, 63));
}

/// The kernel declares the size of its groups.
pub fn a_group_of_another_shape_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    let Some(ready) = ready::<matmul, B, 2>(fixture.context) else { return };
    let queue = queue(fixture, QueueOrder::InOrder);
    let (a, b, mut c) = (shared(&queue, &[1.0; 16]), shared(&queue, &[1.0; 16]), shared(&queue, &[0.0; 16]));
    let launch = Launch::new(&queue, range([16, 16], [16, 8]));
    let error = refused(launch.run_on(&ready, matmul, (4, 4, 4, &a, &b, &mut c)));
    assert_eq!(error, LaunchError::WrongGroup { dimension: 1, expected: 16, found: 8 });
}

/// A kernel built for one context cannot be launched in another.
pub fn a_kernel_of_another_context_is_refused<B: Programmable>(fixture: &Fixture<'_, B>) {
    if !runs_kernels(fixture.context) {
        return;
    }
    let Some(ready) = ready::<saxpy, B, 1>(fixture.other) else { return };
    if ready.function().is_none() {
        return skip::limit(fixture.context.info().backend, "a host body belongs to no context");
    }
    let queue = queue(fixture, QueueOrder::InOrder);
    let (x, mut y) = (shared(&queue, &[1.0_f32; 8]), shared(&queue, &[1.0_f32; 8]));
    let error = refused(Launch::new(&queue, range([8], [8])).run_on(&ready, saxpy, (1.0, &x, &mut y)));
    let (expected, found) = (fixture.context.id(), fixture.other.id());
    let LaunchError::Memory(error) = error else { panic!("{error}") };
    assert_eq!(error.kind, usm_core::ErrorKind::WrongContext { expected, found });
}
