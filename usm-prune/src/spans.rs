//! Which blocks nothing is given back behind, up to a block that always follows.
//!
//! The *span* of a block is what can run from it on, itself included, before its immediate
//! post-dominator. It is *busy* while something in it gives a reference back. From a head to one of
//! its post-dominators nothing is given back exactly when no block on the way up the tree has a
//! busy span: so what is asked of a head is its nearest ancestor that is busy, and spans only ever
//! cease to be.
//!
//! A span consists of its block and, for each successor, of the spans on the way from there up to
//! the same post-dominator. That is a recurrence over siblings of the tree and what hangs below
//! them. Siblings that run in circles have equal answers and form a group; a group ceases to be
//! busy when its last reason does: a decrement of one of its blocks, or a way with a busy span. A
//! way waits at its first busy span and moves on when that ceases to be busy.

use alloc::vec::Vec;

use crate::cfg::Adjacency;
use crate::dominance::{DominatorTree, NONE};
use crate::index::Index;
use crate::loops::find;

/// The busy spans of a graph.
pub(crate) struct Spans {
    /// The immediate post-dominator, and its depth in the tree.
    above: Vec<u32>,
    depth: Vec<u32>,
    /// The nearest busy ancestor, by merging blocks that are not busy into what is above them.
    busy: Vec<u32>,
    /// The group of each block, and the blocks sorted by group, with where each group begins.
    group: Vec<u32>,
    members: Vec<u32>,
    first: Vec<u32>,
    /// Why each group is busy: how many blocks, ways, and whether the way up ends here.
    reasons: Vec<u32>,
    ways: Vec<Way>,
    /// Ways that wait at each block: heaps, the way that ends deepest on top.
    waiting: Vec<u32>,
    /// Groups that have no reason left.
    idle: Vec<u32>,
}

/// The spans from a successor up to, without, an ancestor.
struct Way {
    /// The group that is busy because of it.
    group: u32,
    /// The depth of that ancestor.
    end: u32,
    /// The leftist heap: subtrees and the length of the right spine.
    left: u32,
    right: u32,
    rank: u32,
}

impl Spans {
    /// The spans, and each block that was found not to be busy with its nearest busy ancestor at
    /// that moment.
    pub(crate) fn new(index: &Index<'_>, up: &DominatorTree, idle: &mut Vec<(u32, u32)>) -> Self {
        let n = index.cfg.len();
        let mut spans = Self {
            above: index.cfg.blocks().map(|block| up.immediate_dominator(block)).collect(),
            depth: index.cfg.blocks().map(|block| up.depth(block)).collect(),
            busy: index.cfg.blocks().collect(),
            group: Vec::new(),
            members: Vec::new(),
            first: Vec::new(),
            reasons: Vec::new(),
            ways: Vec::new(),
            waiting: alloc::vec![NONE; n],
            idle: Vec::new(),
        };
        let edges = spans.edges(index, &up.preorder());
        (spans.group, spans.members, spans.first) = groups(n, &edges);
        spans.reasons = alloc::vec![0; spans.first.len() - 1];
        for block in index.cfg.blocks() {
            let top = spans.above[block as usize] == NONE;
            let reasons = u32::from(index.has_dec(block)) + u32::from(top);
            spans.reasons[spans.group[block as usize] as usize] += reasons;
        }
        for edge in &edges {
            let group = spans.group[edge.from as usize];
            // A sibling of the same group is busy exactly when this one is, so the way ends below
            // it.
            let other = spans.group[edge.top as usize] != group;
            let end = spans.depth[edge.top as usize] - u32::from(other);
            if spans.depth[edge.to as usize] > end {
                spans.reasons[group as usize] += 1;
                spans.ways.push(Way { group, end, left: NONE, right: NONE, rank: 1 });
                let way = spans.ways.len() as u32 - 1;
                spans.waiting[edge.to as usize] = spans.merge(spans.waiting[edge.to as usize], way);
            }
        }
        let groups = (0u32..).zip(&spans.reasons);
        spans.idle = groups.filter(|(_, reasons)| **reasons == 0).map(|(group, _)| group).collect();
        spans.propagate_idle(idle);
        spans
    }

    /// The nearest block at or above `block` in the tree whose span is busy.
    pub(crate) fn busy(&mut self, block: u32) -> u32 {
        find(&mut self.busy, block)
    }

    /// Notes that `block` gives nothing back any more. Adds each block whose span is idle from now
    /// on to `idle`, with its nearest busy ancestor at that moment.
    pub(crate) fn clear(&mut self, block: u32, idle: &mut Vec<(u32, u32)>) {
        self.drop_reason(self.group[block as usize]);
        self.propagate_idle(idle);
    }

    /// The edges that make ways, with the sibling of their start that is above their end.
    fn edges(&self, index: &Index<'_>, preorder: &[u32]) -> Vec<Edge> {
        let mut edges = Vec::new();
        // The way up from the block at hand, by depth.
        let mut path = alloc::vec![NONE; self.above.len() + 2];
        for &to in preorder {
            path[self.depth[to as usize] as usize] = to;
            for &from in index.cfg.pred().of(to) {
                let above = self.above[from as usize];
                if above != NONE && above != to {
                    edges.push(Edge { from, to, top: path[self.depth[above as usize] as usize + 1] });
                }
            }
        }
        edges
    }

    fn drop_reason(&mut self, group: u32) {
        let reasons = &mut self.reasons[group as usize];
        *reasons -= 1;
        if *reasons == 0 {
            self.idle.push(group);
        }
    }

    fn propagate_idle(&mut self, idle: &mut Vec<(u32, u32)>) {
        while let Some(group) = self.idle.pop() {
            for at in self.first[group as usize]..self.first[group as usize + 1] {
                let block = self.members[at as usize];
                let busy = self.busy(self.above[block as usize]);
                self.busy[block as usize] = busy;
                idle.push((block, busy));
                let below = core::mem::replace(&mut self.waiting[block as usize], NONE);
                let mut waiting = self.merge(self.waiting[busy as usize], below);
                // Ways that end here or below are idle.
                while waiting != NONE && self.ways[waiting as usize].end >= self.depth[busy as usize] {
                    let Way { group, left, right, .. } = self.ways[waiting as usize];
                    waiting = self.merge(left, right);
                    self.drop_reason(group);
                }
                self.waiting[busy as usize] = waiting;
            }
        }
    }

    /// Merges two heaps of ways; goes as deep as right spines are long, the logarithm of their
    /// size.
    fn merge(&mut self, a: u32, b: u32) -> u32 {
        if a == NONE || b == NONE {
            return a.min(b);
        }
        let (top, other) =
            if self.ways[a as usize].end >= self.ways[b as usize].end { (a, b) } else { (b, a) };
        let right = self.merge(self.ways[top as usize].right, other);
        let left = self.ways[top as usize].left;
        let rank = |way: u32| if way == NONE { 0 } else { self.ways[way as usize].rank };
        let (left, right) = if rank(left) >= rank(right) { (left, right) } else { (right, left) };
        let length = rank(right) + 1;
        let way = &mut self.ways[top as usize];
        (way.left, way.right, way.rank) = (left, right, length);
        top
    }
}

/// An edge that does not lead to the immediate post-dominator of its start.
struct Edge {
    from: u32,
    to: u32,
    /// The sibling of `from` that is `to` or above it.
    top: u32,
}

/// Strongly connected siblings (Tarjan, without recursion): the group of each block, the blocks
/// sorted by group, where each group begins.
fn groups(n: usize, edges: &[Edge]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let siblings = Adjacency::new(n as u32, edges.iter().map(|edge| (edge.from, edge.top)));
    let mut group = alloc::vec![NONE; n];
    let (mut members, mut first) = (Vec::with_capacity(n), alloc::vec![0u32]);
    let mut number = alloc::vec![NONE; n];
    let mut lowest = alloc::vec![NONE; n];
    // How many siblings of each block the walk has taken.
    let mut taken = alloc::vec![0u32; n];
    let mut numbered = 0;
    let (mut open, mut path) = (Vec::new(), Vec::new());
    for root in 0..n as u32 {
        if number[root as usize] != NONE {
            continue;
        }
        path.push(root);
        while let Some(&block) = path.last() {
            let at = block as usize;
            if number[at] == NONE {
                (number[at], lowest[at]) = (numbered, numbered);
                numbered += 1;
                open.push(block);
            }
            if let Some(&to) = siblings.of(block).get(taken[at] as usize) {
                taken[at] += 1;
                if number[to as usize] == NONE {
                    path.push(to);
                } else if group[to as usize] == NONE {
                    lowest[at] = lowest[at].min(number[to as usize]);
                }
                continue;
            }
            path.pop();
            if let Some(&before) = path.last() {
                lowest[before as usize] = lowest[before as usize].min(lowest[at]);
            }
            if lowest[at] == number[at] {
                while let Some(member) = open.pop() {
                    group[member as usize] = first.len() as u32 - 1;
                    members.push(member);
                    if member == block {
                        break;
                    }
                }
                first.push(members.len() as u32);
            }
        }
    }
    (group, members, first)
}
