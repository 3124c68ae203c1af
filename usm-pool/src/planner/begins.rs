//! The begins of lives, sorted: finds the first life that begins at or after an instant.

use alloc::vec::Vec;

/// `T` is `u32` or `u64`.
#[derive(Debug)]
pub(super) struct Begins<T> {
    begins: Vec<T>,
    /// `start[b]` = first life that begins at or after `b << shift`; about as many as lives.
    start: Vec<u32>,
    shift: u32,
}

impl<T: Copy + Ord + Into<u64>> Begins<T> {
    pub(super) fn new(begins: Vec<T>) -> Self {
        let last = begins.last().map_or(0, |&last| last.into());
        let spread = last / begins.len().max(1) as u64;
        // A shift by all 64 bits is none.
        let shift = spread.checked_ilog2().map_or(0, |shift| (shift + 1).min(u64::BITS - 1));
        let mut start = Vec::with_capacity((last >> shift) as usize + 1);
        for (at, &begin) in begins.iter().enumerate() {
            while start.len() <= (begin.into() >> shift) as usize {
                start.push(at as u32);
            }
        }
        Self { begins, start, shift }
    }

    pub(super) fn len(&self) -> usize {
        self.begins.len()
    }

    /// Begin of a life.
    pub(super) fn get(&self, at: usize) -> Option<T> {
        self.begins.get(at).copied()
    }

    /// Number of lives that begin before this.
    pub(super) fn before(&self, begin: T) -> usize {
        let bucket = (begin.into() >> self.shift) as usize;
        let Some(&first) = self.start.get(bucket) else { return self.begins.len() };
        let first = first as usize;
        let bound = self.start.get(bucket + 1).map_or(self.begins.len(), |&start| start as usize);
        first + self.begins[first..bound].partition_point(|&other| other < begin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instant_has_its_place() {
        let lists: [&[u64]; 5] = [&[], &[0], &[u64::MAX], &[0, 0, u64::MAX], &[1 << 62, 1 << 63, u64::MAX]];
        for list in lists {
            let begins = Begins::new(list.to_vec());
            for at in [0, 1, (1 << 62) - 1, 1 << 62, 1 << 63, u64::MAX - 1, u64::MAX] {
                let expected = list.iter().filter(|&&begin| begin < at).count();
                assert_eq!(begins.before(at), expected, "{at} in {list:?}");
            }
        }
    }
}
