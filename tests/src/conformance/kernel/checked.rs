//! Launches that prove too little run checked: an index outside is an error with its place.

use std::time::Duration;

use usm_core::{Device, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{
    Bounds, CheckedCode, DeviceCode, Group, IndexOutside, Kernel, LaunchError, NdRange, Order, Programmable,
    Proof, Subject, Values, Write,
};

use super::{queue, range, ready_in_every_format, refused, shared};
use crate::Fixture;

/// Indices from memory, which no launch proves: reads, writes of narrow elements, local and
/// constant memory, and atomics whose result is used.
#[kernel(group = 4)]
fn gather(
    index: &[u32],
    from: &[u8],
    table: &[i16; 4],
    sums: &[Atomic<u64>],
    shift: u64,
    to: &mut [i16],
    before: &mut [u64],
) {
    #[local]
    let mut lm: [bool; 4];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = from[index[i] as u64] > 9;
    barrier(LOCAL);
    let other = lm[(index[i] & 7) as u64];
    let old = sums[index[i] as u64].fetch_add(1);
    before[i] = old;
    to[i + shift] = (if other { table[(index[i] & 3) as u64] } else { -1 }) + (from[index[i] as u64] as i16);
}

/// Follows a list through memory. For indices outside, only the check ends the loop.
#[kernel]
fn follow(next: &[u32], steps: &mut [u32]) {
    let i = global_id(0);
    let mut at = i as u32;
    let mut count = 0_u32;
    while next[at as u64] != at {
        at = next[at as u64];
        count += 1;
    }
    steps[i] = count;
}

/// A group operation on values at indices that no launch proves.
#[kernel(group = 8, sub_group = 4)]
fn collected(index: &[u32], from: &[i32], sums: &mut [i32], before: &mut [i32], most: &mut [i32]) {
    let i = global_id(0);
    let x = from[index[i] as u64];
    let sum = group_reduce(x, ADD);
    let is_any = group_any(x > 100);
    sums[i] = if is_any { -1 } else { sum };
    before[i] = group_exclusive_scan(x, ADD);
    most[i] = sub_group_reduce(from[index[i] as u64], MAX);
}

/// Group operations give the same results in checked code; an index outside reads as 0.
pub fn one_source_collects_checked<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<collected, B, 1>(fixture.context) {
        for wrong in [None, Some(5)] {
            if wrong.is_some() && ready.function().is_none() {
                continue;
            }
            let mut indices: Vec<u32> = (0..16).map(|i| i * 7 % 16).collect();
            let values: Vec<i32> = (0..16).map(|i| i * 3 - 20).collect();
            let mut read: Vec<i32> = indices.iter().map(|index| values[*index as usize]).collect();
            if let Some(item) = wrong {
                (indices[item], read[item]) = (u32::MAX, 0);
            }
            let (index, from) = (shared(&queue, &indices), shared(&queue, &values));
            let mut results = [(); 3].map(|()| shared(&queue, &[9_i32; 16]));
            let [sums, before, most] = &mut results;
            let launch = Launch::new(&queue, range([16], [8]));
            let event = launch.run_on(&ready, collected, (&index, &from, sums, before, most));
            let ended = event.expect("a launch").wait();
            assert_eq!(ended.is_err(), wrong.is_some(), "{ended:?}");
            let [sums, before, most] = results.map(|result| result.read().expect("a view").to_vec());
            for (group, read) in read.chunks(8).enumerate() {
                for (l, _) in read.iter().enumerate() {
                    let i = group * 8 + l;
                    assert_eq!(sums[i], read.iter().sum::<i32>(), "item {i}");
                    assert_eq!(before[i], read[..l].iter().sum::<i32>(), "item {i}");
                    assert_eq!(most[i], *read[l / 4 * 4..][..4].iter().max().expect("four"), "item {i}");
                }
            }
        }
    }
}

/// Reads outside in loops: one item alone, and all items of a group together.
#[kernel(group = 4)]
fn list(next: &[u32], index: &[u32], steps: &mut [u32], strides: &mut [u64]) {
    #[local]
    let mut lm: [u32; 4];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = index[index[i] as u64];
    let mut stride = 1_u64;
    while stride * 2 < local_size(0) {
        stride *= 2;
    }
    let mut count = 0_u32;
    while stride > 0 {
        barrier(LOCAL);
        stride /= 2;
        count += 1;
    }
    let mut at = 0_u32;
    while next[at as u64] != at {
        barrier(LOCAL);
        at = next[at as u64];
        count += 1;
    }
    steps[i] = count;
    strides[i] = stride;
}

/// An item outside leaves its loop at once. If the loop contains barriers, or barriers depend on
/// it, only the whole group leaves.
pub fn one_source_leaves_loops_with_all_of_a_group<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<list, B, 1>(fixture.context) {
        if ready.function().is_none() {
            continue;
        }
        for (wrong, last, count) in [(None, 2, 4), (Some(1), 2, 4), (None, 9, 6), (Some(6), 9, 6)] {
            let mut indices = [0_u32; 8];
            if let Some(item) = wrong {
                indices[item] = u32::MAX;
            }
            let (next, index) = (shared(&queue, &[1, 2, last]), shared(&queue, &indices));
            let (mut steps, mut strides) = (shared(&queue, &[99_u32; 8]), shared(&queue, &[99_u64; 8]));
            let launch = Launch::new(&queue, range([8], [4]));
            let event = launch.run_on(&ready, list, (&next, &index, &mut steps, &mut strides));
            let ended = event.expect("a launch").wait();
            assert_eq!(ended.is_err(), wrong.is_some() || last == 9, "{ended:?}");
            assert_eq!(steps.read().expect("a view")[..], [count; 8], "{wrong:?} {last}");
            assert_eq!(strides.read().expect("a view")[..], [0; 8]);
        }
    }
}

/// A kernel whose checked code does not compile.
#[derive(Clone, Copy, Debug)]
struct WrongChecks;

impl Kernel<1> for WrongChecks {
    const NAME: &'static str = "wrong_checks";
    type Arguments = (Write<u32>,);
    type Local = ();

    fn proof(&self, range: &NdRange<1>, lengths: &[usize], _: &Values<Self::Arguments>) -> Proof {
        match range.global().items() <= lengths[0] as u64 {
            true => Proof::PROVEN,
            false => Proof::checked("here", "the range is longer"),
        }
    }

    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (a,): (&mut [u32],), (): ()) {
        for item in group.items() {
            a[item.global()] += 1;
        }
    }
}

// SAFETY: one element an item, proven to be inside; the checked code does not build.
unsafe impl DeviceCode<1> for WrongChecks {
    const OPENCL_C: Option<&'static str> =
        Some("__kernel void wrong_checks(__global uint *a) { a[get_global_id(0)] += 1; }");
    const CUDA_C: Option<&'static str> = Some(
        "extern \"C\" __global__ void wrong_checks(unsigned *a) { a[blockIdx.x * blockDim.x + threadIdx.x] += 1; }",
    );
    const CHECKED: Option<CheckedCode> = Some(CheckedCode {
        function: "none",
        opencl_c: Some("no code"),
        cuda_c: Some("no code"),
        spir_v: None,
        ptx: None,
        lengths: &[(0, 1)],
        places: &[],
    });
    type Numbers = [u64; 0];

    fn numbers(&self, _: &NdRange<1>, _: &[usize]) -> [u64; 0] {
        []
    }
}

/// The first launch that needs checks builds the checked function; proven launches do without.
pub fn one_source_builds_checks_when_needed<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<WrongChecks, B, 1>(fixture.context) {
        let Some(function) = ready.function() else { continue };
        assert_eq!(function.name(), WrongChecks::FUNCTION);
        let mut a = shared(&queue, &[1_u32; 8]);
        for (items, is_proven) in [(8, true), (9, false), (8, true)] {
            let launch = Launch::with_range(&queue, Range::new([items]).expect("a range"));
            match launch.run_on(&ready, WrongChecks, (&mut a,)) {
                Ok(event) => event.wait().expect("all inside"),
                Err(error) => {
                    assert!(!is_proven && error == LaunchError::CheckedCode { kernel: "wrong_checks" });
                    assert!(error.to_string().contains("`Executable::checked` says why"), "{error}");
                    let why = ready.checked().expect_err("no code");
                    assert!(!why.to_string().is_empty());
                }
            }
        }
        assert_eq!(a.read().expect("a view")[..], [3; 8]);
    }
}

/// The same results as unchecked if all indices are inside.
pub fn one_source_runs_checked_what_is_not_proven<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    for ready in ready_in_every_format::<gather, B, 1>(fixture.context) {
        let (indices, bytes) = ([0_u32, 3, 2, 1, 0, 1, 2, 3], [7_u8, 8, 200, 10]);
        let (index, from) = (shared(&queue, &indices), shared(&queue, &bytes));
        let (mut sums, mut to) = (shared(&queue, &[0_u64; 4]), shared(&queue, &[0_i16; 9]));
        let mut before = shared(&queue, &[9_u64; 8]);
        let table = [100, 200, 300, 400];
        let range = range([8], [4]);
        let proof = Launch::new(&queue, range)
            .proof(gather, (&index, &from, table, &mut sums, 1, &mut to, &mut before));
        assert!(matches!(&proof, Ok(proof) if matches!(proof.bounds, Bounds::Checked { .. })), "{proof:?}");
        let arguments = (&index, &from, table, &mut sums, 1, &mut to, &mut before);
        let strict = refused(Launch::new(&queue, range).require_proof().run_on(&ready, gather, arguments));
        assert!(matches!(strict, LaunchError::Unproven { kernel: "gather", .. }), "{strict}");
        let arguments = (&index, &from, table, &mut sums, 1, &mut to, &mut before);
        let event = Launch::new(&queue, range).run_on(&ready, gather, arguments).expect("a launch");
        event.wait().expect("all inside");
        assert_eq!(sums.read().expect("a view")[..], [2; 4]);
        assert_eq!(before.read().expect("a view").iter().sum::<u64>(), 4, "each element once 0 and once 1");
        let over_nine = |group: usize, l: u32| bytes[indices[group * 4 + l as usize] as usize] > 9;
        let expected = indices.iter().enumerate().map(|(i, index)| {
            let first = if over_nine(i / 4, *index) { table[*index as usize] } else { -1 };
            first + i16::from(bytes[*index as usize])
        });
        assert_eq!(to.read().expect("a view")[1..], expected.collect::<Vec<_>>());
    }
}

/// After the event is dropped, the index outside is reported once: by the next wait for a written
/// array, by the in-order queue, or by `synchronize`.
pub fn one_source_keeps_an_index_outside_after_its_event_is_dropped<B: Programmable>(
    fixture: &Fixture<'_, B>,
) {
    const LIMIT: Duration = Duration::from_secs(20);
    let context = fixture.context;
    let outside = |what: usm_core::Result<()>, by: &str| {
        let error = what.expect_err(by);
        let numbers = IndexOutside::of(&error).map(|outside| (outside.index, outside.len));
        assert_eq!(numbers, Some((9, 4)), "{by}: {error}");
    };
    for ready in ready_in_every_format::<follow, B, 1>(context) {
        if ready.function().is_none() {
            continue;
        }
        context.synchronize(LIMIT).expect("nothing is left of others");
        for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
            for way in 0..6 {
                let queue = queue(fixture, order);
                let next = shared(&queue, &[1_u32, 2, 2, 9]);
                let mut device = UsmVec::<u32, Device, B>::from_slice(&queue, &[9; 4]).expect("an array");
                let mut steps = shared(&queue, &[9_u32; 4]);
                let over = || Launch::with_range(&queue, Range::new([4]).expect("a range"));
                let event = match way {
                    0 => over().run_on(&ready, follow, (&next, &mut device)),
                    _ => over().run_on(&ready, follow, (&next, &mut steps)),
                };
                let event = event.expect("a launch");
                if way == 5 {
                    outside(event.wait(), "its event");
                }
                drop(event);
                match way {
                    0 => outside(device.to_vec(&queue).map(drop), "a copy of the array"),
                    1 => outside(steps.read().map(drop), "a view"),
                    2 if order == QueueOrder::InOrder => outside(queue.wait(), "the queue"),
                    3 => {
                        drop((steps, next, queue));
                        outside(context.synchronize(LIMIT), "the context, without arrays and queue");
                        context.synchronize(LIMIT).expect("it was said");
                        continue;
                    }
                    5 => {}
                    _ => outside(context.synchronize(LIMIT), "the context"),
                }
                // Once.
                assert_eq!(next.read().expect("a view of what was only read")[3], 9);
                queue.wait().expect("it was said");
                context.synchronize(LIMIT).expect("it was said");
                device.to_vec(&queue).expect("it was said");
                let expected = if way == 0 { [9; 3] } else { [2, 1, 0] };
                assert_eq!(steps.read().expect("it was said")[..3], expected, "way {way}");
            }
        }
    }
}

/// On a device the wait reports the place and both numbers. On the host it is a panic.
pub fn one_source_names_an_index_outside<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    for ready in ready_in_every_format::<gather, B, 1>(fixture.context) {
        if ready.function().is_none() {
            continue;
        }
        // Item, its index, the shift that leads the last item outside; array, index, length.
        for (item, wrong, shift, array, number, len) in
            [(3, 4, 0, "from", 4, 4), (5, u32::MAX, 0, "from", u64::from(u32::MAX), 4), (0, 0, 1, "to", 8, 8)]
        {
            let mut indices = [0_u32, 3, 2, 1, 0, 1, 2, 3];
            indices[item] = wrong;
            let (index, from) = (shared(&queue, &indices), shared(&queue, &[7_u8, 8, 200, 10]));
            let (mut sums, mut to) = (shared(&queue, &[0_u64; 4]), shared(&queue, &[0_i16; 8]));
            let mut before = shared(&queue, &[9_u64; 8]);
            let arguments = (&index, &from, [1, 2, 3, 4], &mut sums, shift, &mut to, &mut before);
            let launch = Launch::new(&queue, range([8], [4]));
            let event = launch.run_on(&ready, gather, arguments).expect("a launch");
            for _ in 0..2 {
                let error = event.wait().expect_err("an index is outside");
                let Some(IndexOutside { at, index, len: found }) = IndexOutside::of(&error) else {
                    panic!("{error}")
                };
                let Subject::Array(name) = at.subject else { panic!("{error}") };
                // The device decides which item comes first, and so which array is reported.
                assert!(at.place.contains("checked.rs:"), "{error}");
                assert_eq!((at.kernel, index, found), ("gather", number, len), "{error}");
                assert!(name == array || name == "sums", "{error}");
                assert!(error.to_string().contains(&format!("index {number} of `{name}`")), "{error}");
            }
            assert!(event.status().is_err());
            let outside = usize::from(wrong > 3);
            assert_eq!(sums.read().expect("a view").iter().sum::<u64>(), 8 - outside as u64);
            assert_eq!(before.read().expect("a view").iter().filter(|old| **old > 1).count(), 0);
        }
    }
    for ready in ready_in_every_format::<follow, B, 1>(fixture.context) {
        let (next, mut steps) = (shared(&queue, &[1_u32, 2, 2, 9]), shared(&queue, &[9_u32; 4]));
        let launch = Launch::with_range(&queue, Range::new([3]).expect("a range"));
        let event = launch.run_on(&ready, follow, (&next, &mut steps)).expect("a launch");
        event.wait().expect("all inside");
        assert_eq!(steps.read().expect("a view")[..], [2, 1, 0, 9]);
        if ready.function().is_some() {
            let launch = Launch::with_range(&queue, Range::new([4]).expect("a range"));
            let event = launch.run_on(&ready, follow, (&next, &mut steps)).expect("a launch");
            let error = event.wait().expect_err("an index is outside").to_string();
            assert!(error.contains("index 9 of `next`, which has 4 elements"), "{error}");
            assert_eq!(steps.read().expect("a view")[..3], [2, 1, 0]);
        }
    }
}
