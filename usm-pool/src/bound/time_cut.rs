//! The best cut through time, by one sweep for each alignment that occurs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::Buffer;
use crate::lifetime::align_up;

/// A bound proven by the buffers that are live at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeCut {
    /// The bound in bytes.
    pub bytes: u64,
    /// The instant of the cut.
    pub time: u64,
}

/// The largest [`at_time`](super::at_time) over all instants, for buffers of a checked problem (sums that fit in 64 bits).
#[must_use]
pub fn time_cut(buffers: &[Buffer]) -> TimeCut {
    let mut begins: Vec<u32> =
        (0..buffers.len() as u32).filter(|&i| buffers[i as usize].occupies()).collect();
    let mut ends = begins.clone();
    begins.sort_unstable_by_key(|&i| buffers[i as usize].lower);
    ends.sort_unstable_by_key(|&i| buffers[i as usize].upper);
    let mut units: Vec<u64> = begins.iter().map(|&i| buffers[i as usize].alignment).collect();
    units.sort_unstable();
    units.dedup();
    let mut best = TimeCut::default();
    for unit in units {
        let found = sweep(buffers, &begins, &ends, unit);
        if found.bytes > best.bytes {
            best = found;
        }
    }
    best
}

fn sweep(buffers: &[Buffer], begins: &[u32], ends: &[u32], unit: u64) -> TimeCut {
    let mut best = TimeCut::default();
    let mut load = 0_u64;
    // What the topmost buffer may leave free; the largest counts, so the live ones are kept in order.
    let mut slacks: BTreeMap<u64, u32> = BTreeMap::new();
    let rounded = |buffer: &Buffer| align_up(buffer.size, unit).unwrap_or(u64::MAX);
    let mut end =
        ends.iter().map(|&i| &buffers[i as usize]).filter(|buffer| buffer.alignment >= unit).peekable();
    for buffer in begins.iter().map(|&i| &buffers[i as usize]).filter(|buffer| buffer.alignment >= unit) {
        while let Some(over) = end.next_if(|over| over.upper <= buffer.lower) {
            let room = rounded(over);
            load = load.saturating_sub(room);
            if room > over.size {
                if let Some(count) = slacks.get_mut(&(room - over.size)) {
                    *count -= 1;
                    if *count == 0 {
                        slacks.remove(&(room - over.size));
                    }
                }
            }
        }
        let room = rounded(buffer);
        load = load.saturating_add(room);
        if room > buffer.size {
            *slacks.entry(room - buffer.size).or_insert(0) += 1;
        }
        let bytes = load - slacks.last_key_value().map_or(0, |(&slack, _)| slack);
        if bytes > best.bytes {
            best = TimeCut { bytes, time: buffer.lower };
        }
    }
    best
}
