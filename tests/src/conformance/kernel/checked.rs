//! Launches that prove too little: they run checked, and what is outside is an error with a place.

use std::time::Duration;

use usm_core::{Device, ErrorKind, QueueOrder, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{LaunchError, Programmable, Proof};

use super::{queue, range, ready_in_every_format, refused, shared};
use crate::Fixture;

/// Indices from memory, which no launch proves: reads, writes of narrow elements, local and
/// constant memory, atomic operations whose result counts.
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

/// A list that is followed through memory. Outside of it nothing ends the loop but the check.
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

/// The same results where all indices are inside, though nothing proves it.
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
        assert!(matches!(proof, Ok(Proof::Unproven { .. })), "{proof:?}");
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

/// Who drops the event hears of an index outside once: by the next wait for an array that the
/// launch wrote, for the in-order queue, or by `synchronize`.
pub fn one_source_keeps_an_index_outside_whose_event_is_gone<B: Programmable>(fixture: &Fixture<'_, B>) {
    const LIMIT: Duration = Duration::from_secs(20);
    let context = fixture.context;
    let outside = |what: usm_core::Result<()>, by: &str| {
        let error = what.expect_err(by);
        assert!(matches!(error.kind, ErrorKind::IndexOutside { index: 9, len: 4, .. }), "{by}: {error}");
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

/// On a device the wait gives the place and both numbers, and nothing else is lost; on the host it
/// is a panic.
pub fn one_source_names_an_index_outside<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::OutOfOrder);
    for ready in ready_in_every_format::<gather, B, 1>(fixture.context) {
        if ready.function().is_none() {
            continue;
        }
        // Item, what it reads, the shift that leads the last item out; array, index, length.
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
                let ErrorKind::IndexOutside { at, index, len: found } = error.kind else { panic!("{error}") };
                // Which item comes first, and with it the array, is the device's to say.
                assert!(at.place.contains("checked.rs:"), "{error}");
                assert_eq!((at.kernel, index, found), ("gather", number, len), "{error}");
                assert!(at.array == array || at.array == "sums", "{error}");
                assert!(error.to_string().contains(&format!("index {number} of `{}`", at.array)), "{error}");
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
