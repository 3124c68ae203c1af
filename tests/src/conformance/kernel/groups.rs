//! Group operations in groups of unusual sizes: of one item, of a prime, of one sub-group, of many;
//! proven and checked. The result equals the plain loop's, or the launch is refused before anything
//! runs.

#![allow(clippy::modulo_one, reason = "the code of sub-groups of one item")]

use usm_core::{QueueOrder, Shared, UsmVec};
use usm_kernel::prelude::*;
use usm_kernel::{DeviceCode, IndexOutside, Launch, LaunchError, Programmable};

use super::{queue, range, ready_in_every_format, shared};
use crate::Fixture;

/// Groups of any size.
#[kernel]
fn collected_by_any(index: &[u32], from: &[i32], sums: &mut [i32], before: &mut [i32], most: &mut [i32]) {
    let i = global_id(0);
    let x = from[index[i] as u64];
    sums[i] = group_reduce(x, ADD);
    before[i] = group_exclusive_scan(x, ADD);
    most[i] = group_inclusive_scan(x, MAX);
}

#[kernel(group = 1, sub_group = 1)]
fn collected_by_one(index: &[u32], from: &[i32], sums: &mut [i32], before: &mut [i32], most: &mut [i32]) {
    let i = global_id(0);
    let x = from[index[i] as u64];
    sums[i] = sub_group_reduce(x, ADD);
    before[i] = sub_group_exclusive_scan(x, ADD);
    most[i] = sub_group_shuffle_xor(x, 0);
}

#[kernel(group = 12, sub_group = 4)]
fn collected_by_four(index: &[u32], from: &[i32], sums: &mut [i32], before: &mut [i32], most: &mut [i32]) {
    let i = global_id(0);
    let x = from[index[i] as u64];
    sums[i] = sub_group_reduce(x, ADD);
    before[i] = sub_group_exclusive_scan(x, ADD);
    most[i] = sub_group_inclusive_scan(x, MAX);
}

/// The plain loop over parts of `width` items.
fn plain(read: &[i32], width: usize) -> [Vec<i32>; 3] {
    let mut all = [(); 3].map(|()| Vec::new());
    for part in read.chunks(width) {
        for l in 0..part.len() {
            all[0].push(part.iter().sum());
            all[1].push(part[..l].iter().sum());
            all[2].push(*part[..=l].iter().max().expect("one"));
        }
    }
    all
}

/// Launches over every range; `width` is the part of a group of `local` items that collects.
/// Returns how many ran.
macro_rules! launches {
    ($fixture:ident, $kernel:ident, $width:expr) => {{
        let queue = queue($fixture, QueueOrder::OutOfOrder);
        let mut ran = 0;
        for ready in ready_in_every_format::<$kernel, B, 1>($fixture.context).into_iter().take(1) {
            for (global, local) in RANGES {
                for wrong in [None, Some(0), Some(global - 1)] {
                    let has_checks = ready.function().is_some();
                    if wrong.is_some() && !has_checks {
                        continue;
                    }
                    let len = global as usize;
                    let values: Vec<i32> = (0..len as i32).map(|i| i * 37 % 101 - 50).collect();
                    let mut indices: Vec<u32> = (0..len as u32).rev().collect();
                    let mut read: Vec<i32> = values.iter().rev().copied().collect();
                    if let Some(item) = wrong {
                        (indices[item as usize], read[item as usize]) = (len as u32, 0);
                    }
                    let (index, from) = (shared(&queue, &indices), shared(&queue, &values));
                    let mut results: [UsmVec<i32, Shared, B>; 3] =
                        [(); 3].map(|()| shared(&queue, &vec![9; len]));
                    let [sums, before, most] = &mut results;
                    let launch = Launch::new(&queue, range([global], [local]));
                    let event = match launch.run_on(&ready, $kernel, (&index, &from, sums, before, most)) {
                        Ok(event) => event,
                        Err(error) => {
                            assert!(is_of_range(&error), "{global} by {local}: {error}");
                            for result in &results {
                                assert_eq!(result.read().expect("a view")[..], vec![9; len], "something ran");
                            }
                            continue;
                        }
                    };
                    ran += 1;
                    match event.wait() {
                        Ok(()) => assert_eq!(wrong, None),
                        Err(error) => {
                            let said = IndexOutside::of(&error)
                                .is_some_and(|outside| outside.index == outside.len && outside.len == global);
                            assert!(wrong.is_some() && said, "{error}");
                        }
                    }
                    let expected = plain(&read, $width(local as usize));
                    for (result, expected) in results.iter().zip(expected) {
                        assert_eq!(
                            result.read().expect("told")[..],
                            expected,
                            "{global} by {local}, {wrong:?}"
                        );
                    }
                }
            }
        }
        ran
    }};
}

const RANGES: [(u64, u64); 12] = [
    (1, 1),
    (5, 1),
    (2, 2),
    (9, 3),
    (12, 4),
    (10, 5),
    (14, 7),
    (12, 12),
    (36, 12),
    (13, 13),
    (34, 17),
    (96, 32),
];

fn is_of_range(error: &LaunchError) -> bool {
    matches!(
        error,
        LaunchError::WrongGroup { .. }
            | LaunchError::GroupTooLarge { .. }
            | LaunchError::LocalMemoryTooLarge { .. }
    )
}

/// Whether the device takes the kernel's code or runs its host body.
fn runs<K: DeviceCode<1>, B: Programmable>(fixture: &Fixture<'_, B>) -> bool {
    !ready_in_every_format::<K, B, 1>(fixture.context).is_empty()
}

/// Groups of 1, of primes, of all items.
pub fn one_source_collects_in_groups_of_any_size<B: Programmable>(fixture: &Fixture<'_, B>) {
    let ran: usize = launches!(fixture, collected_by_any, |local| local);
    assert!(ran >= RANGES.len() || !runs::<collected_by_any, B>(fixture), "{ran}");
}

/// Sub-groups of one item, and several in a group. A group of another size than the kernel's is
/// refused.
pub fn one_source_collects_in_sub_groups_of_its_own_size<B: Programmable>(fixture: &Fixture<'_, B>) {
    let ran: usize = launches!(fixture, collected_by_one, |_| 1);
    assert!(ran >= 2 || !runs::<collected_by_one, B>(fixture), "{ran}");
    let ran: usize = launches!(fixture, collected_by_four, |_| 4);
    assert!(ran >= 2 || !runs::<collected_by_four, B>(fixture), "{ran}");
}
