//! For few buffers and for conflict graphs: placed buffers in ascending offset, in chunks that know the hull of their lives, so that a scan skips what cannot matter.

use alloc::vec::Vec;

use super::Instance;
use crate::lifetime::{Lifetime, align_up};

/// Which free gap a buffer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fit {
    /// The lowest one.
    First,
    /// The smallest one; the lowest of equals.
    Best,
}

#[derive(Clone, Copy)]
struct Placed {
    offset: u64,
    end: u64,
    life: Lifetime,
    buffer: u32,
}

struct Chunk {
    hull: Lifetime,
    entries: Vec<Placed>,
}

/// Entries a chunk may hold before it is split in two.
const CHUNK: usize = 128;

pub(super) struct OffsetList<'a> {
    instance: Instance<'a>,
    chunks: Vec<Chunk>,
}

impl<'a> OffsetList<'a> {
    pub(super) fn new(instance: Instance<'a>) -> Self {
        Self { instance, chunks: Vec::new() }
    }

    /// Finds an offset for a buffer beside all that were placed before, and places it. Problems are checked so that no sum overflows.
    pub(super) fn place(&mut self, buffer: usize, fit: Fit) -> u64 {
        let item = &self.instance.buffers[buffer];
        if !self.instance.occupies(buffer) {
            return 0;
        }
        let life = item.lifetime();
        let row = self.instance.conflicts.map(|graph| graph.row(buffer));
        let up = |offset: u64| align_up(offset, item.alignment).unwrap_or(u64::MAX);
        // Everything that conflicts ends at or below `floor`; `at` is the lowest aligned offset above it.
        let (mut floor, mut at) = (0_u64, 0_u64);
        let mut best: Option<(u64, u64)> = None;
        'scan: for chunk in &self.chunks {
            if row.is_none() && !chunk.hull.overlaps(life) {
                continue;
            }
            for placed in &chunk.entries {
                if fit == Fit::First && placed.offset >= at.saturating_add(item.size) {
                    break 'scan;
                }
                let conflicts = match row {
                    None => placed.life.overlaps(life),
                    Some(row) => row[placed.buffer as usize / 64] >> (placed.buffer % 64) & 1 == 1,
                };
                if !conflicts {
                    continue;
                }
                if placed.offset >= at.saturating_add(item.size) {
                    let gap = placed.offset - floor;
                    if fit == Fit::First {
                        break 'scan;
                    }
                    if best.is_none_or(|(least, _)| gap < least) {
                        best = Some((gap, at));
                    }
                }
                if placed.end > floor {
                    floor = placed.end;
                    at = up(floor);
                }
            }
        }
        let offset = best.map_or(at, |(_, at)| at);
        self.insert(Placed { offset, end: offset.saturating_add(item.size), life, buffer: buffer as u32 });
        offset
    }

    fn insert(&mut self, placed: Placed) {
        let after = self
            .chunks
            .partition_point(|chunk| chunk.entries.first().is_some_and(|e| e.offset <= placed.offset));
        if self.chunks.is_empty() {
            self.chunks.push(Chunk { hull: placed.life, entries: Vec::with_capacity(CHUNK) });
        }
        let index = after.saturating_sub(1);
        let chunk = &mut self.chunks[index];
        let at = chunk.entries.partition_point(|entry| entry.offset <= placed.offset);
        chunk.entries.insert(at, placed);
        chunk.hull = chunk.hull.union(placed.life);
        if chunk.entries.len() == CHUNK {
            let upper = chunk.entries.split_off(CHUNK / 2);
            let hull = |entries: &[Placed]| {
                entries.iter().fold(Lifetime::new(0, 0), |hull, entry| hull.union(entry.life))
            };
            chunk.hull = hull(&chunk.entries);
            let hull = hull(&upper);
            self.chunks.insert(index + 1, Chunk { hull, entries: upper });
        }
    }
}
