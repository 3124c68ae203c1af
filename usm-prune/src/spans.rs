//! Finds the blocks behind which no reference is released, up to a block that always follows.
//!
//! The *span* of a block is every block that can run from it on, itself included, before its
//! immediate post-dominator. It is *busy* while one of its blocks releases a reference. Between a
//! head and one of its post-dominators nothing is released exactly if no block on the way up the
//! tree has a busy span. So the question for a head is its nearest busy ancestor. A span only ever
//! ceases to be busy.
//!
//! A span consists of its block and, for each successor, of the spans on the way up to the same
//! post-dominator. This is a recurrence over siblings of the tree and the subtrees below them.
//! Siblings on a cycle have equal answers and form a group. A group has reasons to be busy: a
//! decrement of one of its blocks, or a way with a busy span. It ceases to be busy with its last
//! reason. A way waits at its first busy span and moves on when that one ceases to be busy.

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
    /// The nearest busy ancestor: blocks that are not busy are merged into their parent.
    busy: Vec<u32>,
    /// The group of each block; the blocks sorted by group, and each group's start.
    group: Vec<u32>,
    members: Vec<u32>,
    first: Vec<u32>,
    /// Number of reasons of each group: releasing blocks, ways, and whether the way up ends there.
    reasons: Vec<u32>,
    ways: Vec<Way>,
    /// Ways that wait at each block, as heaps; the deepest end is on top.
    span_heads: Vec<u32>,
    /// Groups without a reason.
    idle: Vec<u32>,
}

/// The spans from a successor up to an ancestor, excluded.
struct Way {
    /// The group that this way makes busy.
    group: u32,
    /// The depth of the ancestor.
    end: u32,
    /// The leftist heap: subtrees, and the length of the right spine.
    left: u32,
    right: u32,
    rank: u32,
}

impl Spans {
    /// Computes the spans. Adds each idle block with its nearest busy ancestor at that moment to
    /// `idle`.
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
            span_heads: alloc::vec![NONE; n],
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
            // A sibling of the same group is busy exactly if this one is, so the way ends below it.
            let other = spans.group[edge.top as usize] != group;
            let end = spans.depth[edge.top as usize] - u32::from(other);
            if spans.depth[edge.to as usize] > end {
                spans.reasons[group as usize] += 1;
                spans.ways.push(Way { group, end, left: NONE, right: NONE, rank: 1 });
                let way = spans.ways.len() as u32 - 1;
                spans.span_heads[edge.to as usize] = spans.merge(spans.span_heads[edge.to as usize], way);
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

    /// Records that `block` stopped releasing. Adds each block whose span becomes idle to `idle`,
    /// with its nearest busy ancestor at that moment.
    pub(crate) fn clear(&mut self, block: u32, idle: &mut Vec<(u32, u32)>) {
        self.drop_reason(self.group[block as usize]);
        self.propagate_idle(idle);
    }

    /// The edges that make ways, each with the sibling of its start above its end.
    fn edges(&self, index: &Index<'_>, preorder: &[u32]) -> Vec<Edge> {
        let mut edges = Vec::new();
        // The way up from the current block, by depth.
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
                let below = core::mem::replace(&mut self.span_heads[block as usize], NONE);
                let mut spans = self.merge(self.span_heads[busy as usize], below);
                // Ways that end here or below are idle.
                while spans != NONE && self.ways[spans as usize].end >= self.depth[busy as usize] {
                    let Way { group, left, right, .. } = self.ways[spans as usize];
                    spans = self.merge(left, right);
                    self.drop_reason(group);
                }
                self.span_heads[busy as usize] = spans;
            }
        }
    }

    /// Merges two heaps of ways, as deep as their right spines: the logarithm of their size.
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

/// An edge that does not lead to its start's immediate post-dominator.
struct Edge {
    from: u32,
    to: u32,
    /// The sibling of `from` that equals or is an ancestor of `to`.
    top: u32,
}

/// Strongly connected siblings (Tarjan, without recursion): the group of each block, the blocks
/// sorted by group, and each group's start.
fn groups(n: usize, edges: &[Edge]) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let siblings = Adjacency::new(n as u32, edges.iter().map(|edge| (edge.from, edge.top)));
    let mut group = alloc::vec![NONE; n];
    let (mut members, mut first) = (Vec::with_capacity(n), alloc::vec![0u32]);
    let mut number = alloc::vec![NONE; n];
    let mut lowest = alloc::vec![NONE; n];
    // Number of siblings of each block that the walk has taken.
    let mut counts = alloc::vec![0u32; n];
    let mut next_number = 0;
    let (mut open, mut path) = (Vec::new(), Vec::new());
    for root in 0..n as u32 {
        if number[root as usize] != NONE {
            continue;
        }
        path.push(root);
        while let Some(&block) = path.last() {
            let at = block as usize;
            if number[at] == NONE {
                (number[at], lowest[at]) = (next_number, next_number);
                next_number += 1;
                open.push(block);
            }
            if let Some(&to) = siblings.of(block).get(counts[at] as usize) {
                counts[at] += 1;
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
