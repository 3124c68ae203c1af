//! A control-flow graph with only the parts that pruning needs: blocks, edges and reference
//! operations.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// A block, by its position in the function; block 0 is the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// The value that an operation counts: equal ids are the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Value(pub u32);

impl Value {
    /// The constant null; an operation on it has no effect at run time.
    pub const NULL: Self = Self(u32::MAX);
}

/// Whether an operation acquires or releases a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// Acquires a reference.
    Inc,
    /// Releases a reference.
    Dec,
}

/// A reference operation of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Whether it acquires or releases.
    pub kind: OpKind,
    /// The value whose reference it counts.
    pub value: Value,
    /// The caller's name for the operation: its number in the order of [`CfgBuilder::op`] calls.
    pub id: u32,
}

/// The reason why a graph could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CfgError {
    /// An edge or operation names a block that does not exist.
    NoSuchBlock {
        /// The block.
        block: u32,
        /// Number of blocks.
        blocks: u32,
    },
    /// More blocks, edges or operations than 32 bits can number.
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

/// Collects blocks, edges and operations; blocks may come in any order.
#[derive(Clone, Debug, Default)]
pub struct CfgBuilder {
    raising: Vec<bool>,
    edges: Vec<(u32, u32)>,
    ops: Vec<(u32, OpKind, Value)>,
}

impl CfgBuilder {
    /// Starts with no blocks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block; the first one is the entry. A `raising` block leaves the function with an
    /// exception.
    pub fn block(&mut self, raising: bool) -> BlockId {
        self.raising.push(raising);
        BlockId((self.raising.len() - 1) as u32)
    }

    /// Adds an edge. A block's edges have the order of its terminator's successors; an edge may
    /// occur twice.
    pub fn edge(&mut self, from: BlockId, to: BlockId) {
        self.edges.push((from.0, to.0));
    }

    /// Adds an operation at the end of a block and returns its id, which counts from 0.
    pub fn op(&mut self, block: BlockId, kind: OpKind, value: Value) -> u32 {
        self.ops.push((block.0, kind, value));
        (self.ops.len() - 1) as u32
    }

    /// Builds the graph.
    pub fn build(self) -> Result<Cfg, CfgError> {
        // One number is reserved for virtual roots.
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

/// The neighbours of every node, in the order of the edges.
#[derive(Clone, Debug)]
pub(crate) struct Adjacency {
    start: Vec<u32>,
    node: Vec<u32>,
}

impl Adjacency {
    /// From edges with ends below `nodes`.
    pub(super) fn new(nodes: u32, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
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
    /// The number of blocks.
    pub fn len(&self) -> usize {
        self.raising.len()
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.raising.is_empty()
    }

    /// The operations of a block in order; after pruning, the remaining ones.
    ///
    /// # Panics
    /// If the block is not in this graph.
    pub fn ops(&self, block: BlockId) -> &[Op] {
        &self.ops[block.0 as usize]
    }

    /// Whether a block leaves the function with an exception.
    ///
    /// # Panics
    /// If the block is not in this graph.
    pub fn is_raising(&self, block: BlockId) -> bool {
        self.raising[block.0 as usize]
    }

    /// The successors of a block, in order.
    ///
    /// # Panics
    /// If the block is not in this graph.
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

#[cfg(test)]
impl Cfg {
    /// A graph of blocks without operations and of any edges; ends are taken modulo the number of
    /// blocks.
    pub(super) fn of_edges(blocks: u32, edges: &[(u32, u32)]) -> Self {
        let mut builder = CfgBuilder::new();
        for _ in 0..blocks {
            builder.block(false);
        }
        for (from, to) in edges {
            builder.edge(BlockId(from % blocks), BlockId(to % blocks));
        }
        builder.build().expect("the blocks exist")
    }
}
