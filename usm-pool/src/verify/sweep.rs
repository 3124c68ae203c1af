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
    // The ends were checked not to overflow. The places alone are small, so the caches hold more.
    let places: Vec<(u64, u64)> =
        buffers.iter().zip(offsets).map(|(buffer, &low)| (low, low + buffer.size)).collect();
    let lives = buffers.iter().map(|buffer| (buffer.lower, buffer.upper)).enumerate();
    let lives = lives.filter(|&(i, (lower, upper))| buffers[i].size > 0 && lower < upper);
    // The end of each live range and its buffer, by the begin.
    let mut live: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (begins, i) in events(buffers.len(), lives) {
        let (low, high) = places[i];
        if !begins {
            live.remove(&low);
            continue;
        }
        // The live ranges are apart, so the last that begins below `high` has the highest end.
        if let Some((&at, &(end, j))) = live.range(..high).next_back()
            && end > low
        {
            return Err(Violation::Overlap {
                first: buffers[j].id,
                second: buffers[i].id,
                offset: at.max(low),
            });
        }
        live.insert(low, (high, i));
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
