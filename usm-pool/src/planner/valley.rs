//! Fills the lowest valley of the skyline first: for instances too large to compare buffers in pairs, `O(n log n)` times the number of
//! width classes.
//!
//! The skyline says how high memory is filled at every instant. Of the buffers whose whole life lies in its lowest valley one of the
//! longest is placed on the floor; when there is none, the floor rises to the lower edge. Nothing is ever placed below the skyline.

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Instance;
use crate::lifetime::align_up;

/// Offsets for all buffers; `None` for instances with a conflict graph, which have no time.
pub(crate) fn fill(instance: Instance<'_>) -> Option<Vec<u64>> {
    if instance.conflicts.is_some() || u32::try_from(instance.buffers.len()).is_err() {
        return None;
    }
    let mut offsets = vec![0; instance.buffers.len()];
    let mut waiting = Waiting::new(instance);
    let mut skyline = Skyline::new(waiting.left);
    while let Some((at, height)) = skyline.lowest() {
        let (begin, end) = (skyline.begin[at], skyline.end(at));
        match waiting.take(begin, end) {
            Some((buffer, lower, upper)) => {
                let item = &instance.buffers[buffer as usize];
                // Problems are checked so that no sum of sizes overflows.
                let offset = align_up(height, item.alignment).unwrap_or(u64::MAX);
                offsets[buffer as usize] = offset;
                skyline.raise(at, lower, upper, offset.saturating_add(item.size));
            }
            None if begin == 0 && end == waiting.end => break,
            None => skyline.close(at),
        }
    }
    Some(offsets)
}

/// Segments of equal height in order of time, as a list, and a heap of those that may be the lowest.
struct Skyline {
    begin: Vec<u32>,
    height: Vec<u64>,
    next: Vec<u32>,
    before: Vec<u32>,
    alive: Vec<bool>,
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    last: u32,
}

const NONE: u32 = u32::MAX;

impl Skyline {
    /// One segment `[0, last)` at height 0.
    fn new(last: u32) -> Self {
        let mut skyline = Self {
            begin: Vec::new(),
            height: Vec::new(),
            next: Vec::new(),
            before: Vec::new(),
            alive: Vec::new(),
            heap: BinaryHeap::new(),
            last,
        };
        skyline.segment(0, 0, NONE, NONE);
        skyline
    }

    fn segment(&mut self, begin: u32, height: u64, before: u32, next: u32) -> u32 {
        let at = self.begin.len() as u32;
        self.begin.push(begin);
        self.height.push(height);
        self.before.push(before);
        self.next.push(next);
        self.alive.push(true);
        self.heap.push(Reverse((height, at)));
        at
    }

    fn end(&self, at: usize) -> u32 {
        self.begin.get(self.next[at] as usize).copied().unwrap_or(self.last)
    }

    fn lowest(&mut self) -> Option<(usize, u64)> {
        while let Some(&Reverse((height, at))) = self.heap.peek() {
            let at = at as usize;
            if self.alive[at] && self.height[at] == height {
                return Some((at, height));
            }
            self.heap.pop();
        }
        None
    }

    /// `[lower, upper)` inside of segment `at` now ends at `height`.
    fn raise(&mut self, at: usize, lower: u32, upper: u32, height: u64) {
        let (end, floor) = (self.end(at), self.height[at]);
        if upper < end {
            let next = self.next[at];
            let rest = self.segment(upper, floor, at as u32, next);
            if let Some(before) = self.before.get_mut(next as usize) {
                *before = rest;
            }
            self.next[at] = rest;
        }
        if lower > self.begin[at] {
            let next = self.next[at];
            let middle = self.segment(lower, height, at as u32, next);
            if let Some(before) = self.before.get_mut(next as usize) {
                *before = middle;
            }
            self.next[at] = middle;
        } else {
            self.height[at] = height;
            self.heap.push(Reverse((height, at as u32)));
        }
    }

    /// Nothing fits on segment `at`: it rises to its lower neighbour and becomes one with it.
    fn close(&mut self, at: usize) {
        let (before, next) = (self.before[at], self.next[at]);
        let of = |at: u32| self.height.get(at as usize).copied();
        let height = match (of(before), of(next)) {
            (Some(before), Some(next)) => before.min(next),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return,
        };
        self.height[at] = height;
        if of_equal(&self.height, next, height) {
            self.unlink(next as usize);
        }
        if of_equal(&self.height, before, height) {
            self.begin[at] = self.begin[before as usize];
            self.unlink(before as usize);
        }
        self.heap.push(Reverse((height, at as u32)));
    }

    fn unlink(&mut self, at: usize) {
        let (before, next) = (self.before[at], self.next[at]);
        self.alive[at] = false;
        if let Some(link) = self.next.get_mut(before as usize) {
            *link = next;
        }
        if let Some(link) = self.before.get_mut(next as usize) {
            *link = before;
        }
    }
}

fn of_equal(heights: &[u64], at: u32, height: u64) -> bool {
    heights.get(at as usize) == Some(&height)
}

/// Buffers that are not placed, by width; each class in order of begin with a tree of earliest ends.
struct Waiting {
    classes: Vec<Class>,
    /// Number of different instants, and the last one.
    left: u32,
    end: u32,
}

struct Class {
    /// Least width in the class.
    width: u32,
    /// (lower, upper, buffer) in ranks of time.
    entries: Vec<(u32, u32, u32)>,
    /// `earliest[i]` = least end below node `i`; leaves begin at `leaves`.
    earliest: Vec<u32>,
    leaves: usize,
    /// `start[b]` = first entry that begins at or after `b << shift`; about as many as entries.
    start: Vec<u32>,
    shift: u32,
}

impl Waiting {
    fn new(instance: Instance<'_>) -> Self {
        let live: Vec<u32> =
            (0..instance.buffers.len() as u32).filter(|&i| instance.buffers[i as usize].occupies()).collect();
        let mut events: Vec<(u64, u32)> = Vec::with_capacity(2 * live.len());
        for &i in &live {
            let buffer = &instance.buffers[i as usize];
            events.push((buffer.lower, 2 * i));
            events.push((buffer.upper, 2 * i + 1));
        }
        events.sort_unstable();
        let mut rank = vec![(0_u32, 0_u32); instance.buffers.len()];
        let mut end = 0;
        for (at, &(time, event)) in events.iter().enumerate() {
            if at > 0 && events[at - 1].0 != time {
                end += 1;
            }
            let rank = &mut rank[event as usize / 2];
            if event % 2 == 0 { rank.0 = end } else { rank.1 = end }
        }
        let mut members: Vec<Vec<(u32, u32, u32)>> = vec![Vec::new(); 32];
        for &i in &live {
            let (lower, upper) = rank[i as usize];
            members[(upper - lower).ilog2() as usize].push((lower, upper, i));
        }
        let classes = members.into_iter().enumerate().rev().filter(|(_, entries)| !entries.is_empty());
        let classes = classes.map(|(class, entries)| Class::new(1 << class, entries)).collect();
        Self { classes, left: end, end }
    }

    /// Takes one of the longest buffers that live inside of `[begin, end)`.
    fn take(&mut self, begin: u32, end: u32) -> Option<(u32, u32, u32)> {
        let span = end - begin;
        self.classes.iter_mut().filter(|class| class.width <= span).find_map(|class| class.take(begin, end))
    }
}

impl Class {
    fn new(width: u32, mut entries: Vec<(u32, u32, u32)>) -> Self {
        entries.sort_unstable_by_key(|&(lower, upper, buffer)| (lower, Reverse(upper), buffer));
        let leaves = entries.len().next_power_of_two();
        let mut earliest = vec![u32::MAX; 2 * leaves];
        for (at, &(_, upper, _)) in entries.iter().enumerate() {
            earliest[leaves + at] = upper;
        }
        for node in (1..leaves).rev() {
            earliest[node] = earliest[2 * node].min(earliest[2 * node + 1]);
        }
        let last = entries.last().map_or(0, |entry| entry.0);
        let shift = (last / leaves as u32).checked_ilog2().map_or(0, |shift| shift + 1);
        let mut start = Vec::with_capacity((last >> shift) as usize + 1);
        for (at, entry) in entries.iter().enumerate() {
            while start.len() <= (entry.0 >> shift) as usize {
                start.push(at as u32);
            }
        }
        Self { width, entries, earliest, leaves, start, shift }
    }

    /// The first entry that begins at or after `begin` and ends at or before `end`.
    fn take(&mut self, begin: u32, end: u32) -> Option<(u32, u32, u32)> {
        if self.earliest[1] > end {
            return None;
        }
        let bucket = (begin >> self.shift) as usize;
        let mut first = self.start.get(bucket).map_or(self.entries.len(), |&start| start as usize);
        while self.entries.get(first).is_some_and(|entry| entry.0 < begin) {
            first += 1;
        }
        // Most valleys are narrow: no life of the class begins there.
        if self.entries.get(first).is_none_or(|entry| entry.0 >= end) {
            return None;
        }
        let mut node = self.leaves + first;
        // Up until a subtree to the right holds an early end, then down to its first leaf.
        while self.earliest[node] > end {
            while node % 2 == 1 {
                node /= 2;
                if node <= 1 {
                    return None;
                }
            }
            node += 1;
        }
        while node < self.leaves {
            node = if self.earliest[2 * node] <= end { 2 * node } else { 2 * node + 1 };
        }
        let (lower, upper, buffer) = self.entries[node - self.leaves];
        self.earliest[node] = u32::MAX;
        while node > 1 {
            node /= 2;
            self.earliest[node] = self.earliest[2 * node].min(self.earliest[2 * node + 1]);
        }
        Some((buffer, lower, upper))
    }
}
