//! Numbers the instants at which a life begins or ends in order of time, so that small numbers
//! replace 64-bit times.

use alloc::vec;
use alloc::vec::Vec;

use crate::Buffer;

/// First and last rank of every life, in the order of the buffers; lives without an instant and
/// buffers without a byte have `(0, 0)`.
#[derive(Debug)]
pub(crate) struct Ranks {
    pub(crate) lives: Vec<(u32, u32)>,
    /// Number of different instants.
    pub(crate) count: u32,
}

/// Maximum words of the bitmap for each buffer. If time is sparser, the instants are sorted.
const WORDS_PER_BUFFER: u64 = 2;

impl Ranks {
    /// `None` if the instants may not fit in 32 bits.
    pub(crate) fn of(buffers: &[Buffer]) -> Option<Self> {
        u32::try_from(buffers.len()).ok()?.checked_mul(2)?;
        let live = || buffers.iter().filter(|buffer| buffer.occupies());
        let first = live().map(|buffer| buffer.lower).min().unwrap_or(0);
        let last = live().map(|buffer| buffer.upper).max().unwrap_or(0);
        let words = (last - first) / 64 + 1;
        if words <= WORDS_PER_BUFFER.saturating_mul(buffers.len() as u64) {
            Some(Self::by_bitmap(buffers, first, words as usize))
        } else {
            Some(Self::by_sorting(buffers))
        }
    }

    /// One bit for each instant; a rank is the number of earlier bits.
    fn by_bitmap(buffers: &[Buffer], first: u64, words: usize) -> Self {
        let mut bits = vec![0_u64; words];
        for buffer in buffers.iter().filter(|buffer| buffer.occupies()) {
            for at in [buffer.lower - first, buffer.upper - first] {
                bits[(at / 64) as usize] |= 1 << (at % 64);
            }
        }
        let mut count = 0;
        let before = |word: &u64| {
            let before = count;
            count += word.count_ones();
            before
        };
        let before: Vec<u32> = bits.iter().map(before).collect();
        let rank = |time: u64| {
            let (word, bit) = (((time - first) / 64) as usize, (time - first) % 64);
            before[word] + (bits[word] & ((1 << bit) - 1)).count_ones()
        };
        let life = |buffer: &Buffer| {
            if buffer.occupies() { (rank(buffer.lower), rank(buffer.upper)) } else { (0, 0) }
        };
        Self { lives: buffers.iter().map(life).collect(), count }
    }

    /// Indices of the buffers that live, in order of begin, then of the problem.
    pub(crate) fn by_begin(&self) -> Vec<u32> {
        let mut start = vec![0_u32; self.count as usize + 1];
        let live = || self.lives.iter().enumerate().filter(|(_, life)| life.0 < life.1);
        live().for_each(|(_, life)| start[life.0 as usize + 1] += 1);
        for rank in 1..start.len() {
            start[rank] += start[rank - 1];
        }
        let mut order = vec![0; start[self.count as usize] as usize];
        for (i, life) in live() {
            let at = &mut start[life.0 as usize];
            order[*at as usize] = i as u32;
            *at += 1;
        }
        order
    }

    fn by_sorting(buffers: &[Buffer]) -> Self {
        let mut events: Vec<(u64, u32)> = Vec::with_capacity(2 * buffers.len());
        for (i, buffer) in buffers.iter().enumerate().filter(|(_, buffer)| buffer.occupies()) {
            events.push((buffer.lower, 2 * i as u32));
            events.push((buffer.upper, 2 * i as u32 + 1));
        }
        events.sort_unstable();
        let mut lives = vec![(0, 0); buffers.len()];
        let mut count = 0;
        for (at, &(time, event)) in events.iter().enumerate() {
            if at == 0 || events[at - 1].0 != time {
                count += 1;
            }
            let life: &mut (u32, u32) = &mut lives[event as usize / 2];
            if event % 2 == 0 { life.0 = count - 1 } else { life.1 = count - 1 }
        }
        Self { lives, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_give_the_same_ranks() {
        let buffers: Vec<Buffer> = (0..500)
            .map(|id| Buffer::new(id, 1000 + id * 7919 % 613, 1000 + id * 7919 % 613 + id % 41, id % 5))
            .collect();
        let (dense, sparse) = (Ranks::by_bitmap(&buffers, 1000, 11), Ranks::by_sorting(&buffers));
        assert_eq!((dense.lives, dense.count), (sparse.lives, sparse.count));
    }

    #[test]
    fn any_time_is_ranked() {
        let buffers = [Buffer::new(0, 0, u64::MAX, 1), Buffer::new(1, 7, 8, 1), Buffer::new(2, 3, 3, 1)];
        let ranks = Ranks::of(&buffers).expect("three");
        assert_eq!((&*ranks.lives, ranks.count), (&[(0, 3), (1, 2), (0, 0)][..], 4));
    }
}
