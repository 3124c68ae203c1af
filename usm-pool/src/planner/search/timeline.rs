//! Conflicts without a list of pairs: for instances with too many pairs.

use alloc::vec::Vec;

use super::super::Instance;
use super::eject::Relation;

/// Buffers by length of life; each class in order of begin, so that the partners of a life are a
/// range of it.
#[derive(Debug)]
pub(super) struct Timeline {
    items: Vec<Entry>,
    classes: Vec<Class>,
    /// Index of each item in the caller's slice.
    pub(super) buffers: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    lower: u64,
    upper: u64,
    size: u64,
    alignment: u64,
}

#[derive(Debug)]
struct Class {
    longest: u64,
    /// (begin, end, item), ascending.
    lives: Vec<(u64, u64, u32)>,
}

impl Timeline {
    /// `None` for instances with a conflict graph.
    pub(super) fn new(instance: Instance<'_>) -> Option<Self> {
        let count = u32::try_from(instance.buffers.len()).ok()?;
        if instance.conflicts.is_some() {
            return None;
        }
        let buffers: Vec<u32> = (0..count).filter(|&i| instance.occupies(i as usize)).collect();
        let entry = |&i: &u32| {
            let buffer = &instance.buffers[i as usize];
            Entry { lower: buffer.lower, upper: buffer.upper, size: buffer.size, alignment: buffer.alignment }
        };
        let items: Vec<Entry> = buffers.iter().map(entry).collect();
        let mut classes: Vec<Class> =
            (0..u64::BITS).map(|_| Class { longest: 0, lives: Vec::new() }).collect();
        for (i, entry) in items.iter().enumerate() {
            let length = entry.upper - entry.lower;
            let class = &mut classes[length.ilog2() as usize];
            class.longest = class.longest.max(length);
            class.lives.push((entry.lower, entry.upper, i as u32));
        }
        classes.retain(|class| !class.lives.is_empty());
        classes.iter_mut().for_each(|class| class.lives.sort_unstable());
        Some(Self { items, classes, buffers })
    }
}

impl Relation for Timeline {
    // About three lives are read for each partner, none of them in the cache.
    const PARTNERS_PER_NODE: u64 = 1;

    fn len(&self) -> usize {
        self.items.len()
    }

    fn shape(&self, item: usize) -> (u64, u64) {
        (self.items[item].size, self.items[item].alignment)
    }

    fn width(&self, item: usize) -> u64 {
        self.items[item].upper - self.items[item].lower
    }

    fn each_partner(&self, item: usize, mut visit: impl FnMut(usize)) {
        let Entry { lower, upper, .. } = self.items[item];
        for class in &self.classes {
            // A life that begins earlier is complete when the item begins.
            let first = class.lives.partition_point(|life| life.0.saturating_add(class.longest) <= lower);
            for life in class.lives[first..].iter().take_while(|life| life.0 < upper) {
                if life.1 > lower && life.2 as usize != item {
                    visit(life.2 as usize);
                }
            }
        }
    }
}
