//! Large in-order plans: one pass through time over an ordered map of the live address ranges.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{Violation, each};
use crate::Buffer;

/// As [`intervals`](super::intervals), in `O(n log n)`.
///
/// # Errors
/// The first [`Violation`] found.
pub fn sweep(buffers: &[Buffer], offsets: &[u64], capacity: u64) -> Result<u64, Violation> {
    let peak = each(buffers, offsets, capacity)?;
    let lives = buffers.iter().map(|buffer| (buffer.lower, buffer.upper)).enumerate();
    let lives = lives.filter(|&(i, (lower, upper))| buffers[i].size > 0 && lower < upper);
    let mut live: BTreeMap<u64, usize> = BTreeMap::new();
    for (begins, i) in events(buffers.len(), lives) {
        let low = offsets[i];
        if !begins {
            live.remove(&low);
            continue;
        }
        // The ends were checked not to overflow.
        let below = live.range(..=low).next_back().filter(|&(&at, &j)| at + buffers[j].size > low);
        let above = live.range(low..low + buffers[i].size).next();
        if let Some((&at, &j)) = below.or(above) {
            return Err(Violation::Overlap {
                first: buffers[j].id,
                second: buffers[i].id,
                offset: at.max(low),
            });
        }
        live.insert(low, i);
    }
    Ok(peak)
}

/// Where numbered ranges begin (true) and end, in order. Ranges are half-open: at equal places,
/// ends come first. The numbers are below `count`.
pub(super) fn events(
    count: usize,
    ranges: impl Iterator<Item = (usize, (u64, u64))>,
) -> impl Iterator<Item = (bool, usize)> {
    let mut events = Vec::with_capacity(2 * count);
    for (i, (low, high)) in ranges {
        events.extend([(low, count + i), (high, i)]);
    }
    events.sort_unstable();
    events.into_iter().map(move |(_, event)| event.checked_sub(count).map_or((false, event), |i| (true, i)))
}
