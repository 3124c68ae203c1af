//! A control-flow graph that keeps only what pruning looks at: blocks, edges and reference operations.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use hashbrown::HashMap;

/// A block, by its place in the function; block 0 is the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// What an operation counts: equal ids are the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

impl Value {
    /// The constant null; an operation on it does nothing at run time.
    pub const NULL: Self = Self(u32::MAX);
}

/// Whether an operation adds or gives back a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Adds a reference.
    Inc,
    /// Gives a reference back.
    Dec,
}

/// A reference operation of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Adds or gives back.
    pub kind: OpKind,
    /// Of what.
    pub value: Value,
    /// The caller's name for the operation: its number in the order of [`CfgBuilder::op`] calls.
    pub id: u32,
}

impl Op {
    fn is_dec(self) -> bool {
        self.kind == OpKind::Dec
    }
}

/// Why a graph could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CfgError {
    /// An edge or operation names a block that does not exist.
    NoSuchBlock {
        /// The block.
        block: u32,
        /// How many there are.
        blocks: u32,
    },
    /// More blocks, edges or operations than 32 bits number.
    TooLarge,
}

impl fmt::Display for CfgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchBlock { block, blocks } => write!(f, "block {block} of {blocks} does not exist"),
            Self::TooLarge => f.write_str("more blocks, edges or operations than 32 bits number"),
        }
    }
}

impl core::error::Error for CfgError {}

/// Collects blocks, edges and operations, in any order of blocks.
#[derive(Clone, Debug, Default)]
pub struct CfgBuilder {
    raising: Vec<bool>,
    edges: Vec<(u32, u32)>,
    ops: Vec<(u32, OpKind, Value)>,
}

impl CfgBuilder {
    /// A graph without blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block; the first is the entry. `raising`: the block leaves the function with an exception.
    pub fn block(&mut self, raising: bool) -> BlockId {
        self.raising.push(raising);
        BlockId((self.raising.len() - 1) as u32)
    }

    /// Adds an edge; the order of a block's edges is the order of its terminator's successors, and the same
    /// edge may come twice.
    pub fn edge(&mut self, from: BlockId, to: BlockId) {
        self.edges.push((from.0, to.0));
    }

    /// Adds an operation at the end of a block and returns its id, which counts from 0.
    pub fn op(&mut self, block: BlockId, kind: OpKind, value: Value) -> u32 {
        self.ops.push((block.0, kind, value));
        (self.ops.len() - 1) as u32
    }

    /// The graph, or why not.
    pub fn build(self) -> Result<Cfg, CfgError> {
        // One number is kept free for virtual roots.
        let limit = u32::MAX as usize - 1;
        if self.raising.len() >= limit || self.edges.len() >= limit || self.ops.len() >= limit {
            return Err(CfgError::TooLarge);
        }
        let blocks = self.raising.len() as u32;
        let named =
            self.edges.iter().flat_map(|&(from, to)| [from, to]).chain(self.ops.iter().map(|op| op.0));
        if let Some(block) = named.into_iter().find(|&block| block >= blocks) {
            return Err(CfgError::NoSuchBlock { block, blocks });
        }
        let mut ops = alloc::vec![Vec::new(); blocks as usize];
        for (id, (block, kind, value)) in self.ops.into_iter().enumerate() {
            ops[block as usize].push(Op { kind, value, id: id as u32 });
        }
        Ok(Cfg {
            raising: self.raising,
            succ: Adjacency::new(blocks, self.edges.iter().copied()),
            pred: Adjacency::new(blocks, self.edges.iter().map(|&(from, to)| (to, from))),
            ops,
        })
    }
}

/// Neighbours of every node, in the order they were given.
#[derive(Clone, Debug)]
pub(crate) struct Adjacency {
    start: Vec<u32>,
    node: Vec<u32>,
}

impl Adjacency {
    fn new(nodes: u32, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut start = alloc::vec![0u32; nodes as usize + 1];
        for (from, _) in edges.clone() {
            start[from as usize + 1] += 1;
        }
        for node in 0..nodes as usize {
            start[node + 1] += start[node];
        }
        let mut next = start.clone();
        let mut node = alloc::vec![0u32; start[nodes as usize] as usize];
        for (from, to) in edges {
            node[next[from as usize] as usize] = to;
            next[from as usize] += 1;
        }
        Self { start, node }
    }

    /// The neighbours of `node`.
    #[inline]
    pub(crate) fn of(&self, node: u32) -> &[u32] {
        &self.node[self.start[node as usize] as usize..self.start[node as usize + 1] as usize]
    }
}

/// A function's graph.
#[derive(Clone, Debug)]
pub struct Cfg {
    raising: Vec<bool>,
    succ: Adjacency,
    pred: Adjacency,
    ops: Vec<Vec<Op>>,
}

impl Cfg {
    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.raising.len()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.raising.is_empty()
    }

    /// The operations of a block, in order; after pruning, those that are left.
    ///
    /// # Panics
    /// When the block is not of this graph.
    pub fn ops(&self, block: BlockId) -> &[Op] {
        &self.ops[block.0 as usize]
    }

    /// Whether a block leaves the function with an exception.
    ///
    /// # Panics
    /// When the block is not of this graph.
    pub fn is_raising(&self, block: BlockId) -> bool {
        self.raising[block.0 as usize]
    }

    /// The successors of a block, in order.
    ///
    /// # Panics
    /// When the block is not of this graph.
    pub fn successors(&self, block: BlockId) -> impl ExactSizeIterator<Item = BlockId> + '_ {
        self.succ.of(block.0).iter().map(|&block| BlockId(block))
    }

    pub(crate) fn blocks(&self) -> Range<u32> {
        0..self.raising.len() as u32
    }

    pub(crate) fn succ(&self) -> &Adjacency {
        &self.succ
    }

    pub(crate) fn pred(&self) -> &Adjacency {
        &self.pred
    }

    pub(crate) fn ops_mut(&mut self) -> &mut [Vec<Op>] {
        &mut self.ops
    }
}

/// Operations of a block above which they are found by a map instead of by looking at all.
const LARGE: usize = 32;

/// The operations of a graph while passes remove some: what is where.
pub(crate) struct Index<'a> {
    pub(crate) cfg: &'a mut Cfg,
    /// Which operations are gone, by id.
    removed: Vec<bool>,
    /// Live decrements of anything, per block.
    dec_count: Vec<u32>,
    /// Every increment that there was at the start, in function order.
    increments: Vec<(u32, Op)>,
    /// Of each block, the first of them that may be live, and where they end.
    own: Vec<Range<u32>>,
    /// Blocks that gave back their last reference, and those that lost an increment, in the order of the removals.
    cleared: Vec<u32>,
    changed: Vec<u32>,
    /// Live operations of large blocks, in order.
    large: HashMap<(u32, OpKind, Value), VecDeque<u32>>,
    /// Steps of all passes.
    #[cfg(test)]
    pub(super) work: core::cell::Cell<u64>,
}

/// Which of several equal operations of a block.
#[derive(Clone, Copy)]
pub(crate) enum Pick {
    First,
    Last,
    Id(u32),
}

impl<'a> Index<'a> {
    pub(crate) fn new(cfg: &'a mut Cfg) -> Self {
        let ops = cfg.ops.iter().flatten().map(|op| op.id as usize + 1).max().unwrap_or(0);
        let (mut increments, mut own) = (Vec::new(), Vec::new());
        let mut large: HashMap<_, VecDeque<u32>> = HashMap::new();
        let mut dec_count = alloc::vec![0u32; cfg.len()];
        for block in cfg.blocks() {
            let ops = &cfg.ops[block as usize];
            let start = increments.len() as u32;
            for op in ops {
                if op.is_dec() {
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
        let removed = alloc::vec![false; ops];
        Self {
            cfg,
            removed,
            dec_count,
            increments,
            own,
            cleared: Vec::new(),
            changed: Vec::new(),
            large,
            #[cfg(test)]
            work: Default::default(),
        }
    }

    /// Counts a step of a walk or search, for tests of how the work grows.
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

    /// Every increment that there was at the start, with its block, in function order.
    pub(crate) fn increments(&self) -> &[(u32, Op)] {
        &self.increments
    }

    /// The first live increment of a block.
    pub(crate) fn first_increment(&mut self, block: u32) -> Option<Op> {
        let own = &mut self.own[block as usize];
        loop {
            let &(_, op) = self.increments.get(own.start as usize).filter(|_| own.start < own.end)?;
            if !self.removed[op.id as usize] {
                return Some(op);
            }
            own.start += 1;
        }
    }

    /// Whether no increment, or no decrement, is left: then there is nothing to cancel.
    pub(crate) fn is_settled(&self) -> bool {
        self.increments.iter().all(|(_, op)| self.removed[op.id as usize])
            || self.dec_count.iter().all(|&count| count == 0)
    }

    /// Whether an operation was removed.
    pub(crate) fn is_removed(&self, op: Op) -> bool {
        self.removed[op.id as usize]
    }

    /// Blocks that gave back their last reference, in the order of the removals.
    pub(crate) fn cleared(&self) -> &[u32] {
        &self.cleared
    }

    /// Blocks that lost an increment, in the order of the removals.
    pub(crate) fn changed(&self) -> &[u32] {
        &self.changed
    }

    /// The live operations of a kind in a block.
    pub(crate) fn live(&self, block: u32, kind: OpKind) -> impl DoubleEndedIterator<Item = Op> + '_ {
        let ops = self.cfg.ops[block as usize].iter().copied();
        ops.filter(move |op| op.kind == kind && !self.removed[op.id as usize])
    }

    /// Whether a block gives anything back.
    pub(crate) fn has_dec(&self, block: u32) -> bool {
        self.dec_count[block as usize] > 0
    }

    /// Values of all operations that a block had, with the block.
    pub(crate) fn all(&self, block: u32) -> impl Iterator<Item = (Value, u32)> + '_ {
        self.cfg.ops[block as usize].iter().map(move |op| (op.value, block))
    }

    /// Whether looking at all operations of a block is more than looking at `others`.
    pub(crate) fn is_longer(&self, block: u32, others: usize) -> bool {
        self.cfg.ops[block as usize].len() > others
    }

    /// Whether a block has an operation of that kind on `value`.
    pub(crate) fn has(&self, kind: OpKind, block: u32, value: Value) -> bool {
        if kind == OpKind::Dec && !self.has_dec(block) {
            return false;
        }
        if self.is_large(block) {
            return self.large.contains_key(&(block, kind, value));
        }
        self.live(block, kind).any(|op| op.value == value)
    }

    /// Removes an operation on `value` from a block; false when there is none.
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
        self.removed[id as usize] = true;
        if kind == OpKind::Inc {
            self.changed.push(block);
            return true;
        }
        self.dec_count[block as usize] -= 1;
        if self.dec_count[block as usize] == 0 {
            self.cleared.push(block);
        }
        true
    }

    fn is_large(&self, block: u32) -> bool {
        self.cfg.ops[block as usize].len() > LARGE
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

    /// Takes the removed operations out of the graph.
    pub(crate) fn finish(self) {
        for ops in self.cfg.ops_mut() {
            ops.retain(|op| !self.removed[op.id as usize]);
        }
    }
}
