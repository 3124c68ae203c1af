//! For many buffers with lives: a tree over time whose nodes know the occupied memory, so that a
//! search for a hole need not read the buffers.
//!
//! A life is split into nodes as in every segment tree. A node has a list of the memory occupied by
//! lives that cover it, and a list of the memory occupied at any of its time. So some dozens of
//! lists, of a life's nodes and those above, contain all memory that is live beside it. Adjacent
//! buffers mostly touch and form one stretch in a list, so one step of a search passes thousands of
//! buffers.
//!
//! Rejected designs: reading and sorting all partners of a buffer took ten times as long (in a
//! million cut rectangles each has 4,700); all of them in buckets of equal width took half of that.

use alloc::vec::Vec;
use core::ops::Range;

use super::Instance;
use super::offset_list::{Fit, end_of, granule};
use crate::lifetime::align_up;
use crate::ranks::Ranks;

/// Ranks of time in a leaf. A life that begins or ends inside a leaf is kept there individually.
const LEAF: u32 = 16;

/// From this many lives in a leaf on, each rank of the leaf has a list of its own: a hundred
/// thousand lives may end together.
const CROWDED: usize = 256;

/// A stretch of memory: offset and end.
type Span = (u64, u64);

pub(super) struct TimeTree<'a> {
    instance: Instance<'a>,
    ranks: Ranks,
    /// A power of two. Node 1 is the root, the children of `n` are `2n` and `2n + 1`, leaf `i` is
    /// node `leaves + i`.
    leaves: usize,
    nodes: Vec<Node>,
    leaf_parts: Vec<Parts>,
    /// All offsets are multiples of it, so the bytes up to the next multiple are of no use.
    granule: u64,
    /// The memory occupied by those of them that are live beside a buffer.
    partners: Spans,
    /// All lists of a buffer, with the search position in each.
    lists: Vec<(List, usize)>,
    /// Number of list reads so far.
    pub(super) work: u64,
}

#[derive(Default)]
struct Node {
    /// The memory occupied by lives that cover the node.
    whole: Spans,
    /// The memory occupied at any of the node's time, except by lives that cover a node above.
    any: Spans,
}

/// The lives that cover a part of a leaf.
#[derive(Default)]
struct Parts {
    lives: Vec<(u32, u32, Span)>,
    /// In a crowded leaf: the memory that they occupy at each rank.
    ranks: Vec<Spans>,
}

/// Stretches in ascending order that neither overlap nor touch.
#[derive(Default)]
struct Spans(Vec<Span>);

#[derive(Clone, Copy)]
enum List {
    /// The list `whole` of a node.
    Whole(usize),
    /// The list `any` of a node.
    Any(usize),
    /// The list of a leaf's rank.
    Rank(usize, usize),
    Partners,
}

impl Parts {
    fn add(&mut self, leaf: usize, life: (u32, u32), span: Span) {
        if self.ranks.is_empty() {
            self.lives.push((life.0, life.1, span));
            if self.lives.len() < CROWDED {
                return;
            }
            self.ranks.resize_with(LEAF as usize, Spans::default);
            for (lower, upper, span) in core::mem::take(&mut self.lives) {
                ranks_of(leaf, (lower, upper)).for_each(|rank| _ = self.ranks[rank].add(span));
            }
        } else {
            ranks_of(leaf, life).for_each(|rank| _ = self.ranks[rank].add(span));
        }
    }
}

impl Spans {
    /// Whether anything was added.
    fn add(&mut self, span: Span) -> bool {
        let from = self.0.partition_point(|other| other.1 < span.0);
        let count = self.0[from..].partition_point(|other| other.0 <= span.1);
        if count == 0 {
            self.0.insert(from, span);
            return true;
        }
        let hull = (span.0.min(self.0[from].0), span.1.max(self.0[from + count - 1].1));
        if self.0[from] == hull {
            return false;
        }
        self.0[from] = hull;
        self.0.drain(from + 1..from + count);
        true
    }

    /// Sorts and merges arbitrary stretches.
    fn join(&mut self) {
        self.0.sort_unstable();
        self.0.dedup_by(|next, last| {
            let overlaps = next.0 <= last.1;
            if overlaps {
                last.1 = last.1.max(next.1);
            }
            overlaps
        });
    }
}

impl<'a> TimeTree<'a> {
    /// `None` for conflict graphs, and if ranks do not fit.
    pub(super) fn new(instance: Instance<'a>) -> Option<Self> {
        if instance.conflicts.is_some() {
            return None;
        }
        let ranks = Ranks::of(instance.buffers)?;
        let leaves = (ranks.count.div_ceil(LEAF) as usize).next_power_of_two();
        let mut nodes = Vec::new();
        nodes.resize_with(2 * leaves, Node::default);
        Some(Self {
            instance,
            ranks,
            leaves,
            nodes,
            leaf_parts: core::iter::repeat_with(Parts::default).take(leaves).collect(),
            granule: granule(instance),
            partners: Spans::default(),
            lists: Vec::new(),
            work: 0,
        })
    }

    /// Finds an offset for a buffer beside all placed ones, and places it. The checked problem
    /// excludes overflow of sums.
    pub(super) fn place(&mut self, buffer: usize, fit: Fit) -> u64 {
        if !self.instance.occupies(buffer) {
            return 0;
        }
        let life = self.ranks.lives[buffer];
        let item = &self.instance.buffers[buffer];
        self.collect_lists(life);
        let offset = self.find_offset(item.size, item.alignment, fit);
        self.add(life, (offset, end_of(offset, item.size, self.granule)));
        offset
    }

    /// First and last leaf of a life, and the half-open range of leaves that it covers.
    fn leaves_of(&self, (lower, upper): (u32, u32)) -> [usize; 4] {
        [lower / LEAF, (upper - 1) / LEAF, lower.div_ceil(LEAF), upper / LEAF].map(|leaf| leaf as usize)
    }

    /// The nodes whose leaves are exactly `from..to`.
    fn visit_nodes(&self, from: usize, to: usize, mut visit: impl FnMut(usize)) {
        let (mut low, mut high) = (from + self.leaves, to + self.leaves);
        while low < high {
            if low & 1 == 1 {
                visit(low);
                low += 1;
            }
            if high & 1 == 1 {
                high -= 1;
                visit(high);
            }
            (low, high) = (low / 2, high / 2);
        }
    }

    /// Collects the lists of all memory that is live beside a life.
    fn collect_lists(&mut self, life: (u32, u32)) {
        let [first, last, from, to] = self.leaves_of(life);
        let partners = &mut self.partners.0;
        partners.clear();
        let mut lists = core::mem::take(&mut self.lists);
        lists.clear();
        lists.push((List::Partners, 0));
        for leaf in one_or_two(first, last).filter(|leaf| !(from..to).contains(leaf)) {
            let Parts { lives, ranks } = &self.leaf_parts[leaf];
            let parts = lives.iter().filter(|part| part.0 < life.1 && life.0 < part.1);
            partners.extend(parts.map(|part| part.2));
            if !ranks.is_empty() {
                lists.extend(ranks_of(leaf, life).map(|rank| (List::Rank(leaf, rank), 0)));
            }
        }
        self.partners.join();
        self.visit_nodes(from, to, |node| lists.push((List::Any(node), 0)));
        let (mut low, mut high) = (first + self.leaves, last + self.leaves);
        while low > 0 {
            lists.extend(one_or_two(low, high).map(|node| (List::Whole(node), 0)));
            (low, high) = (low / 2, high / 2);
        }
        lists.retain(|&(list, _)| !self.spans(list).is_empty());
        self.lists = lists;
    }

    fn spans(&self, list: List) -> &[Span] {
        match list {
            List::Whole(node) => &self.nodes[node].whole.0,
            List::Any(node) => &self.nodes[node].any.0,
            List::Rank(leaf, rank) => &self.leaf_parts[leaf].ranks[rank].0,
            List::Partners => &self.partners.0,
        }
    }

    /// The place for a buffer between the stretches of the lists.
    fn find_offset(&mut self, size: u64, alignment: u64, fit: Fit) -> u64 {
        let mut lists = core::mem::take(&mut self.lists);
        // No lower offset fits.
        let mut at = 0_u64;
        let mut best: Option<(u64, u64)> = None;
        let offset = loop {
            // The lists move the offset up in turn, until none does.
            let (mut stable_count, mut turn) = (0, 0);
            while stable_count < lists.len() {
                let (list, place) = lists[turn];
                let spans = self.spans(list);
                let mut place = skip(spans, place, at);
                stable_count += 1;
                while let Some(&(_, end)) = spans.get(place).filter(|span| span.0 < at.saturating_add(size)) {
                    if end > at {
                        at = align_up(end, alignment).unwrap_or(u64::MAX);
                        stable_count = 1;
                    }
                    place += 1;
                }
                lists[turn].1 = place;
                turn = if turn + 1 == lists.len() { 0 } else { turn + 1 };
                self.work += 1;
            }
            if fit == Fit::First {
                break at;
            }
            // The hole extends from the last end below to the first offset above.
            let below = lists.iter().filter_map(|&(list, place)| self.spans(list)[..place].last());
            let above = lists.iter().filter_map(|&(list, place)| self.spans(list).get(place));
            let floor = below.map(|span| span.1).max().unwrap_or(0);
            let Some(next) = above.map(|span| span.0).min() else {
                break best.map_or(at, |(_, at)| at);
            };
            if best.is_none_or(|(least, _)| next - floor < least) {
                best = Some((next - floor, at));
            }
            at = next;
        };
        self.lists = lists;
        offset
    }

    fn add(&mut self, life: (u32, u32), span: Span) {
        let [first, last, from, to] = self.leaves_of(life);
        for leaf in one_or_two(first, last) {
            if !(from..to).contains(&leaf) {
                self.leaf_parts[leaf].add(leaf, life, span);
            }
            // Memory occupied in a node is occupied in all nodes above.
            let mut node = leaf + self.leaves;
            while node > 0 && self.nodes[node].any.add(span) {
                node /= 2;
            }
        }
        let mut nodes = core::mem::take(&mut self.nodes);
        self.visit_nodes(from, to, |node| {
            nodes[node].whole.add(span);
            nodes[node].any.add(span);
        });
        self.nodes = nodes;
    }
}

/// The ranks inside a leaf at which a life occupies memory.
fn ranks_of(leaf: usize, (lower, upper): (u32, u32)) -> Range<usize> {
    let first = leaf as u32 * LEAF;
    let inside = |rank: u32| (rank.max(first) - first).min(LEAF) as usize;
    inside(lower)..inside(upper)
}

fn one_or_two(one: usize, other: usize) -> impl Iterator<Item = usize> {
    core::iter::once(one).chain((one != other).then_some(other))
}

/// The first position from `from` on whose stretch ends above `at`; it is mostly near.
fn skip(spans: &[Span], mut from: usize, at: u64) -> usize {
    let mut step = 1;
    while spans.get(from + step - 1).is_some_and(|span| span.1 <= at) {
        from += step;
        step *= 2;
    }
    let rest = &spans[from..(from + step - 1).min(spans.len())];
    from + rest.partition_point(|span| span.1 <= at)
}
