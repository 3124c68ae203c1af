//! Finds the operations of a graph while passes remove some.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;

use hashbrown::HashMap;

use crate::cfg::{BlockId, Cfg, Op, OpKind, Value};

/// Blocks with more operations find them through a map instead of a scan.
const LARGE: usize = 32;

/// The operations of a graph while passes remove some.
pub(crate) struct Index<'a> {
    pub(crate) cfg: &'a mut Cfg,
    /// Whether each operation is removed, by id.
    is_removed: Vec<bool>,
    /// Number of live decrements of each block.
    dec_count: Vec<u32>,
    /// All increments of the start, in function order.
    increments: Vec<(u32, Op)>,
    /// For each block, the first of its increments that may be live, and their end.
    own: Vec<Range<u32>>,
    /// Blocks that lost their last decrement, and blocks that lost an increment, in the order of
    /// the removals.
    cleared_values: Vec<u32>,
    changed_blocks: Vec<u32>,
    /// Live operations of large blocks, in order.
    large: HashMap<(u32, OpKind, Value), VecDeque<u32>>,
    /// Number of steps of all passes.
    #[cfg(test)]
    pub(super) work: core::cell::Cell<u64>,
}

/// The choice among several equal operations of a block.
#[derive(Clone, Copy)]
pub(crate) enum Pick {
    First,
    Last,
    Id(u32),
}

impl<'a> Index<'a> {
    pub(crate) fn new(cfg: &'a mut Cfg) -> Self {
        let all = cfg.blocks().flat_map(|block| cfg.ops(BlockId(block)));
        let ops = all.map(|op| op.id as usize + 1).max().unwrap_or(0);
        let (mut increments, mut own) = (Vec::new(), Vec::new());
        let mut large: HashMap<_, VecDeque<u32>> = HashMap::new();
        let mut dec_count = alloc::vec![0u32; cfg.len()];
        for block in cfg.blocks() {
            let ops = cfg.ops(BlockId(block));
            let start = increments.len() as u32;
            for op in ops {
                if op.kind == OpKind::Dec {
                    dec_count[block as usize] += 1;
                } else {
                    increments.push((block, *op));
                }
                if ops.len() > LARGE {
                    large.entry((block, op.kind, op.value)).or_default().push_back(op.id);
                }
            }
            own.push(start..increments.len() as u32);
        }
        let is_removed = alloc::vec![false; ops];
        Self {
            cfg,
            is_removed,
            dec_count,
            increments,
            own,
            cleared_values: Vec::new(),
            changed_blocks: Vec::new(),
            large,
            #[cfg(test)]
            work: Default::default(),
        }
    }

    /// Counts a step of a walk or search, for tests of the growth.
    #[inline]
    pub(crate) fn step(&self) {
        self.steps(1);
    }

    /// Counts steps.
    #[inline]
    pub(crate) fn steps(&self, _steps: usize) {
        #[cfg(test)]
        self.work.set(self.work.get() + _steps as u64);
    }

    /// All increments of the start with their blocks, in function order.
    pub(crate) fn increments(&self) -> &[(u32, Op)] {
        &self.increments
    }

    /// The first live increment of a block.
    pub(crate) fn first_increment(&mut self, block: u32) -> Option<Op> {
        let own = &mut self.own[block as usize];
        loop {
            let &(_, op) = self.increments.get(own.start as usize).filter(|_| own.start < own.end)?;
            if !self.is_removed[op.id as usize] {
                return Some(op);
            }
            own.start += 1;
        }
    }

    /// Whether no increment or no decrement is left, so that nothing can cancel.
    pub(crate) fn has_no_pairs(&self) -> bool {
        self.increments.iter().all(|(_, op)| self.is_removed[op.id as usize])
            || self.dec_count.iter().all(|&count| count == 0)
    }

    /// Whether an operation was removed.
    pub(crate) fn is_removed(&self, op: Op) -> bool {
        self.is_removed[op.id as usize]
    }

    /// Blocks that lost their last decrement, in the order of the removals.
    pub(crate) fn cleared(&self) -> &[u32] {
        &self.cleared_values
    }

    /// Blocks that lost an increment, in the order of the removals.
    pub(crate) fn changed(&self) -> &[u32] {
        &self.changed_blocks
    }

    /// The live operations of a kind in a block.
    pub(crate) fn live(&self, block: u32, kind: OpKind) -> impl DoubleEndedIterator<Item = Op> + '_ {
        let ops = self.cfg.ops(BlockId(block)).iter().copied();
        ops.filter(move |op| op.kind == kind && !self.is_removed[op.id as usize])
    }

    /// Whether a block has a live decrement.
    pub(crate) fn has_dec(&self, block: u32) -> bool {
        self.dec_count[block as usize] > 0
    }

    /// The values of all operations that a block had, with the block.
    pub(crate) fn all(&self, block: u32) -> impl Iterator<Item = (Value, u32)> + '_ {
        self.cfg.ops(BlockId(block)).iter().map(move |op| (op.value, block))
    }

    /// Whether a scan of a block's operations is longer than one of `others`.
    pub(crate) fn is_longer(&self, block: u32, others: usize) -> bool {
        self.cfg.ops(BlockId(block)).len() > others
    }

    /// Whether a block has an operation of this kind on `value`.
    pub(crate) fn has(&self, kind: OpKind, block: u32, value: Value) -> bool {
        if kind == OpKind::Dec && !self.has_dec(block) {
            return false;
        }
        if self.is_large(block) {
            return self.large.contains_key(&(block, kind, value));
        }
        self.live(block, kind).any(|op| op.value == value)
    }

    /// Removes an operation on `value` from a block; false if there is none.
    pub(crate) fn remove(&mut self, kind: OpKind, block: u32, value: Value, pick: Pick) -> bool {
        let id = if self.is_large(block) {
            self.take_large((block, kind, value), pick)
        } else {
            let mut same = self.live(block, kind).filter(|op| op.value == value).map(|op| op.id);
            match pick {
                Pick::First => same.next(),
                Pick::Last => same.next_back(),
                Pick::Id(id) => same.find(|&other| other == id),
            }
        };
        let Some(id) = id else { return false };
        self.is_removed[id as usize] = true;
        if kind == OpKind::Inc {
            self.changed_blocks.push(block);
            return true;
        }
        self.dec_count[block as usize] -= 1;
        if self.dec_count[block as usize] == 0 {
            self.cleared_values.push(block);
        }
        true
    }

    fn is_large(&self, block: u32) -> bool {
        self.cfg.ops(BlockId(block)).len() > LARGE
    }

    fn take_large(&mut self, key: (u32, OpKind, Value), pick: Pick) -> Option<u32> {
        let ids = self.large.get_mut(&key)?;
        let id = match pick {
            Pick::First => ids.pop_front(),
            Pick::Last => ids.pop_back(),
            Pick::Id(id) => ids.iter().position(|&other| other == id).and_then(|at| ids.remove(at)),
        };
        if ids.is_empty() {
            self.large.remove(&key);
        }
        id
    }

    /// Removes the operations from the graph.
    pub(crate) fn finish(self) {
        for ops in self.cfg.ops_mut() {
            ops.retain(|op| !self.is_removed[op.id as usize]);
        }
    }
}
