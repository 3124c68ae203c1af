//! The begins of lives, sorted: finds the first life that begins at or after an instant.

use alloc::vec::Vec;

#[derive(Debug)]
pub(super) struct Begins {
    begins: Vec<u32>,
    /// `start[b]` = first life that begins at or after `b << shift`; about as many as lives.
    start: Vec<u32>,
    shift: u32,
}

impl Begins {
    pub(super) fn new(begins: Vec<u32>) -> Self {
        let last = begins.last().copied().unwrap_or(0);
        let shift = (last / begins.len().max(1) as u32).checked_ilog2().map_or(0, |shift| shift + 1);
        let mut start = Vec::with_capacity((last >> shift) as usize + 1);
        for (at, begin) in begins.iter().enumerate() {
            while start.len() <= (begin >> shift) as usize {
                start.push(at as u32);
            }
        }
        Self { begins, start, shift }
    }

    pub(super) fn len(&self) -> usize {
        self.begins.len()
    }

    /// Begin of a life.
    pub(super) fn get(&self, at: usize) -> Option<u32> {
        self.begins.get(at).copied()
    }

    /// Number of lives that begin before this.
    pub(super) fn before(&self, begin: u32) -> usize {
        let bucket = (begin >> self.shift) as usize;
        let Some(&first) = self.start.get(bucket) else { return self.begins.len() };
        let first = first as usize;
        let bound = self.start.get(bucket + 1).map_or(self.begins.len(), |&start| start as usize);
        first + self.begins[first..bound].partition_point(|&other| other < begin)
    }
}
