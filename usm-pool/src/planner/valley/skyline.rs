//! The height of occupied memory at every instant: a list of segments in order of time, with a
//! cursor.

use alloc::vec;
use alloc::vec::Vec;

const NONE: u32 = u32::MAX;

/// A period of one height; neighbours differ in height.
#[derive(Clone, Copy, Debug)]
struct Segment {
    height: u64,
    begin: u32,
    before: u32,
    next: u32,
}

/// A segment that is lower than both neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Valley {
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) floor: u64,
    /// Height of the lower neighbour; `None` for a valley without neighbours.
    pub(super) edge: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Skyline {
    segments: Vec<Segment>,
    /// Unused segments.
    free: Vec<u32>,
    /// The current segment.
    at: u32,
    /// End of the last segment.
    last: u32,
}

impl Skyline {
    /// One segment `[0, last)` at height 0.
    pub(super) fn new(last: u32) -> Self {
        let segments = vec![Segment { height: 0, begin: 0, before: NONE, next: NONE }];
        Self { segments, free: Vec::new(), at: 0, last }
    }

    fn get(&self, at: u32) -> Option<&Segment> {
        self.segments.get(at as usize)
    }

    /// Goes downhill from the current segment to a valley.
    pub(super) fn descend_to_valley(&mut self) -> Valley {
        loop {
            let Segment { height, begin, before, next } = self.segments[self.at as usize];
            let (left, right) = (self.get(before), self.get(next));
            if left.is_some_and(|left| left.height < height) {
                self.at = before;
            } else if right.is_some_and(|right| right.height < height) {
                self.at = next;
            } else {
                let edges = left.into_iter().chain(right).map(|segment| segment.height);
                let end = right.map_or(self.last, |right| right.begin);
                return Valley { begin, end, floor: height, edge: edges.min() };
            }
        }
    }

    /// Raises `[lower, upper)` inside the current segment to `height`. The cursor moves to the rest
    /// of the segment, if there is one.
    pub(super) fn raise(&mut self, lower: u32, upper: u32, height: u64) {
        let (at, old) = (self.at, self.segments[self.at as usize]);
        let end = self.get(old.next).map_or(self.last, |next| next.begin);
        let block = Segment { height, begin: lower, before: old.before, next: old.next };
        let block = if lower > old.begin {
            let block = self.insert_after(at, block);
            if upper < end {
                self.insert_after(block, Segment { begin: upper, ..old });
            }
            block
        } else {
            self.segments[at as usize] = block;
            if upper < end {
                self.at = self.insert_after(at, Segment { begin: upper, ..old });
            }
            at
        };
        self.join(block);
    }

    /// Raises the current valley to its lower neighbour and merges the two.
    pub(super) fn close(&mut self) {
        let Segment { before, next, .. } = self.segments[self.at as usize];
        let edges = self.get(before).into_iter().chain(self.get(next)).map(|segment| segment.height);
        if let Some(height) = edges.min() {
            self.segments[self.at as usize].height = height;
            self.join(self.at);
        }
    }

    /// Merges a segment with neighbours of the same height.
    fn join(&mut self, at: u32) {
        let Segment { height, before, next, .. } = self.segments[at as usize];
        if self.get(next).is_some_and(|next| next.height == height) {
            self.remove(next, at);
        }
        if self.get(before).is_some_and(|before| before.height == height) {
            self.remove(at, before);
        }
    }

    fn insert_after(&mut self, at: u32, segment: Segment) -> u32 {
        let next = self.segments[at as usize].next;
        let segment = Segment { before: at, next, ..segment };
        let new = match self.free.pop() {
            Some(new) => {
                self.segments[new as usize] = segment;
                new
            }
            None => {
                self.segments.push(segment);
                self.segments.len() as u32 - 1
            }
        };
        self.segments[at as usize].next = new;
        if let Some(next) = self.segments.get_mut(next as usize) {
            next.before = new;
        }
        new
    }

    /// Removes a segment from the list; the previous one, `heir`, takes its period.
    fn remove(&mut self, at: u32, heir: u32) {
        let next = self.segments[at as usize].next;
        self.segments[heir as usize].next = next;
        if let Some(next) = self.segments.get_mut(next as usize) {
            next.before = heir;
        }
        self.free.push(at);
        if self.at == at {
            self.at = heir;
        }
    }
}
