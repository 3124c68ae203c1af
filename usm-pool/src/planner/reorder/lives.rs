//! What the order of the operators decides: which roots are live at each of them.
//!
//! A root is live from the first operator that uses it or one of its views to the last one. An
//! output that an operator may write over a dying input is not counted at that operator, as in
//! [`Problem::relaxed`](crate::Problem::relaxed), so no plan of any order is below these sums.

use alloc::vec::Vec;

use super::permits::Permits;
use crate::Error;
use crate::alias::{Block, Blocks, InPlace};
use crate::graph::Graph;
use crate::lifetime::align_up;
use crate::permit::Permit;

/// A root whose life depends on the order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    /// Its size in bytes, rounded up to the unit of the lives.
    pub(super) room: u64,
    /// The part of the room that the topmost buffer leaves free.
    pub(super) slack: u64,
    /// Its place in [`Lives::slacks`], if it has slack.
    pub(super) slack_rank: u32,
    /// Number of operators that use it.
    pub(super) uses: u32,
    pub(super) from_start: bool,
    pub(super) to_end: bool,
}

/// Operators, their order, and the roots they use.
#[derive(Clone, Debug)]
pub(super) struct Lives {
    pub(super) before: Vec<Vec<u32>>,
    pub(super) after: Vec<Vec<u32>>,
    /// For each operator the roots that it uses, each once.
    pub(super) uses: Vec<Vec<u32>>,
    /// For each operator the permits that some order can take.
    pub(super) permits: Vec<Vec<Permits>>,
    pub(super) roots: Vec<Root>,
    /// The slacks that roots have, each once, the largest first.
    pub(super) slacks: Vec<u64>,
    /// Operators that end no life in any order, because a successor or the caller uses all that
    /// they use. They need not run before the first successor is about to.
    pub(super) ends_nothing: Vec<bool>,
    /// Whether the bytes at the operators of an order are the cuts of its plan: one alignment, and
    /// no permit.
    pub(super) is_exact: bool,
}

impl Lives {
    /// Loops are not counted: they only lengthen lives.
    pub(super) fn new(graph: &Graph) -> Result<Self, Error> {
        let n = graph.ops().len();
        let blocks = Blocks::new(graph, InPlace::Never, None)?;
        let is_counted =
            |block: &Block| block.size > 0 && (!block.ops.is_empty() || (block.from_start && block.to_end));
        let unit =
            blocks.blocks().iter().filter(|block| is_counted(block)).map(|block| block.alignment).min();
        let unit = unit.unwrap_or(1);
        let mut lives = Self {
            before: (0..n).map(|op| direct(graph, op)).collect(),
            after: alloc::vec![Vec::new(); n],
            uses: alloc::vec![Vec::new(); n],
            permits: alloc::vec![Vec::new(); n],
            roots: Vec::new(),
            slacks: Vec::new(),
            ends_nothing: Vec::new(),
            is_exact: blocks.blocks().iter().all(|block| block.alignment == unit || block.size == 0),
        };
        for op in 0..n {
            for at in 0..lives.before[op].len() {
                let earlier = lives.before[op][at];
                lives.after[earlier as usize].push(op as u32);
            }
        }
        let mut sum = 0_u64;
        let mut number = alloc::vec![None; blocks.blocks().len()];
        for (slot, block) in number.iter_mut().zip(blocks.blocks()).filter(|(_, block)| is_counted(block)) {
            let root = lives.roots.len() as u32;
            *slot = Some(root);
            let family = || graph.family(block.root).iter().map(|&member| &graph.tensors()[member]);
            let mut ops: Vec<usize> =
                family().flat_map(|node| node.users.iter().copied().chain(node.producer)).collect();
            ops.sort_unstable();
            ops.dedup();
            let room = align_up(block.size, unit).unwrap_or(block.size);
            // Where a read may come before the first write, the order decides. The life from the
            // first use is a part of it.
            let from_start = block.from_start && family().all(|node| node.producer.is_none());
            let to_end = block.to_end;
            sum = sum.checked_add(room).ok_or(Error::SizeOverflow {
                id: graph.tensors()[block.root].id,
                size: block.size,
                sum,
            })?;
            lives.is_exact &= from_start == block.from_start;
            lives.roots.push(Root {
                room,
                slack: room - block.size,
                slack_rank: 0,
                uses: ops.len() as u32,
                from_start,
                to_end,
            });
            for op in ops {
                lives.uses[op].push(root);
            }
        }
        lives.slacks = lives.roots.iter().map(|root| root.slack).filter(|&slack| slack > 0).collect();
        lives.slacks.sort_unstable_by_key(|&slack| core::cmp::Reverse(slack));
        lives.slacks.dedup();
        for root in &mut lives.roots {
            root.slack_rank = lives.slacks.partition_point(|&slack| slack > root.slack) as u32;
        }
        for op in 0..n {
            let mut pairs = Vec::new();
            for &(input, output) in &graph.ops()[op].in_place {
                let (Some((from, at)), Some((to, 0))) = (blocks.place(input), blocks.place(output)) else {
                    continue;
                };
                let (Some(source), Some(target)) = (number[from], number[to]) else { continue };
                let permit = Permit {
                    op,
                    input,
                    output,
                    source: (&blocks.blocks()[from], at),
                    target: &blocks.blocks()[to],
                };
                lives.is_exact = false;
                if permit.can_be_taken_in_some_order(graph) {
                    pairs.push((source, target));
                }
            }
            lives.permits[op] = Permits::groups(&pairs);
        }
        lives.find_what_ends_nothing();
        Ok(lives)
    }

    pub(super) fn len(&self) -> usize {
        self.before.len()
    }

    /// Bytes that are live before the first operator or after the last one, the larger.
    pub(super) fn at_an_end(&self) -> u64 {
        let bytes = |live: fn(&Root) -> bool| {
            let roots = || self.roots.iter().filter(|root| live(root));
            let slack = roots().map(|root| root.slack).max().unwrap_or(0);
            roots().map(|root| root.room).sum::<u64>() - slack
        };
        bytes(|root| root.from_start).max(bytes(|root| root.to_end))
    }

    /// The same lives with time backwards: every order has the same bytes at every operator.
    pub(super) fn reversed(&self) -> Self {
        let mut roots = self.roots.clone();
        for root in &mut roots {
            core::mem::swap(&mut root.from_start, &mut root.to_end);
        }
        let mut lives = Self {
            before: self.after.clone(),
            after: self.before.clone(),
            uses: self.uses.clone(),
            permits: self
                .permits
                .iter()
                .map(|groups| groups.iter().map(Permits::reversed).collect())
                .collect(),
            roots,
            slacks: self.slacks.clone(),
            ends_nothing: Vec::new(),
            is_exact: self.is_exact,
        };
        lives.find_what_ends_nothing();
        lives
    }

    fn find_what_ends_nothing(&mut self) {
        let mut used_after = alloc::vec![usize::MAX; self.roots.len()];
        // The roots of an operator are in ascending order.
        let uses = |op: u32, root: u32| self.uses[op as usize].binary_search(&root).is_ok();
        let ends_nothing = |op: usize| {
            let after = &self.after[op];
            // Either may be long: what later operators use, or what this one does for each of them.
            let all: usize = after.iter().map(|&successor| self.uses[successor as usize].len()).sum();
            let is_marked = all < self.uses[op].len().saturating_mul(after.len());
            if is_marked {
                let used = after.iter().flat_map(|&successor| &self.uses[successor as usize]);
                used.for_each(|&root| used_after[root as usize] = op);
            }
            let is_used = |root: u32| match is_marked {
                true => used_after[root as usize] == op,
                false => after.iter().any(|&successor| uses(successor, root)),
            };
            let stays = |&root: &u32| self.roots[root as usize].to_end || is_used(root);
            !self.after[op].is_empty() && self.uses[op].iter().all(stays)
        };
        self.ends_nothing = (0..self.len()).map(ends_nothing).collect();
    }
}

/// The earlier operators that must end before `op` begins, each once.
fn direct(graph: &Graph, op: usize) -> Vec<u32> {
    let mut predecessors: Vec<u32> =
        graph.predecessors(op).into_iter().filter(|&other| other < op).map(|other| other as u32).collect();
    predecessors.sort_unstable();
    predecessors.dedup();
    predecessors
}
