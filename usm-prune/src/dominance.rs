//! Dominator and post-dominator trees (semi-NCA, without recursion).

use alloc::vec::Vec;

use crate::cfg::{Adjacency, Cfg};

/// No number yet, or no such node.
pub(super) const NONE: u32 = u32::MAX;

/// The blocks that lie on all paths to (or from) others.
pub(crate) struct DominatorTree {
    /// Times at which the tree's walk entered and left each block; `NONE` for unreachable blocks.
    enter: Vec<u32>,
    leave: Vec<u32>,
    /// The immediate dominator of each block; `NONE` for roots and unreachable blocks.
    above: Vec<u32>,
    /// Number of blocks that dominate each block, itself included; 0 if unreachable.
    depth: Vec<u32>,
}

impl DominatorTree {
    /// Dominance from the entry.
    pub(crate) fn forward(cfg: &Cfg) -> Self {
        let entry: &[u32] = if cfg.is_empty() { &[] } else { &[0] };
        Self::new(cfg.len() as u32, entry, cfg.succ(), cfg.pred())
    }

    /// Post-dominance, from the exits and from one block of every loop without an exit.
    pub(crate) fn backward(cfg: &Cfg) -> Self {
        Self::new(cfg.len() as u32, &exits(cfg), cfg.pred(), cfg.succ())
    }

    /// Whether `a` lies on every path from a root to `b`. All blocks dominate an unreachable one.
    pub(crate) fn dominates(&self, a: u32, b: u32) -> bool {
        let (a, b) = (a as usize, b as usize);
        if a == b || self.enter[b] == NONE {
            return true;
        }
        self.enter[a] != NONE && self.enter[a] <= self.enter[b] && self.leave[b] <= self.leave[a]
    }

    /// The immediate dominator; `NONE` if there is none.
    pub(super) fn immediate_dominator(&self, block: u32) -> u32 {
        self.above[block as usize]
    }

    /// Number of blocks that dominate `block`, itself included; 0 if unreachable.
    pub(super) fn depth(&self, block: u32) -> u32 {
        self.depth[block as usize]
    }

    /// Reachable blocks in preorder: each one behind its dominators, and directly before all blocks
    /// that it dominates.
    pub(super) fn preorder(&self) -> Vec<u32> {
        let reached_count = self.enter.iter().filter(|&&enter| enter != NONE).count();
        let mut order = alloc::vec![0; reached_count];
        for (block, &enter) in (0u32..).zip(&self.enter) {
            if enter != NONE {
                // The virtual root has number 0.
                order[enter as usize - 1] = block;
            }
        }
        order
    }

    fn new(nodes: u32, roots: &[u32], next: &Adjacency, previous: &Adjacency) -> Self {
        let n = nodes as usize;
        // Numbers blocks in preorder of a depth-first walk; 0 is a virtual root above all roots.
        let mut number = alloc::vec![NONE; n];
        let mut order: Vec<u32> = alloc::vec![NONE];
        let mut parent: Vec<u32> = alloc::vec![0];
        let mut stack: Vec<(u32, u32)> = roots.iter().rev().map(|&root| (root, 0)).collect();
        while let Some((block, from)) = stack.pop() {
            if number[block as usize] != NONE {
                continue;
            }
            let own = order.len() as u32;
            number[block as usize] = own;
            order.push(block);
            parent.push(from);
            stack.extend(
                next.of(block).iter().rev().filter(|&&to| number[to as usize] == NONE).map(|&to| (to, own)),
            );
        }
        let reached_count = order.len();
        let mut is_root = alloc::vec![false; reached_count];
        for &root in roots {
            is_root[number[root as usize] as usize] = true;
        }

        // Semidominators from the last number to the first, with path compression.
        let mut semi: Vec<u32> = (0..reached_count as u32).collect();
        let mut label = semi.clone();
        let mut ancestor = parent.clone();
        let mut path = Vec::new();
        for w in (1..reached_count).rev() {
            let mut best = if is_root[w] { 0 } else { parent[w] };
            for &before in previous.of(order[w]) {
                let v = number[before as usize];
                if v != NONE {
                    let u = eval(v, w as u32, &mut ancestor, &semi, &mut label, &mut path);
                    best = best.min(semi[u as usize]);
                }
            }
            semi[w] = best;
        }
        // The immediate dominator is the nearest tree ancestor at or above the semidominator.
        let mut idom = parent;
        for w in 1..reached_count {
            let mut above = idom[w];
            while above > semi[w] {
                above = idom[above as usize];
            }
            idom[w] = above;
        }

        // Children come after their parents in preorder, so sizes add up backwards.
        let mut size = alloc::vec![1u32; reached_count];
        for w in (1..reached_count).rev() {
            size[idom[w] as usize] += size[w];
        }
        let mut enter_at = alloc::vec![0u32; reached_count];
        let mut free_at: Vec<u32> = alloc::vec![1; reached_count];
        let (mut enter, mut leave) = (alloc::vec![NONE; n], alloc::vec![NONE; n]);
        let (mut above, mut depth) = (alloc::vec![NONE; n], alloc::vec![0u32; n]);
        for w in 1..reached_count {
            let (block, parent) = (order[w] as usize, idom[w] as usize);
            enter_at[w] = free_at[parent];
            free_at[parent] += size[w];
            free_at[w] = enter_at[w] + 1;
            enter[block] = enter_at[w];
            leave[block] = enter_at[w] + size[w] - 1;
            if parent != 0 {
                above[block] = order[parent];
            }
            depth[block] = if parent == 0 { 1 } else { depth[order[parent] as usize] + 1 };
        }
        Self { enter, leave, above, depth }
    }
}

/// The node with the least semidominator on the tree path from `v` up to the first unprocessed
/// node, excluded. Nodes with numbers up to `last` are unprocessed.
fn eval(
    v: u32,
    last: u32,
    ancestor: &mut [u32],
    semi: &[u32],
    label: &mut [u32],
    path: &mut Vec<u32>,
) -> u32 {
    if v <= last {
        return v;
    }
    let mut node = v;
    while ancestor[node as usize] > last {
        path.push(node);
        node = ancestor[node as usize];
    }
    // `node` is a child of an unprocessed node, so its label is final. Compress the rest of the
    // path onto it.
    let top = ancestor[node as usize];
    let mut best = label[node as usize];
    while let Some(node) = path.pop() {
        ancestor[node as usize] = top;
        if semi[best as usize] < semi[label[node as usize] as usize] {
            label[node as usize] = best;
        } else {
            best = label[node as usize];
        }
    }
    best
}

/// The roots of post-dominance. LLVM's choice, because the reference pass depends on it: blocks
/// without successors; then, for blocks that reach none of those, the last block that a walk along
/// successors numbers; then without roots that reach another root.
pub(super) fn exits(cfg: &Cfg) -> Vec<u32> {
    let n = cfg.len();
    let mut roots: Vec<u32> = cfg.blocks().filter(|&block| cfg.succ().of(block).is_empty()).collect();
    let trivial = roots.len();
    let mut is_covered = alloc::vec![false; n];
    let mut stack = Vec::new();
    let cover = |root: u32, is_covered: &mut [bool], stack: &mut Vec<u32>| {
        stack.push(root);
        while let Some(block) = stack.pop() {
            if !core::mem::replace(&mut is_covered[block as usize], true) {
                stack.extend(cfg.pred().of(block).iter().filter(|&&from| !is_covered[from as usize]));
            }
        }
    };
    for &root in &roots {
        cover(root, &mut is_covered, &mut stack);
    }
    // Marks hold the walk's number, so they need no clearing.
    let mut last_root = alloc::vec![NONE; n];
    for start in cfg.blocks() {
        if is_covered[start as usize] {
            continue;
        }
        let mut furthest = start;
        stack.push(start);
        let mut sorted_blocks: Vec<u32> = Vec::new();
        while let Some(block) = stack.pop() {
            if last_root[block as usize] == start || is_covered[block as usize] {
                continue;
            }
            last_root[block as usize] = start;
            furthest = block;
            sorted_blocks.clear();
            sorted_blocks.extend(cfg.succ().of(block));
            sorted_blocks.sort_unstable();
            stack.extend(&sorted_blocks);
        }
        roots.push(furthest);
        cover(furthest, &mut is_covered, &mut stack);
    }
    if roots.len() == trivial {
        return roots;
    }
    let mut is_root = alloc::vec![false; n];
    for &root in &roots {
        is_root[root as usize] = true;
    }
    let mut last_block = alloc::vec![NONE; n];
    let mut index = 0;
    while index < roots.len() {
        let root = roots[index];
        let reaches_other = {
            stack.clear();
            stack.extend(cfg.succ().of(root));
            let mut has_path = false;
            while let Some(block) = stack.pop() {
                if block == root || last_block[block as usize] == root {
                    continue;
                }
                if is_root[block as usize] {
                    has_path = true;
                    break;
                }
                last_block[block as usize] = root;
                stack.extend(cfg.succ().of(block));
            }
            has_path
        };
        if reaches_other {
            is_root[root as usize] = false;
            roots.swap_remove(index);
        } else {
            index += 1;
        }
    }
    roots
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `a` dominates `b` if removing `a` disconnects `b` from the roots.
    fn cut(n: u32, roots: &[u32], next: &Adjacency, a: u32) -> Vec<bool> {
        let mut seen = alloc::vec![false; n as usize];
        let mut stack: Vec<u32> = roots.to_vec();
        while let Some(block) = stack.pop() {
            if block != a && !core::mem::replace(&mut seen[block as usize], true) {
                stack.extend(next.of(block));
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn dominance_follows_the_definition(
            n in 1u32..12,
            edges in prop::collection::vec((0u32..12, 0u32..12), 0..30),
        ) {
            let cfg = Cfg::of_edges(n, &edges);
            for (tree, roots, next) in [
                (DominatorTree::forward(&cfg), alloc::vec![0], cfg.succ()),
                (DominatorTree::backward(&cfg), exits(&cfg), cfg.pred()),
            ] {
                let reached = cut(n, &roots, next, NONE);
                for a in 0..n {
                    let without = cut(n, &roots, next, a);
                    for b in 0..n {
                        let expected = a == b || !reached[b as usize] || (reached[a as usize] && !without[b as usize]);
                        prop_assert_eq!(tree.dominates(a, b), expected, "{} over {}", a, b);
                    }
                }
            }
        }

        /// Every block reaches a root of post-dominance.
        #[test]
        fn exits_cover_all_blocks(n in 1u32..12, edges in prop::collection::vec((0u32..12, 0u32..12), 0..30)) {
            let cfg = Cfg::of_edges(n, &edges);
            let reached = cut(n, &exits(&cfg), cfg.pred(), NONE);
            prop_assert!(reached.iter().all(|&reached| reached));
        }
    }
}
