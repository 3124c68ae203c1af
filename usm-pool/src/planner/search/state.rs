//! A partial placement: the placed items, lower bounds for the others, and whether the capacity can
//! still be met.

use alloc::vec;
use alloc::vec::Vec;

use super::model::Model;
use crate::lifetime::align_up;

/// Offset of an item that is not placed.
pub(super) const UNPLACED: u64 = u64::MAX;

/// Floors are kept up to this total number of clique members.
const EXACT: usize = 1 << 20;

#[derive(Clone, Copy, Debug)]
enum Change {
    Placed { item: u32, low: u64 },
    Low { item: u32, low: u64 },
    Floor { clique: u32, floor: u64 },
}

/// The result of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    /// The rest may still fit.
    pub(super) fits: bool,
    /// No unplaced item conflicts with the item.
    pub(super) free: bool,
}

/// Why a placement does not fit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reason {
    /// This item ends above the capacity.
    Tall(u32),
    /// This clique does.
    Clique(u32),
}

/// Placement, bounds and the trail that takes them back.
#[derive(Debug)]
pub(super) struct State<'m> {
    model: &'m Model,
    /// Offsets; [`UNPLACED`] for unplaced items.
    pub(super) offset: Vec<u64>,
    /// Lowest offset above all placed conflicting items; `u64::MAX` for a placed item.
    pub(super) low: Vec<u64>,
    /// Room of the unplaced items of a clique.
    pub(super) rest: Vec<u64>,
    /// No unplaced item of a clique lies below this.
    floor: Vec<u64>,
    /// An item that has its clique's floor, if the floor has not changed.
    witness: Vec<u32>,
    /// Highest end of a clique: the capacity, plus the rounding of the topmost item.
    ceiling: Vec<u64>,
    slack: Vec<u64>,
    /// Unplaced items that span the border between a section and the next.
    span: Vec<u32>,
    trail: Vec<Change>,
    capacity: u64,
    /// Why the last placement does not fit.
    pub(super) reason: Reason,
    /// Whether floors are kept. On large instances a node costs less without, and pruning matters
    /// less than diving.
    pub(super) exact: bool,
}

impl<'m> State<'m> {
    pub(super) fn new(model: &'m Model) -> Self {
        let (n, cliques) = (model.items.len(), model.cliques.len());
        let items = |clique: usize| model.cliques.row(clique).iter().map(|&i| &model.items[i as usize]);
        let mut span = vec![0; if model.chain { cliques } else { 0 }];
        if model.chain {
            for item in 0..n {
                let (first, last) = model.sections(item);
                span[first..last - 1].iter_mut().for_each(|count| *count += 1);
            }
        }
        Self {
            model,
            offset: vec![UNPLACED; n],
            low: vec![0; n],
            rest: (0..cliques).map(|c| items(c).map(|item| item.room).sum()).collect(),
            floor: vec![0; cliques],
            witness: (0..cliques).map(|c| model.cliques.row(c)[0]).collect(),
            ceiling: vec![0; cliques],
            slack: (0..cliques)
                .map(|c| items(c).map(|item| item.room - item.size).max().unwrap_or(0))
                .collect(),
            span,
            trail: Vec::new(),
            capacity: 0,
            reason: Reason::Tall(0),
            exact: model.cliques.total() <= EXACT,
        }
    }

    /// Undoes everything and sets the capacity in bytes. `false` if a clique is higher than that
    /// already.
    pub(super) fn reset(&mut self, capacity: u64) -> bool {
        self.undo(0);
        self.capacity = capacity;
        for (ceiling, slack) in self.ceiling.iter_mut().zip(&self.slack) {
            *ceiling = capacity.saturating_add(*slack);
        }
        let tall =
            self.model.items.iter().position(|item| item.size > capacity).map(|i| Reason::Tall(i as u32));
        let full = || self.rest.iter().zip(&self.ceiling).position(|(rest, ceiling)| rest > ceiling);
        let reason = tall.or_else(|| full().map(|clique| Reason::Clique(clique as u32)));
        self.reason = reason.unwrap_or(self.reason);
        reason.is_none()
    }

    /// A mark for [`Self::undo`].
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Undoes everything since the mark.
    pub(super) fn undo(&mut self, mark: usize) {
        while self.trail.len() > mark {
            let Some(change) = self.trail.pop() else { return };
            match change {
                Change::Low { item, low } => self.low[item as usize] = low,
                Change::Floor { clique, floor } => self.floor[clique as usize] = floor,
                Change::Placed { item, low } => {
                    let item = item as usize;
                    self.offset[item] = UNPLACED;
                    self.low[item] = low;
                    let room = self.model.items[item].room;
                    for clique in self.model.cliques_of(item) {
                        self.rest[clique] += room;
                    }
                    if self.model.chain {
                        let (first, last) = self.model.sections(item);
                        self.span[first..last - 1].iter_mut().for_each(|count| *count += 1);
                    }
                }
            }
        }
    }

    /// Places an item at its lowest offset. All later items lie at or above it. `cliques` are those
    /// to check.
    pub(super) fn place(&mut self, item: usize, cliques: core::ops::Range<usize>) -> Effect {
        let model = self.model;
        let offset = self.low[item];
        self.offset[item] = offset;
        self.low[item] = UNPLACED;
        self.trail.push(Change::Placed { item: item as u32, low: offset });
        let room = model.items[item].room;
        for clique in model.cliques_of(item) {
            self.rest[clique] -= room;
        }
        if model.chain {
            let (first, last) = model.sections(item);
            self.span[first..last - 1].iter_mut().for_each(|count| *count -= 1);
        }
        let top = offset + model.items[item].size;
        let (mut fits, mut free) = (true, true);
        for &other in model.conflicts.row(item) {
            let other = other as usize;
            let low = self.low[other];
            if low == UNPLACED {
                continue;
            }
            free = false;
            if low >= top {
                continue;
            }
            let to = &model.items[other];
            // The checked problem excludes overflow of sums; a saturated value does not fit.
            let new_low = align_up(top, to.alignment).unwrap_or(u64::MAX - 1);
            self.trail.push(Change::Low { item: other as u32, low });
            self.low[other] = new_low;
            if new_low.saturating_add(to.size) > self.capacity {
                fits = false;
                self.reason = Reason::Tall(other as u32);
            }
        }
        Effect { fits: fits && self.is_bounded(offset, cliques), free }
    }

    /// Whether every clique can still end below its ceiling if no item is placed below `offset` any
    /// more.
    fn is_bounded(&mut self, offset: u64, cliques: core::ops::Range<usize>) -> bool {
        let model = self.model;
        for clique in cliques {
            let rest = self.rest[clique];
            if rest == 0 {
                continue;
            }
            if self.exact && self.low[self.witness[clique] as usize] != self.floor[clique] {
                let mut lowest = UNPLACED;
                for &item in model.cliques.row(clique) {
                    let low = self.low[item as usize];
                    if low < lowest {
                        lowest = low;
                        self.witness[clique] = item;
                    }
                }
                if lowest != self.floor[clique] {
                    self.trail.push(Change::Floor { clique: clique as u32, floor: self.floor[clique] });
                    self.floor[clique] = lowest;
                }
            }
            if self.floor[clique].max(offset).saturating_add(rest) > self.ceiling[clique] {
                self.reason = Reason::Clique(clique as u32);
                return false;
            }
        }
        true
    }

    /// Borders in `first..last` that no unplaced item spans, into `borders`; a border is the
    /// section that begins there.
    pub(super) fn borders(&self, first: usize, last: usize, borders: &mut Vec<u32>) {
        borders.clear();
        borders.extend(
            (first + 1..last).filter(|&section| self.span[section - 1] == 0).map(|section| section as u32),
        );
    }
}
