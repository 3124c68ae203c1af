//! Launches whose items access elements in an order that follows from memory.

use usm_core::QueueOrder;
use usm_kernel::prelude::*;
use usm_kernel::{Bounds, ItemOrder, Launch, LaunchError, Programmable};

use super::{queue, range, ready_in_every_format, shared};
use crate::Fixture;

/// Items add to elements that memory names, and mark that one did. `a` has elements of one byte,
/// which no device changes atomically.
#[kernel]
fn scatter(index: &[u32], a: &mut [u8], sums: &mut [f64], flag: &mut [bool]) {
    let i = global_id(0);
    let j = index[i] as u64;
    a[j] += 1;
    sums[j] += 0.5;
    if a[j] > 0 {
        flag[0] = true;
    }
}

/// Each index is read from the array that all items write.
#[kernel]
fn chase(a: &mut [u32]) {
    let i = global_id(0);
    for _ in 0..8_u32 {
        let next = a[i] as u64;
        if next < a.len() {
            a[next] = a[(next * 7 + i) % a.len()];
        }
    }
}

/// A histogram in the memory of a group, without atomic operations.
#[kernel(group = 32)]
fn votes(x: &[u32], counts: &mut [u32]) {
    #[local]
    let mut bins: [u32; 16];
    let (l, i) = (local_id(0), global_id(0));
    if l < 16 {
        bins[l] = 0;
    }
    barrier(LOCAL);
    bins[x[i] as u64 % 16] += 1;
    barrier(LOCAL);
    if l < 16 {
        counts[group_id(0) * 16 + l] = bins[l];
    }
}

/// An array that scalars part, beside one that memory parts.
#[kernel]
fn both(n: u64, index: &[u32], a: &mut [u32], rows: &mut [u32]) {
    let i = global_id(0);
    a[index[i] as u64] = i as u32;
    rows[i % n] = i as u32;
}

const ITEMS: u64 = 4096;

/// A launch from safe code gives what some order gives, on the host and in every generated code.
pub fn one_source_in_an_unknown_order<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let values: Vec<u32> = (0..ITEMS as u32).map(|i| i.wrapping_mul(2_654_435_761) >> 7).collect();
    let index = shared(&queue, &values.iter().map(|value| value % 100).collect::<Vec<_>>());
    let items = || Launch::with_range(&queue, Range::new([ITEMS]).expect("a range"));
    for ready in ready_in_every_format::<scatter, B, 1>(fixture.context) {
        let (mut a, mut sums) = (shared(&queue, &[0_u8; 128]), shared(&queue, &[0.0_f64; 128]));
        let mut flag = shared(&queue, &[0_u8]);
        let proof = items().proof(scatter, (&index, &mut a, &mut sums, &mut flag)).expect("arguments");
        assert!(matches!(proof.order, ItemOrder::Unordered { array: "a", .. }), "{proof:?}");
        assert!(matches!(proof.bounds, Bounds::Checked { .. }) && !proof.is_proven(), "{proof:?}");
        let strict = items().require_proof();
        let refused = strict.run_on(&ready, scatter, (&index, &mut a, &mut sums, &mut flag));
        assert!(matches!(refused.expect_err("no proof"), LaunchError::Race { array: "a", .. }));
        let event = items().run_on(&ready, scatter, (&index, &mut a, &mut sums, &mut flag));
        event.expect("a launch").wait().expect("an end");
        let (a, sums) = (a.read().expect("a view"), sums.read().expect("a view"));
        // Additions may be lost, but what was added is there.
        let most = |j: usize| values.iter().filter(|value| **value % 100 == j as u32).count();
        assert!((0..100).all(|j| a[j] >= 1 && usize::from(a[j]) <= most(j)), "{a:?}");
        assert!((0..100).all(|j| sums[j] >= 0.5 && sums[j] * 2.0 <= most(j) as f64), "{sums:?}");
        assert!(a[100..].iter().all(|one| *one == 0) && sums[100..].iter().all(|one| *one == 0.0));
        assert_eq!(flag.to_vec(&queue).expect("a read"), [1]);
    }
    for ready in ready_in_every_format::<chase, B, 1>(fixture.context) {
        let places: Vec<u32> = values.iter().map(|value| value % 6000).collect();
        let mut a = shared(&queue, &places);
        let event = items().run_on(&ready, chase, (&mut a,)).expect("a launch");
        event.wait().expect("no index is outside");
        let found = a.read().expect("a view");
        assert!(found.iter().all(|one| places.contains(one)), "a value that nobody wrote");
    }
    for ready in ready_in_every_format::<votes, B, 1>(fixture.context) {
        let (x, mut counts) = (shared(&queue, &values), shared(&queue, &[99_u32; 2048]));
        let launch = Launch::new(&queue, range([ITEMS], [32]));
        let _ = launch.run_on(&ready, votes, (&x, &mut counts)).expect("a launch");
        let found = counts.read().expect("a view");
        for (group, of_group) in found.chunks(16).enumerate() {
            for (bin, count) in of_group.iter().enumerate() {
                let items = &values[group * 32..][..32];
                let most = items.iter().filter(|value| **value as usize % 16 == bin).count();
                assert!(*count as usize <= most && (*count > 0) == (most > 0), "{group} {bin}: {count}");
            }
        }
    }
    for ready in ready_in_every_format::<both, B, 1>(fixture.context) {
        let (mut a, mut rows) = (shared(&queue, &[0_u32; 128]), shared(&queue, &[0_u32; 4096]));
        let event = items().run_on(&ready, both, (ITEMS, &index, &mut a, &mut rows)).expect("a launch");
        event.wait().expect("an end");
        assert!((0..ITEMS as usize).all(|i| rows.read().expect("a view")[i] == i as u32));
        // What is shown is refused, whatever is unknown beside it.
        let refused = items().run_on(&ready, both, (10, &index, &mut a, &mut rows));
        assert!(matches!(refused.expect_err("a race"), LaunchError::ShownRace { .. }));
        let none = Launch::with_range(&queue, Range::new([0]).expect("a range"));
        let _ = none.run_on(&ready, both, (10, &index, &mut a, &mut rows)).expect("nothing runs");
    }
}
