//! For few buffers and for conflict graphs: the placed buffers in ascending offset, in chunks with
//! the hull of their lives, so that a scan skips irrelevant chunks.

use alloc::vec::Vec;

use super::Instance;
use crate::Buffer;
use crate::lifetime::{Lifetime, align_up};

/// The free gap for a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fit {
    /// The lowest one.
    First,
    /// The smallest one; the lowest of equals.
    Best,
}

#[derive(Clone, Copy)]
struct Entry {
    offset: u64,
    end: u64,
    life: Lifetime,
    buffer: u32,
}

/// A walk through ascending offsets past conflicting buffers, in search of room.
struct Walk<'a> {
    item: &'a Buffer,
    fit: Fit,
    /// All conflicting buffers so far end at or below this.
    floor: u64,
    /// The lowest aligned offset above the floor.
    at: u64,
    /// Smallest gap and the offset in it.
    best: Option<(u64, u64)>,
}

impl Walk<'_> {
    /// Whether buffers that begin at `offset` or above are irrelevant.
    fn is_past(&self, offset: u64) -> bool {
        self.fit == Fit::First && offset >= self.at.saturating_add(self.item.size)
    }

    /// Passes a conflicting buffer, in ascending offset.
    fn pass(&mut self, offset: u64, end: u64) {
        if offset >= self.at.saturating_add(self.item.size) {
            let gap = offset - self.floor;
            if self.best.is_none_or(|(least, _)| gap < least) {
                self.best = Some((gap, self.at));
            }
        }
        if end > self.floor {
            self.floor = end;
            self.at = align_up(end, self.item.alignment).unwrap_or(u64::MAX);
        }
    }
}

struct Chunk {
    hull: Lifetime,
    entries: Vec<Entry>,
}

/// Maximum entries of a chunk before it is split.
const CHUNK: usize = 128;

/// If fewer than one in this many conflict, only the conflicting ones are collected and sorted.
const SPARSE: usize = 16;

pub(super) struct OffsetList<'a> {
    instance: Instance<'a>,
    chunks: Vec<Chunk>,
    /// With a conflict graph: one bit for each placed buffer, their number, and the offset and end
    /// of each.
    placed_bits: Vec<u64>,
    count: usize,
    spans: Vec<(u64, u64)>,
    /// The placed buffers that conflict with the current one.
    partners: Vec<(u64, u64)>,
    /// All offsets are multiples of it, so the bytes up to the next multiple are of no use.
    granule: u64,
}

/// The least alignment of the buffers that need bytes.
pub(super) fn granule(instance: Instance<'_>) -> u64 {
    let occupants = (0..instance.buffers.len()).filter(|&i| instance.occupies(i));
    occupants.map(|i| instance.buffers[i].alignment).min().unwrap_or(1)
}

/// The first offset above a buffer that is a multiple of the granule, in bytes.
pub(super) fn end_of(offset: u64, size: u64, granule: u64) -> u64 {
    align_up(offset.saturating_add(size), granule).unwrap_or(u64::MAX)
}

impl<'a> OffsetList<'a> {
    pub(super) fn new(instance: Instance<'a>) -> Self {
        let tracked_count = if instance.conflicts.is_some() { instance.buffers.len() } else { 0 };
        Self {
            instance,
            chunks: Vec::new(),
            placed_bits: alloc::vec![0; tracked_count.div_ceil(64)],
            count: 0,
            spans: alloc::vec![(0, 0); tracked_count],
            partners: Vec::new(),
            granule: granule(instance),
        }
    }

    /// Finds an offset for a buffer beside all placed ones, and places it. The checked problem
    /// excludes overflow of sums.
    pub(super) fn place(&mut self, buffer: usize, fit: Fit) -> u64 {
        let item = &self.instance.buffers[buffer];
        if !self.instance.occupies(buffer) {
            return 0;
        }
        let life = item.lifetime();
        let row = self.instance.conflicts.map(|graph| graph.row(buffer));
        let mut walk = Walk { item, fit, floor: 0, at: 0, best: None };
        if row.is_some_and(|row| self.has_few_partners(row)) {
            for &(offset, end) in &self.partners {
                if walk.is_past(offset) {
                    break;
                }
                walk.pass(offset, end);
            }
        } else {
            'scan: for chunk in &self.chunks {
                if row.is_none() && !chunk.hull.overlaps(life) {
                    continue;
                }
                for entry in &chunk.entries {
                    if walk.is_past(entry.offset) {
                        break 'scan;
                    }
                    let conflicts = match row {
                        None => entry.life.overlaps(life),
                        Some(row) => row[entry.buffer as usize / 64] >> (entry.buffer % 64) & 1 == 1,
                    };
                    if conflicts {
                        walk.pass(entry.offset, entry.end);
                    }
                }
            }
        }
        let offset = walk.best.map_or(walk.at, |(_, at)| at);
        let end = end_of(offset, item.size, self.granule);
        if row.is_some() {
            self.placed_bits[buffer / 64] |= 1 << (buffer % 64);
            self.count += 1;
            self.spans[buffer] = (offset, end);
        }
        self.insert(Entry { offset, end, life, buffer: buffer as u32 });
        offset
    }

    /// Whether few placed buffers are in the row of a conflict graph. They are then in `partners`,
    /// in ascending offset.
    fn has_few_partners(&mut self, row: &[u64]) -> bool {
        let both = || row.iter().zip(&self.placed_bits).map(|(theirs, mine)| theirs & mine);
        let partners: usize = both().map(|word| word.count_ones() as usize).sum();
        if partners >= self.count / SPARSE {
            return false;
        }
        self.partners.clear();
        for (word, mut bits) in both().enumerate() {
            while bits != 0 {
                self.partners.push(self.spans[word * 64 + bits.trailing_zeros() as usize]);
                bits &= bits - 1;
            }
        }
        self.partners.sort_unstable();
        true
    }

    fn insert(&mut self, new_entry: Entry) {
        let after = self
            .chunks
            .partition_point(|chunk| chunk.entries.first().is_some_and(|e| e.offset <= new_entry.offset));
        if self.chunks.is_empty() {
            self.chunks.push(Chunk { hull: new_entry.life, entries: Vec::with_capacity(CHUNK) });
        }
        let index = after.saturating_sub(1);
        let chunk = &mut self.chunks[index];
        let at = chunk.entries.partition_point(|entry| entry.offset <= new_entry.offset);
        chunk.entries.insert(at, new_entry);
        chunk.hull = chunk.hull.union(new_entry.life);
        if chunk.entries.len() == CHUNK {
            let upper = chunk.entries.split_off(CHUNK / 2);
            let hull = |entries: &[Entry]| {
                entries.iter().fold(Lifetime::new(0, 0), |hull, entry| hull.union(entry.life))
            };
            chunk.hull = hull(&chunk.entries);
            let hull = hull(&upper);
            self.chunks.insert(index + 1, Chunk { hull, entries: upper });
        }
    }
}
