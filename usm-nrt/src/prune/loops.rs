//! The innermost loop of every block, for graphs of any shape.
//!
//! A loop is what comes back to its header without leaving the header's subtree in a depth-first walk
//! (Havlak). Irreducible graphs stay near linear as Ramalingam showed: an edge between two subtrees
//! counts from the block on at which they join.

use alloc::vec::Vec;

use super::cfg::Cfg;
use super::dominance::NONE;

/// Loops of the blocks that the entry reaches.
pub(crate) struct Loops {
    /// Preorder numbers of the walk; `NONE` for blocks out of reach.
    number: Vec<u32>,
    /// Number of the header of the innermost loop, by number; `NONE` outside of loops.
    header: Vec<u32>,
}

impl Loops {
    pub(crate) fn new(cfg: &Cfg) -> Self {
        let mut number = alloc::vec![NONE; cfg.len()];
        let mut edges = if cfg.is_empty() { Vec::new() } else { walk(cfg, &mut number) };
        edges.sort_unstable_by_key(|edge| edge.join);
        let header = headers(cfg.len(), &edges);
        Self { number, header }
    }

    /// Whether every way from `tail` back to itself leads over `head`, which dominates it; `None` out of the entry's reach.
    ///
    /// A cycle through `tail` without `head` lies below its first block in the walk, which then lies below `head`:
    /// otherwise a path from the entry along the tree and that cycle would come to `tail` without `head`.
    pub(crate) fn returns_over(&self, head: u32, tail: u32) -> Option<bool> {
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
    /// The nearest block above both ends in the tree of the walk.
    join: u32,
    from: u32,
    to: u32,
}

/// Numbers all blocks in reach and finds where the ends of each edge join.
fn walk(cfg: &Cfg, number: &mut [u32]) -> Vec<Edge> {
    let mut edges = Vec::new();
    // A block is merged into its parent when the walk leaves it: what is found of a block seen before is its nearest
    // ancestor on the stack.
    let mut above = alloc::vec![0];
    let mut stack = alloc::vec![(0u32, 0usize)];
    number[0] = 0;
    while let Some((block, taken)) = stack.last_mut() {
        let own = number[*block as usize];
        let Some(&to) = cfg.succ().of(*block).get(*taken) else {
            stack.pop();
            if let Some(&(before, _)) = stack.last() {
                above[own as usize] = number[before as usize];
            }
            continue;
        };
        *taken += 1;
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
    edges
}

/// The innermost header of each numbered block, from edges sorted by where they join.
fn headers(blocks: usize, edges: &[Edge]) -> Vec<u32> {
    let mut header = alloc::vec![NONE; blocks];
    // Loops found so far stand for themselves by their headers.
    let mut set: Vec<u32> = (0..blocks as u32).collect();
    // Edges into each of them, as lists.
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
        let mut done = 0;
        while let Some(&member) = body.get(done) {
            done += 1;
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

/// What stands for `node`; shortens the way for the next question.
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
    use super::super::cfg::{BlockId, CfgBuilder};
    use super::super::dominance::DominatorTree;
    use super::*;
    use proptest::prelude::*;

    /// Whether a walk from `tail` without `head` comes to `tail` again.
    fn returns_without(cfg: &Cfg, head: u32, tail: u32) -> bool {
        let mut seen = alloc::vec![false; cfg.len()];
        let mut stack = cfg.succ().of(tail).to_vec();
        while let Some(block) = stack.pop() {
            if block == tail {
                return true;
            }
            if block != head && !core::mem::replace(&mut seen[block as usize], true) {
                stack.extend(cfg.succ().of(block));
            }
        }
        false
    }

    proptest! {
        #[test]
        fn cycles_are_what_walks_find(n in 1u32..12, edges in prop::collection::vec((0u32..12, 0u32..12), 0..30)) {
            let mut builder = CfgBuilder::new();
            for _ in 0..n {
                builder.block(false);
            }
            for (from, to) in edges {
                builder.edge(BlockId(from % n), BlockId(to % n));
            }
            let cfg = builder.build().unwrap();
            let (loops, down) = (Loops::new(&cfg), DominatorTree::forward(&cfg));
            for head in 0..n {
                for tail in (0..n).filter(|&tail| tail != head && down.dominates(head, tail)) {
                    if let Some(over) = loops.returns_over(head, tail) {
                        prop_assert_eq!(over, !returns_without(&cfg, head, tail), "{} to {}", head, tail);
                    }
                }
            }
        }
    }
}
