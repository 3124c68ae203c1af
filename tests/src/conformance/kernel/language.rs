//! The whole kernel language on every device and from every code: the kernels of usm-kernel's own
//! tests.

use usm_core::{BackendKind, QueueOrder};
use usm_kernel::Programmable;
use usm_kernel::prelude::*;

use super::{queue, range, ready_in_every_format, shared};
use crate::{Fixture, skip};

#[path = "../../../../usm-kernel/tests/common/language.rs"]
mod kernels;

/// Inlined functions: returns inside branches and loops, barriers, arrays of each memory, a bool.
pub fn one_source_with_functions<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let values: Vec<u32> = (0..96).map(|i| i * 37 % 50).collect();
    for ready in ready_in_every_format::<kernels::functions, B, 1>(fixture.context) {
        for (flag, low) in [(true, -3), (false, 0)] {
            let a = shared(&queue, &values);
            let (mut out, mut found) = (shared(&queue, &[0_u32; 96]), shared(&queue, &[0_u64; 96]));
            let arguments = (flag, &a, low, &mut out, &mut found);
            let launch = Launch::new(&queue, range([96], [48]));
            let _ = launch.run_on(&ready, kernels::functions, arguments).expect("a launch");
            let plain = kernels::functions_plain(flag, &values, low);
            assert_eq!(out.read().expect("a view")[..], plain.0);
            assert_eq!(found.read().expect("a view")[..], plain.1);
        }
    }
}

/// Group operations: reductions, scans, broadcasts, in one and two dimensions.
pub fn one_source_with_collectives<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<kernels::collect, B, 1>(fixture.context) {
        let values: Vec<i32> = (0..144).map(|i| i * 31 % 96 - 40).collect();
        let (a, zeros) = (shared(&queue, &values), [0_i32; 144]);
        let [mut sums, mut scans, mut befores] = core::array::from_fn(|_| shared(&queue, &zeros));
        let mut truths = shared(&queue, &[0_u32; 144]);
        let arguments = (&a, &mut sums, &mut scans, &mut befores, &mut truths);
        let launch = Launch::new(&queue, range([144], [48]));
        let _ = launch.run_on(&ready, kernels::collect, arguments).expect("a launch");
        let plain = kernels::collect_plain(&values);
        for (found, plain) in [&sums, &scans, &befores].into_iter().zip(&plain) {
            let found: Vec<i64> =
                found.read().expect("a view").iter().map(|value| i64::from(*value)).collect();
            assert_eq!(found, *plain);
        }
        let truths: Vec<i64> = truths.read().expect("a view").iter().map(|value| i64::from(*value)).collect();
        assert_eq!(truths, plain[3]);
    }
    for ready in ready_in_every_format::<kernels::collect_plane, B, 2>(fixture.context) {
        let values: Vec<u32> = (0..96).map(|i| i * 29 % 41).collect();
        let (a, mut out) = (shared(&queue, &values), shared(&queue, &[0_u32; 96]));
        let launch = Launch::new(&queue, range([8, 12], [4, 6]));
        let _ = launch.run_on(&ready, kernels::collect_plane, (&a, &mut out)).expect("a launch");
        assert_eq!(out.read().expect("a view")[..], kernels::collect_plane_plain(&values));
    }
}

/// Sub-group operations; every device forms the same sub-groups.
pub fn one_source_with_sub_groups<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<kernels::sub_groups, B, 2>(fixture.context) {
        let values: Vec<i32> = (0..192).map(|i| i * 31 % 96 - 40).collect();
        let (a, mut out) = (shared(&queue, &values), shared(&queue, &[0_i64; 192]));
        let mut moved = shared(&queue, &[0_i32; 192]);
        let launch = Launch::new(&queue, range([8, 24], [4, 12]));
        let arguments = (&a, 24, &mut out, &mut moved);
        let event = launch.run_on(&ready, kernels::sub_groups, arguments).expect("a launch");
        event.wait().expect("all inside");
        let plain = kernels::sub_groups_plain(&values);
        assert_eq!(out.read().expect("a view")[..], plain.0);
        assert_eq!(moved.read().expect("a view")[..], plain.1);
    }
}

/// Floating-point atomics in local and global memory; compare-exchange of 32 and 64 bits; a fence.
pub fn one_source_with_every_atomic<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<kernels::atomics, B, 1>(fixture.context) {
        let values: Vec<f32> = (0..96_u8).map(|i| f32::from(i) - 20.0).collect();
        let sum: f32 = values.iter().sum();
        let (a, mut totals) = (shared(&queue, &values), shared(&queue, &[0.0_f32; 4]));
        let (mut words, mut wide) = (shared(&queue, &[0_u32; 3]), shared(&queue, &[0_i64; 2]));
        let launch = Launch::new(&queue, range([96], [48]));
        let arguments = (&a, &mut totals, &mut words, &mut wide);
        let _ = launch.run_on(&ready, kernels::atomics, arguments).expect("a launch");
        assert_eq!(totals.read().expect("a view")[..], [sum, 75.0, -20.0, -sum]);
        assert_eq!(words.read().expect("a view")[..], [95 * 48, 95, 96]);
        assert_eq!(wide.read().expect("a view")[..], [-95 * 48, 7]);
    }
}

/// Instances of a kernel with type parameters, which it passes to a function; a `usize`.
pub fn one_source_with_type_parameters<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let (counts, values): (Vec<i64>, Vec<i64>) =
        ((0..64).map(|i| i * 5 % 64).collect(), (0..64).map(|i| i - 30).collect());
    let plain = kernels::mix_plain(3, 60, &counts, &values);
    let n = values.len() - 4;
    for ready in ready_in_every_format::<kernels::mix_f32_u32, B, 1>(fixture.context) {
        let (counts, values): (Vec<u32>, Vec<f32>) =
            (counts.iter().map(|x| *x as u32).collect(), values.iter().map(|x| *x as f32).collect());
        let (counts, mut a) = (shared(&queue, &counts), shared(&queue, &values));
        let launch = Launch::with_range(&queue, Range::new([64]).expect("a range"));
        let _ = launch.run_on(&ready, kernels::mix_f32_u32, (3.0, n, &counts, &mut a)).expect("a launch");
        let found: Vec<i64> = a.read().expect("a view").iter().map(|x| *x as i64).collect();
        assert_eq!(found, plain);
    }
    for ready in ready_in_every_format::<kernels::mix_i64_u8, B, 1>(fixture.context) {
        let counts: Vec<u8> = counts.iter().map(|x| *x as u8).collect();
        let (counts, mut a) = (shared(&queue, &counts), shared(&queue, &values));
        let launch = Launch::with_range(&queue, Range::new([64]).expect("a range"));
        let _ = launch.run_on(&ready, kernels::mix_i64_u8, (3, n, &counts, &mut a)).expect("a launch");
        assert_eq!(a.read().expect("a view")[..], plain);
    }
}

/// Atomics with memory orders: the last item sees all stores.
pub fn one_source_with_orders<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<kernels::ordered, B, 1>(fixture.context) {
        for _ in 0..20 {
            let values: Vec<u32> = (0..4096).map(|i| i * 37 % 1000).collect();
            let (a, mut parts) = (shared(&queue, &values), shared(&queue, &[0_u32; 4096]));
            let (mut done, mut total) = (shared(&queue, &[0_u32; 1]), shared(&queue, &[0_u32; 2]));
            let launch = Launch::new(&queue, range([4096], [16]));
            let arguments = (&a, &mut parts, &mut done, &mut total);
            let _ = launch.run_on(&ready, kernels::ordered, arguments).expect("a launch");
            assert_eq!(total.read().expect("a view")[..], [values.iter().sum(), 4095]);
            assert_eq!(done.read().expect("a view")[..], [4096]);
        }
    }
}

/// Sums and private arrays that outlive barriers.
pub fn one_source_with_sums_across_barriers<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let values: Vec<u32> = (0..50).map(|i| i * 17 % 23).collect();
    for ready in ready_in_every_format::<kernels::sums, B, 2>(fixture.context) {
        let (a, mut out) = (shared(&queue, &values), shared(&queue, &[0_u32; 128]));
        let launch = Launch::new(&queue, range([8, 16], [4, 8]));
        let _ = launch.run_on(&ready, kernels::sums, (49, &a, &mut out)).expect("a launch");
        let group = kernels::sums_plain(49, &values);
        for (place, found) in out.read().expect("a view").iter().enumerate() {
            assert_eq!(*found, group[place / 16 % 4 * 8 + place % 8], "{place}");
        }
    }
}

/// Loops that are left by their labels.
pub fn one_source_with_labels<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let values: Vec<u32> = (0..48).map(|i| i * 7 % 37).collect();
    for ready in ready_in_every_format::<kernels::labels, B, 1>(fixture.context) {
        for n in [0_u32, 5, 30] {
            let (a, mut out) = (shared(&queue, &values), shared(&queue, &[0_u32; 48]));
            let launch = Launch::new(&queue, range([48], [16]));
            let _ = launch.run_on(&ready, kernels::labels, (n, &a, &mut out)).expect("a launch");
            assert_eq!(out.read().expect("a view")[..], kernels::labels_plain(n, &values), "{n}");
        }
    }
}

/// Constants of types, infinity, what is no number, and the bits of numbers.
pub fn one_source_with_limits<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let plain = kernels::limits_plain();
    for ready in ready_in_every_format::<kernels::limits, B, 1>(fixture.context) {
        let (a, mut kinds) = (shared(&queue, &plain.map(|row| row.0)), shared(&queue, &[0_u32; 6]));
        let (mut floats, mut words) = (shared(&queue, &[0.0_f32; 6]), shared(&queue, &[0_u64; 6]));
        let launch = Launch::new(&queue, range([6], [6]));
        let arguments = (&a, &mut kinds, &mut floats, &mut words);
        let _ = launch.run_on(&ready, kernels::limits, arguments).expect("a launch");
        assert_eq!(kinds.read().expect("a view")[..], plain.map(|row| row.1));
        assert_eq!(floats.read().expect("a view")[..], plain.map(|row| row.2));
        assert_eq!(words.read().expect("a view")[..], plain.map(|row| row.3));
    }
}

/// Local memory whose length a scalar gives.
pub fn one_source_with_sized_local_memory<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let values: Vec<u32> = (0..64).collect();
    for ready in ready_in_every_format::<kernels::rotate, B, 1>(fixture.context) {
        for (by, group) in [(3, 16), (8, 8), (0, 32)] {
            let mut a = shared(&queue, &values);
            let launch = Launch::new(&queue, range([64], [group as u64]));
            let _ = launch.run_on(&ready, kernels::rotate, (by as u64, &mut a)).expect("a launch");
            assert_eq!(a.read().expect("a view")[..], kernels::rotate_plain(by, group, &values));
        }
    }
}

/// Mathematical functions, within the error bounds of OpenCL's full profile.
pub fn one_source_with_functions_of_numbers<B: Programmable>(fixture: &Fixture<'_, B>) {
    let backend = fixture.context.info().backend;
    // The test drivers interpret PTX and SPIR-V, but only few mathematical functions.
    let driver = match backend {
        BackendKind::Cuda | BackendKind::Hip => "USM_CUDA_DRIVER",
        BackendKind::LevelZero => "USM_LEVEL_ZERO_DRIVER",
        _ => "",
    };
    if !driver.is_empty() && std::env::var_os(driver).is_some() {
        skip::limit(backend, "functions of numbers: the driver of the tests has few of them");
        return;
    }
    let queue = queue(fixture, QueueOrder::InOrder);
    let values: Vec<f32> = (1..40_u8).map(|i| f32::from(i) / 40.0).collect();
    for ready in ready_in_every_format::<kernels::functions_of_numbers, B, 1>(fixture.context) {
        let (a, mut out) = (shared(&queue, &values), shared(&queue, &[0.0_f32; 39 * 32]));
        let launch = Launch::new(&queue, range([48], [16]));
        let _ = launch.run_on(&ready, kernels::functions_of_numbers, (&a, &mut out)).expect("a launch");
        for (row, x) in out.read().expect("a view").chunks(32).zip(&values) {
            let plain = kernels::functions_of_numbers_plain(f64::from(*x));
            for (place, (found, wanted)) in row.iter().zip(plain).enumerate() {
                let error = (f64::from(*found) - wanted).abs();
                // 16 units in the last place, of a number that is at least 1/8.
                assert!(error <= 2e-6 * wanted.abs().max(0.125), "{place} of {x}: {found}, not {wanted}");
            }
        }
    }
}
