//! The traces of real programs through the pool's own code, with the blocks of each moment in an
//! oracle of intervals. The first lines of each trace; all with `USM_EFFORT=1000`.

#![cfg(feature = "std")]
#![allow(clippy::std_instead_of_alloc, reason = "std is there")]

mod common;

use std::collections::BTreeMap;

use usm_pool::pool::replay::{ReplayOptions, parse, replay};
use usm_pool::snapshot::Action;

#[test]
fn no_byte_of_a_trace_has_two_owners() {
    let Some(shared) = common::shared() else { return };
    let effort = std::env::var("USM_EFFORT").ok().and_then(|text| text.parse().ok()).unwrap_or(1_usize);
    let folder = std::fs::read_dir(shared.join("data/traces")).expect("the traces");
    let mut traces: Vec<_> = folder.map(|entry| entry.expect("a file").path()).collect();
    traces.retain(|path| path.extension().is_some_and(|extension| extension == "csv"));
    traces.sort();
    assert_eq!(traces.len(), 10);
    for (path, delay) in traces.iter().flat_map(|path| [(path, 0), (path, 32)]) {
        let mut steps = parse(&std::fs::read_to_string(path).expect("a trace")).expect("lines");
        steps.truncate(2000 * effort);
        let mut options = ReplayOptions::default();
        (options.delay, options.history) = (delay, true);
        let result = replay(&steps, &options).expect("a trace");
        let (mut live, mut bytes, mut peak) = (BTreeMap::new(), 0, 0);
        for event in &result.events {
            let (start, end) = (event.address, event.address + event.size);
            if event.action == Action::Allocate {
                let before = live.range(..end).next_back();
                let is_apart = before.is_none_or(|(_, other)| *other <= start);
                assert!(is_apart, "{}, line {}: two owners", path.display(), event.time);
                live.insert(start, end);
                bytes += event.size;
            } else {
                assert_eq!(live.remove(&start), Some(end));
                bytes -= event.size;
            }
            assert_eq!(event.current, bytes);
            peak = peak.max(bytes);
        }
        assert_eq!(result.peak_live, peak);
        assert!(result.peak_reserved >= peak);
        // The segments at the peak: blocks tile them.
        for segment in &result.segments {
            let tiled = segment.blocks.iter().fold(segment.address, |at, block| {
                assert_eq!(block.address, at, "{}", path.display());
                at + block.size
            });
            assert_eq!(tiled, segment.address + segment.size);
        }
    }
}
