//! The best cut through time, by one sweep for each alignment that occurs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::Buffer;
use crate::lifetime::align_up;
use crate::ranks::Ranks;

/// A bound proven by the buffers that are live at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimeCut {
    /// The bound in bytes.
    pub bytes: u64,
    /// The instant of the cut.
    pub time: u64,
}

/// The largest [`at_time`](super::at_time) over all instants, for buffers of a checked problem
/// (sums that fit in 64 bits).
#[must_use]
pub fn time_cut(buffers: &[Buffer]) -> TimeCut {
    let live = || buffers.iter().filter(|buffer| buffer.occupies());
    let units = live().fold(0_u64, |units, buffer| units | buffer.alignment);
    let ranks = Ranks::of(buffers);
    let mut orders: Option<(Vec<u32>, Vec<u32>)> = None;
    let mut best = TimeCut::default();
    for unit in (0..u64::BITS).map(|shift| 1 << shift).filter(|unit| units & unit != 0) {
        let mut candidates = live().filter(|buffer| buffer.alignment >= unit);
        let cut = match &ranks {
            Some(ranks) if candidates.all(|buffer| buffer.size % unit == 0) => {
                rounded_time_cut(buffers, ranks, unit)
            }
            _ => {
                let (begins, ends) = orders.get_or_insert_with(|| by_time(buffers));
                sweep(buffers, begins, ends, unit)
            }
        };
        if cut.bytes > best.bytes {
            best = cut;
        }
    }
    best
}

/// The heaviest instant if every size is a multiple of the unit. Stacking then leaves no byte free,
/// so the sum of the sizes counts.
fn rounded_time_cut(buffers: &[Buffer], ranks: &Ranks, unit: u64) -> TimeCut {
    let candidates = || {
        let all = buffers.iter().zip(&ranks.lives);
        all.filter(|(buffer, _)| buffer.occupies() && buffer.alignment >= unit)
    };
    // Changes of the load. The sums of a checked problem fit, so they are right even if
    // intermediate values wrap around 2^64.
    let mut changes = alloc::vec![0_u64; ranks.count as usize];
    for (buffer, life) in candidates() {
        let (begin, end) = (life.0 as usize, life.1 as usize);
        changes[begin] = changes[begin].wrapping_add(buffer.size);
        changes[end] = changes[end].wrapping_sub(buffer.size);
    }
    let (mut load, mut best) = (0_u64, (0_u64, 0_u32));
    for (rank, change) in changes.iter().enumerate() {
        load = load.wrapping_add(*change);
        if load > best.0 {
            best = (load, rank as u32);
        }
    }
    // The load only rises where a life begins.
    let begins = candidates().find(|(_, life)| life.0 == best.1);
    TimeCut { bytes: best.0, time: begins.map_or(0, |(buffer, _)| buffer.lower) }
}

/// Buffers that need bytes, in order of begin and in order of end.
fn by_time(buffers: &[Buffer]) -> (Vec<u32>, Vec<u32>) {
    let order_by = |time: fn(&Buffer) -> u64| {
        let live = buffers.iter().zip(0..).filter(|(buffer, _)| buffer.occupies());
        let mut times: Vec<(u64, u32)> = live.map(|(buffer, i)| (time(buffer), i)).collect();
        times.sort_unstable();
        times.into_iter().map(|(_, i)| i).collect()
    };
    (order_by(|buffer| buffer.lower), order_by(|buffer| buffer.upper))
}

fn sweep(buffers: &[Buffer], begins: &[u32], ends: &[u32], unit: u64) -> TimeCut {
    let mut best = TimeCut::default();
    let mut load = 0_u64;
    // The bytes that the topmost buffer may leave free. The largest value counts, so this keeps the
    // values of live buffers sorted.
    let mut slacks: BTreeMap<u64, u32> = BTreeMap::new();
    let rounded_size = |buffer: &Buffer| align_up(buffer.size, unit).unwrap_or(u64::MAX);
    let mut end =
        ends.iter().map(|&i| &buffers[i as usize]).filter(|buffer| buffer.alignment >= unit).peekable();
    for buffer in begins.iter().map(|&i| &buffers[i as usize]).filter(|buffer| buffer.alignment >= unit) {
        while let Some(dead_buffer) = end.next_if(|other| other.upper <= buffer.lower) {
            let room = rounded_size(dead_buffer);
            load = load.saturating_sub(room);
            if room > dead_buffer.size {
                if let Some(count) = slacks.get_mut(&(room - dead_buffer.size)) {
                    *count -= 1;
                    if *count == 0 {
                        slacks.remove(&(room - dead_buffer.size));
                    }
                }
            }
        }
        let room = rounded_size(buffer);
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
