//! Launches over any number of items, whatever groups the device takes for them.

use usm_core::QueueOrder;
use usm_kernel::prelude::*;
use usm_kernel::{Bounds, Programmable};

use super::{queue, ready_in_every_format, shared};
use crate::Fixture;

/// Counts the visits of each item by the numbers of the range. Nothing else holds a wrong item
/// back: `seen` is longer than the range.
#[kernel]
fn visit_1(seen: &[Atomic<u32>], sizes: &[Atomic<u64>]) {
    seen[global_id(0)].fetch_add(1);
    sizes[0].fetch_max(global_size(0));
}

/// As above, with an index from memory, so that it runs checked.
#[kernel]
fn visit_2(seen: &[Atomic<u32>], places: &[u32], sizes: &[Atomic<u64>]) {
    let i = global_id(0) * global_size(1) + global_id(1);
    seen[places[i] as u64].fetch_add(1);
    sizes[0].fetch_max(global_size(0) * 1000 + global_size(1));
}

#[kernel]
fn visit_3(seen: &[Atomic<u32>], sizes: &[Atomic<u64>]) {
    seen[(global_id(0) * global_size(1) + global_id(1)) * global_size(2) + global_id(2)].fetch_add(1);
    sizes[0].fetch_max((global_size(0) * 1000 + global_size(1)) * 1000 + global_size(2));
}

const SEEN: usize = 8192;

fn assert_each_once(seen: &[u32], items: u64, what: &str) {
    let wrong = seen.iter().enumerate().find(|(i, count)| **count != u32::from((*i as u64) < items));
    assert_eq!(wrong, None, "{what}: an item, and its visits");
}

/// A launch over a prime number of items visits each of them once and no other, and the sizes that
/// it sees are those of its range.
pub fn one_source_visits_each_item_of_any_range<B: Programmable>(fixture: &Fixture<'_, B>) {
    let queue = queue(fixture, QueueOrder::InOrder);
    let empty = || (shared(&queue, &[0_u32; SEEN]), shared(&queue, &[0_u64]));
    for ready in ready_in_every_format::<visit_1, B, 1>(fixture.context) {
        for items in [1, 7, 31, 251, 1000, 2053] {
            let (mut seen, mut sizes) = empty();
            let launch = Launch::with_range(&queue, Range::new([items]).expect("a range"));
            launch
                .run_on(&ready, visit_1, (&mut seen, &mut sizes))
                .expect("a launch")
                .wait()
                .expect("no fault");
            assert_each_once(&seen.read().expect("a view"), items, "one dimension");
            assert_eq!(sizes.read().expect("a view")[0], items);
        }
        let (mut seen, mut sizes) = empty();
        let launch = Launch::new(&queue, NdRange::new([35], [5]).expect("a range"));
        launch.run_on(&ready, visit_1, (&mut seen, &mut sizes)).expect("a launch").wait().expect("no fault");
        assert_each_once(&seen.read().expect("a view"), 35, "groups");
    }
    let places: Vec<u32> = (0..SEEN as u32).collect();
    let places = shared(&queue, &places);
    for ready in ready_in_every_format::<visit_2, B, 2>(fixture.context) {
        for [rows, columns] in [[1, 1], [13, 11], [3, 1031], [1031, 3]] {
            let (mut seen, mut sizes) = empty();
            let launch = || Launch::with_range(&queue, Range::new([rows, columns]).expect("a range"));
            let proof = launch().proof(visit_2, (&mut seen, &places, &mut sizes)).expect("a proof");
            assert!(matches!(proof.bounds, Bounds::Checked { .. }), "it runs checked");
            let event = launch().run_on(&ready, visit_2, (&mut seen, &places, &mut sizes));
            event.expect("a launch").wait().expect("no fault");
            assert_each_once(&seen.read().expect("a view"), rows * columns, "two dimensions");
            assert_eq!(sizes.read().expect("a view")[0], rows * 1000 + columns);
        }
    }
    for ready in ready_in_every_format::<visit_3, B, 3>(fixture.context) {
        for [x, y, z] in [[1, 1, 1], [5, 3, 7], [2, 17, 67], [67, 2, 17]] {
            let (mut seen, mut sizes) = empty();
            let launch = Launch::with_range(&queue, Range::new([x, y, z]).expect("a range"));
            launch
                .run_on(&ready, visit_3, (&mut seen, &mut sizes))
                .expect("a launch")
                .wait()
                .expect("no fault");
            assert_each_once(&seen.read().expect("a view"), x * y * z, "three dimensions");
            assert_eq!(sizes.read().expect("a view")[0], (x * 1000 + y) * 1000 + z);
        }
    }
}
