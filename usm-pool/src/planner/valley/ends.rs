//! Lives in order of begin, with a tree of earliest ends: finds the first life inside a period.

use alloc::vec::Vec;

use crate::planner::begins::Begins;

/// Children of a tree node: a cache line.
const FAN: usize = 16;

/// The end of a life that was taken.
const TAKEN: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Ends {
    begins: Begins<u32>,
    /// `earliest[0][i]` is the end of life `i`, or [`TAKEN`]. Each level above has the minimum of
    /// [`FAN`] entries below; the last level is one number.
    earliest: Vec<Vec<u32>>,
}

impl Ends {
    /// (begin, end) in order of begin.
    pub(super) fn new(lives: impl Iterator<Item = (u32, u32)>) -> Self {
        let (begins, mut level): (Vec<u32>, Vec<u32>) = lives.unzip();
        let mut earliest = Vec::new();
        loop {
            level.resize(level.len().next_multiple_of(FAN), TAKEN);
            let above: Vec<u32> = level.chunks(FAN).map(minimum).collect();
            earliest.push(level);
            level = above;
            if level.len() <= 1 {
                break;
            }
        }
        earliest.push(level);
        Self { begins: Begins::new(begins), earliest }
    }

    /// Begin of a life.
    pub(super) fn begin(&self, at: usize) -> Option<u32> {
        self.begins.get(at)
    }

    /// Whether life `at`, if there is one, begins at or after `end`.
    pub(super) fn none_begins(&self, at: usize, end: u32) -> bool {
        self.begins.get(at).is_none_or(|begin| begin >= end)
    }

    /// Visits up to `count` lives from `first` on that end at or before `end` and are not taken.
    pub(super) fn each(&self, first: usize, count: usize, end: u32, mut visit: impl FnMut(usize)) {
        let last = (first + count).min(self.begins.len());
        let mut at = first;
        while at < last {
            let next = ((at / FAN + 1) * FAN).min(last);
            if self.earliest[1][at / FAN] <= end {
                for at in at..next {
                    if self.earliest[0][at] <= end {
                        visit(at);
                    }
                }
            }
            at = next;
        }
    }

    /// The first life that begins at or after `begin`.
    pub(super) fn first(&self, begin: u32) -> Option<usize> {
        Some(self.begins.before(begin)).filter(|&at| at < self.begins.len())
    }

    /// The first life that begins at or after `begin`, ends at or before `end` and is not taken.
    pub(super) fn find(&self, begin: u32, end: u32) -> Option<usize> {
        if *self.earliest.last()?.first()? > end {
            return None;
        }
        // Most valleys are narrow, and no life begins inside.
        let inside = |at: usize| self.begins.get(at).is_some_and(|begin| begin < end);
        let mut at = self.first(begin).filter(|&at| inside(at))?;
        // Up until a node to the right holds an early end, then down to its first leaf.
        let mut lives = 1;
        for (height, level) in self.earliest.iter().enumerate() {
            let siblings = level.get(at..(at / FAN + 1) * FAN)?;
            if let Some(position) = siblings.iter().position(|&earliest| earliest <= end) {
                return self.descend(height, at + position, end);
            }
            lives *= FAN;
            at = at / FAN + 1;
            if !inside(at * lives) {
                return None;
            }
        }
        None
    }

    /// The first leaf below a node with an end at or before `end`.
    fn descend(&self, height: usize, mut at: usize, end: u32) -> Option<usize> {
        for level in self.earliest[..height].iter().rev() {
            at = at * FAN + level[at * FAN..][..FAN].iter().position(|&earliest| earliest <= end)?;
        }
        Some(at)
    }

    pub(super) fn take(&mut self, life: usize) {
        self.earliest[0][life] = TAKEN;
        let mut at = life;
        for height in 1..self.earliest.len() {
            at /= FAN;
            let now = minimum(&self.earliest[height - 1][at * FAN..][..FAN]);
            if self.earliest[height][at] == now {
                break;
            }
            self.earliest[height][at] = now;
        }
    }
}

fn minimum(earliest: &[u32]) -> u32 {
    earliest.iter().copied().min().unwrap_or(TAKEN)
}
