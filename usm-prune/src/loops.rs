//! The innermost loop of every block, for graphs of any shape.
//!
//! A loop is the set of blocks that return to its header without leaving the header's subtree of a
//! depth-first walk (Havlak). Irreducible graphs stay near linear by Ramalingam's method: an edge
//! between two subtrees counts from the block where they join.

use alloc::vec::Vec;

use crate::cfg::{Adjacency, Cfg};
use crate::dominance::{NONE, exits};

/// Loops of the blocks that a walk from the entry, or backwards from the exits, reaches.
pub(crate) struct Loops {
    /// Preorder numbers of the walk; `NONE` for unreachable blocks.
    number: Vec<u32>,
    /// For each number, the number of the innermost loop's header; `NONE` outside of loops.
    header: Vec<u32>,
}

impl Loops {
    /// Loops as seen from the entry.
    pub(crate) fn forward(cfg: &Cfg) -> Self {
        let entry: &[u32] = if cfg.is_empty() { &[] } else { &[0] };
        Self::new(cfg.len(), entry, cfg.succ())
    }

    /// Loops of the reversed graph, from the roots of post-dominance.
    pub(crate) fn backward(cfg: &Cfg) -> Self {
        Self::new(cfg.len(), &exits(cfg), cfg.pred())
    }

    fn new(blocks: usize, roots: &[u32], next: &Adjacency) -> Self {
        let mut number = alloc::vec![NONE; blocks];
        let mut edges = walk(roots, next, &mut number);
        edges.sort_unstable_by_key(|edge| edge.join);
        let header = headers(blocks + 1, &edges);
        Self { number, header }
    }

    /// The number of the header of the innermost loop of a block.
    pub(crate) fn header(&self, block: u32) -> Option<u32> {
        let number = self.number[block as usize];
        let header = if number == NONE { NONE } else { self.header[number as usize] };
        (header != NONE).then_some(header)
    }

    /// The blocks by their numbers, which start at 1.
    pub(crate) fn blocks(&self) -> Vec<u32> {
        let mut blocks = alloc::vec![NONE; self.number.len() + 1];
        for (block, &number) in (0u32..).zip(&self.number) {
            if number != NONE {
                blocks[number as usize] = block;
            }
        }
        blocks
    }

    /// Whether every path from `tail` back to itself passes `head`, which dominates it (in the
    /// direction of the walk). `None` if unreachable.
    ///
    /// A cycle through `tail` without `head` lies below its first block in the walk, and that block
    /// lies below `head`. Otherwise a path from the root along the tree and that cycle would reach
    /// `tail` without `head`.
    pub(crate) fn returns_through(&self, head: u32, tail: u32) -> Option<bool> {
        let number = self.number[tail as usize];
        if number == NONE {
            return None;
        }
        let header = self.header[number as usize];
        Some(header == NONE || header <= self.number[head as usize])
    }
}

/// An edge between numbered blocks.
struct Edge {
    /// The nearest common ancestor of both ends in the tree of the walk.
    join: u32,
    from: u32,
    to: u32,
}

/// Numbers all reachable blocks, and finds the join of each edge's ends.
fn walk(roots: &[u32], next: &Adjacency, number: &mut [u32]) -> Vec<Edge> {
    let mut edges = Vec::new();
    // The walk merges a block into its parent when it leaves it. So the representative of a visited
    // block is its nearest ancestor on the stack. Number 0 is above all roots.
    let mut above = alloc::vec![0];
    let mut stack: Vec<(u32, usize)> = Vec::new();
    for &root in roots {
        if number[root as usize] == NONE {
            number[root as usize] = above.len() as u32;
            above.push(above.len() as u32);
            stack.push((root, 0));
        }
        while let Some((block, edge_count)) = stack.last_mut() {
            let own = number[*block as usize];
            let Some(&to) = next.of(*block).get(*edge_count) else {
                stack.pop();
                above[own as usize] = stack.last().map_or(0, |&(before, _)| number[before as usize]);
                continue;
            };
            *edge_count += 1;
            if number[to as usize] == NONE {
                let new = above.len() as u32;
                number[to as usize] = new;
                above.push(new);
                stack.push((to, 0));
                edges.push(Edge { join: own, from: own, to: new });
            } else {
                let to = number[to as usize];
                edges.push(Edge { join: find(&mut above, to), from: own, to });
            }
        }
    }
    edges
}

/// The innermost header of each numbered block, from edges sorted by their joins.
fn headers(blocks: usize, edges: &[Edge]) -> Vec<u32> {
    let mut header = alloc::vec![NONE; blocks];
    // The header represents each loop that is already found.
    let mut set: Vec<u32> = (0..blocks as u32).collect();
    // Lists of the edges into each block.
    let mut into = alloc::vec![NONE; blocks];
    let mut next = alloc::vec![NONE; edges.len()];
    let mut mark = alloc::vec![NONE; blocks];
    let mut body: Vec<u32> = Vec::new();
    let mut end = edges.len();
    while let Some(last) = edges[..end].last() {
        let own = last.join;
        let start = edges[..end].partition_point(|edge| edge.join < own);
        body.clear();
        mark[own as usize] = own;
        for (at, edge) in edges[start..end].iter().enumerate() {
            if edge.to == own {
                header[own as usize] = own;
                add(&mut body, &mut mark, find(&mut set, edge.from), own);
            } else {
                let to = find(&mut set, edge.to) as usize;
                next[start + at] = into[to];
                into[to] = (start + at) as u32;
            }
        }
        end = start;
        let mut position = 0;
        while let Some(&member) = body.get(position) {
            position += 1;
            let mut edge = into[member as usize];
            while edge != NONE {
                add(&mut body, &mut mark, find(&mut set, edges[edge as usize].from), own);
                edge = next[edge as usize];
            }
        }
        for &member in &body {
            set[member as usize] = own;
            if header[member as usize] == NONE {
                header[member as usize] = own;
            }
        }
    }
    header
}

/// Adds a block to the loop of `own`, once.
fn add(body: &mut Vec<u32>, mark: &mut [u32], block: u32, own: u32) {
    if core::mem::replace(&mut mark[block as usize], own) != own {
        body.push(block);
    }
}

/// The representative of `node`; compresses the path.
pub(super) fn find(set: &mut [u32], mut node: u32) -> u32 {
    while set[node as usize] != node {
        let above = set[set[node as usize] as usize];
        set[node as usize] = above;
        node = above;
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dominance::DominatorTree;
    use proptest::prelude::*;

    /// Whether a walk from `tail` without `head` returns to `tail`.
    fn returns_without(n: usize, next: &Adjacency, head: u32, tail: u32) -> bool {
        let mut seen = alloc::vec![false; n];
        let mut stack = next.of(tail).to_vec();
        while let Some(block) = stack.pop() {
            if block == tail {
                return true;
            }
            if block != head && !core::mem::replace(&mut seen[block as usize], true) {
                stack.extend(next.of(block));
            }
        }
        false
    }

    proptest! {
        #[test]
        fn cycles_are_what_walks_find(n in 1u32..12, edges in prop::collection::vec((0u32..12, 0u32..12), 0..30)) {
            let cfg = Cfg::of_edges(n, &edges);
            for (loops, tree, next) in [
                (Loops::forward(&cfg), DominatorTree::forward(&cfg), cfg.succ()),
                (Loops::backward(&cfg), DominatorTree::backward(&cfg), cfg.pred()),
            ] {
                for head in 0..n {
                    for tail in (0..n).filter(|&tail| tail != head && tree.dominates(head, tail)) {
                        if let Some(over) = loops.returns_through(head, tail) {
                            let without = returns_without(n as usize, next, head, tail);
                            prop_assert_eq!(over, !without, "{} to {}", head, tail);
                        }
                    }
                }
            }
        }
    }
}
