//! For many buffers with lives: placed buffers by length of life and begin, so that only those are read that live at the same time.

use alloc::vec;
use alloc::vec::Vec;

use super::Instance;
use super::begins::Begins;
use super::offset_list::Fit;
use crate::lifetime::align_up;
use crate::ranks::Ranks;

/// First fit mostly ends early: partners are sorted so many at a time.
const AHEAD: usize = 256;

pub(super) struct LiveList<'a> {
    instance: Instance<'a>,
    ranks: Ranks,
    classes: Vec<Class>,
    /// Class of each buffer and its place there.
    places: Vec<(u32, u32)>,
    /// (offset, end) of the placed partners of a buffer.
    partners: Vec<(u64, u64)>,
    /// Partners that were read so far.
    pub(super) work: u64,
}

/// Lives of one octave of length, in order of begin.
struct Class {
    longest: u32,
    begins: Begins,
    ends: Vec<u32>,
    /// (offset, end) of those that are placed.
    spans: Vec<(u64, u64)>,
    /// One bit for each, set when it is placed.
    placed: Vec<u64>,
}

impl<'a> LiveList<'a> {
    /// `None` for conflict graphs and where ranks do not fit.
    pub(super) fn new(instance: Instance<'a>) -> Option<Self> {
        if instance.conflicts.is_some() {
            return None;
        }
        let ranks = Ranks::of(instance.buffers)?;
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); u32::BITS as usize];
        for buffer in ranks.by_begin() {
            let (lower, upper) = ranks.lives[buffer as usize];
            members[(upper - lower).ilog2() as usize].push(buffer);
        }
        let mut places = vec![(0, 0); instance.buffers.len()];
        let mut classes = Vec::new();
        for members in members.iter().filter(|members| !members.is_empty()) {
            for (place, &buffer) in (0..).zip(members) {
                places[buffer as usize] = (classes.len() as u32, place);
            }
            let lives = || members.iter().map(|&buffer| ranks.lives[buffer as usize]);
            classes.push(Class {
                longest: lives().map(|(lower, upper)| upper - lower).max().unwrap_or(0),
                begins: Begins::new(lives().map(|life| life.0).collect()),
                ends: lives().map(|life| life.1).collect(),
                spans: vec![(0, 0); members.len()],
                placed: vec![0; members.len().div_ceil(64)],
            });
        }
        Some(Self { instance, ranks, classes, places, partners: Vec::new(), work: 0 })
    }

    /// Finds an offset for a buffer beside all that were placed before, and places it. Problems are checked so that no sum overflows.
    pub(super) fn place(&mut self, buffer: usize, fit: Fit) -> u64 {
        if !self.instance.occupies(buffer) {
            return 0;
        }
        let (lower, upper) = self.ranks.lives[buffer];
        self.partners.clear();
        for class in &self.classes {
            class.partners(lower, upper, &mut self.partners);
        }
        self.work += self.partners.len() as u64;
        let item = &self.instance.buffers[buffer];
        let offset = hole(&mut self.partners, item.size, item.alignment, fit);
        let (class, place) = self.places[buffer];
        self.classes[class as usize].place(place as usize, (offset, offset.saturating_add(item.size)));
        offset
    }
}

impl Class {
    fn partners(&self, lower: u32, upper: u32, partners: &mut Vec<(u64, u64)>) {
        // What begins so early is over when the life begins.
        let first = self.begins.before((lower + 1).saturating_sub(self.longest));
        let last = self.begins.before(upper);
        if first >= last {
            return;
        }
        for word in first / 64..last.div_ceil(64) {
            let mut bits = self.placed[word];
            if word == first / 64 {
                bits &= u64::MAX << (first % 64);
            }
            if last / 64 == word {
                bits &= (1 << (last % 64)) - 1;
            }
            while bits != 0 {
                let at = word * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                if self.ends[at] > lower {
                    partners.push(self.spans[at]);
                }
            }
        }
    }

    fn place(&mut self, at: usize, span: (u64, u64)) {
        self.spans[at] = span;
        self.placed[at / 64] |= 1 << (at % 64);
    }
}

/// Where a buffer goes between what is placed at its time.
fn hole(partners: &mut [(u64, u64)], size: u64, alignment: u64, fit: Fit) -> u64 {
    // All that was read ends at or below `floor`; `at` is the lowest aligned offset above it.
    let (mut floor, mut at) = (0_u64, 0_u64);
    let mut best: Option<(u64, u64)> = None;
    let mut rest = partners;
    while !rest.is_empty() {
        let ahead = if fit == Fit::First { rest.len().min(AHEAD) } else { rest.len() };
        if ahead < rest.len() {
            rest.select_nth_unstable(ahead);
        }
        let (next, later) = rest.split_at_mut(ahead);
        next.sort_unstable();
        for &(offset, end) in &*next {
            if offset >= at.saturating_add(size) {
                if fit == Fit::First {
                    return at;
                }
                let gap = offset - floor;
                if best.is_none_or(|(least, _)| gap < least) {
                    best = Some((gap, at));
                }
            }
            if end > floor {
                floor = end;
                at = align_up(floor, alignment).unwrap_or(u64::MAX);
            }
        }
        rest = later;
    }
    best.map_or(at, |(_, at)| at)
}
