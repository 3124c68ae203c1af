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
    // Lives are half-open: at equal instants ends (false) come before begins (true).
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(2 * buffers.len());
    for (i, buffer) in buffers.iter().enumerate() {
        if buffer.size > 0 && buffer.lower < buffer.upper {
            events.push((buffer.lower, true, i));
            events.push((buffer.upper, false, i));
        }
    }
    events.sort_unstable();
    let mut live: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, begins, i) in events {
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
