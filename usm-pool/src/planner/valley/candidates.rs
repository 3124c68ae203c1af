//! Unplaced buffers in order of begin: all of them, and by class.

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::ends::Ends;
use crate::Buffer;
use crate::ranks::Ranks;
use crate::sort;

/// Number of classes after the first non-empty one in which a buffer that begins right at the
/// valley's edge is preferred, because it leaves one sliver fewer. On cut rectangles two classes
/// are as good as four, and better than none by two to five hundredths of the peak.
const AHEAD: usize = 2;

/// Up to this many buffers that begin in a valley are checked one by one. Most valleys are that
/// narrow.
const FEW: usize = 32;

/// A buffer with its life in ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankedBuffer {
    pub(super) lower: u32,
    pub(super) upper: u32,
    pub(super) buffer: u32,
    /// Binary logarithm of the alignment.
    pub(super) shift: u32,
    pub(super) size: u64,
}

#[derive(Debug)]
pub(super) struct Candidates {
    /// In order of begin; of equals the latest end first.
    entries: Vec<RankedBuffer>,
    ends: Ends,
    /// The class of each entry, and its position there.
    places: Vec<(u32, u32)>,
    /// In the order in which they are tried.
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    /// Length of the shortest life.
    shortest: u32,
    ends: Ends,
    /// The entry of each life of the class.
    entries: Vec<u32>,
}

impl Candidates {
    /// `class` maps length in ranks and size to a class; higher classes go first.
    pub(super) fn new(buffers: &[Buffer], ranks: &Ranks, class: impl Fn(u32, u64) -> usize) -> Self {
        let entry = |buffer: u32| {
            let (item, (lower, upper)) = (&buffers[buffer as usize], ranks.lives[buffer as usize]);
            RankedBuffer { lower, upper, buffer, shift: item.alignment.trailing_zeros(), size: item.size }
        };
        let life = |buffer: u32| ranks.lives[buffer as usize];
        let mut order = ranks.by_begin();
        for same in order.chunk_by_mut(|&a, &b| life(a).0 == life(b).0) {
            sort::by_key(same, |buffer| Reverse(life(buffer).1));
        }
        let entries: Vec<RankedBuffer> = order.into_iter().map(entry).collect();
        let mut members: Vec<Vec<u32>> = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let class = class(entry.upper - entry.lower, entry.size);
            if class >= members.len() {
                members.resize_with(class + 1, Vec::new);
            }
            members[class].push(at as u32);
        }
        let life = |at: u32| (entries[at as usize].lower, entries[at as usize].upper);
        let mut places = vec![(0, 0); entries.len()];
        let mut classes = Vec::new();
        for members in members.into_iter().rev().filter(|members| !members.is_empty()) {
            for (place, &at) in (0..).zip(&members) {
                places[at as usize] = (classes.len() as u32, place);
            }
            let lives = || members.iter().map(|&at| life(at));
            let shortest = lives().map(|(lower, upper)| upper - lower).min().unwrap_or(0);
            classes.push(Class { shortest, ends: Ends::new(lives()), entries: members });
        }
        let ends = Ends::new(entries.iter().map(|entry| (entry.lower, entry.upper)));
        Self { entries, ends, places, classes }
    }

    /// Takes the first buffer inside `[begin, end)` of the first class that has one, or one of the
    /// next classes that begins at `begin`.
    pub(super) fn take(&mut self, begin: u32, end: u32) -> Option<RankedBuffer> {
        let first = self.ends.first(begin)?;
        let few = self.ends.none_begins(first + FEW, end);
        let at = if few { self.best_of_few(first, begin, end)? } else { self.best(begin, end)? };
        let (class, place) = self.places[at];
        self.ends.take(at);
        self.classes[class as usize].ends.take(place as usize);
        Some(self.entries[at])
    }

    /// Checks all buffers that begin in the valley, from entry `first` on.
    fn best_of_few(&self, first: usize, begin: u32, end: u32) -> Option<usize> {
        let mut best: Option<(u32, usize)> = None;
        let mut flush = best;
        self.ends.each(first, FEW, end, |at| {
            let class = self.places[at].0;
            let better = |best: Option<(u32, usize)>| best.is_none_or(|(least, _)| class < least);
            if better(best) {
                best = Some((class, at));
            }
            if better(flush) && self.ends.begin(at) == Some(begin) {
                flush = Some((class, at));
            }
        });
        let (class, _) = best?;
        let (_, at) = flush.filter(|flush| flush.0 as usize <= class as usize + AHEAD).or(best)?;
        Some(at)
    }

    /// Checks the classes in order.
    fn best(&self, begin: u32, end: u32) -> Option<usize> {
        let _ = self.ends.find(begin, end)?;
        let mut best: Option<(usize, usize)> = None;
        for (class, entries) in self.classes.iter().enumerate() {
            if best.is_some_and(|best| class > best.0 + AHEAD) {
                break;
            }
            if entries.shortest > end - begin {
                continue;
            }
            if let Some(at) = entries.ends.find(begin, end) {
                if entries.ends.begin(at) == Some(begin) {
                    best = Some((class, at));
                    break;
                }
                best = best.or(Some((class, at)));
            }
        }
        let (class, at) = best?;
        Some(self.classes[class].entries[at] as usize)
    }
}
