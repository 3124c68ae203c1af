//! What may run at the same time when only data dependencies order the operators.

use alloc::vec::Vec;

use crate::alias::{Block, Blocks};
use crate::conflict::{words_per_row, zeroed_words};
use crate::graph::Graph;
use crate::{ConflictGraph, Error};

/// Transitive closure of the operator graph as bitsets, in both directions.
#[derive(Clone, Debug)]
pub struct Reachability {
    n: usize,
    descendants: Vec<u64>,
}

impl Reachability {
    /// Largest number of operators: at 65,536 the bits take 512 MiB.
    pub const LIMIT: usize = 1 << 16;

    /// The closure of the data dependencies and of `edges` (earlier, later; an edge that goes backwards in processing order is ignored).
    ///
    /// # Errors
    /// [`Error::TooManyBuffers`] above [`Self::LIMIT`] operators, [`Error::OutOfMemory`] when the bits cannot be allocated.
    pub fn new(graph: &Graph, edges: &[(usize, usize)]) -> Result<Self, Error> {
        let n = graph.ops().len();
        if n > Self::LIMIT {
            return Err(Error::TooManyBuffers { buffers: n, limit: Self::LIMIT });
        }
        let mut successors: Vec<Vec<usize>> = (0..n).map(|_| Vec::new()).collect();
        for op in 0..n {
            for before in graph.predecessors(op) {
                if before < op {
                    successors[before].push(op);
                }
            }
        }
        for &(before, after) in edges {
            if before < after && after < n {
                successors[before].push(after);
            }
        }
        let width = words_per_row(n);
        let mut descendants = zeroed_words(n * width)?;
        // Processing order is topological: all successors of an operator are finished before it.
        for op in (0..n).rev() {
            successors[op].sort_unstable();
            successors[op].dedup();
            let (head, tail) = descendants.split_at_mut((op + 1) * width);
            let row = &mut head[op * width..];
            for &next in &successors[op] {
                // Nearest successors first: what they reach needs no second pass.
                if row[next / 64] >> (next % 64) & 1 == 1 {
                    continue;
                }
                row[next / 64] |= 1 << (next % 64);
                let from = (next - op - 1) * width;
                for (mine, theirs) in row.iter_mut().zip(&tail[from..from + width]) {
                    *mine |= theirs;
                }
            }
        }
        Ok(Self { n, descendants })
    }

    /// Number of operators.
    #[must_use]
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no operators.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Whether a path leads from `before` to `after` (never from an operator to itself); false when either is out of range.
    #[must_use]
    pub fn precedes(&self, before: usize, after: usize) -> bool {
        after < self.n && self.row(before).get(after / 64).is_some_and(|word| word >> (after % 64) & 1 == 1)
    }

    /// Bits of the operators that `op` leads to.
    #[must_use]
    pub fn row(&self, op: usize) -> &[u64] {
        let width = words_per_row(self.n);
        if op >= self.n { &[] } else { &self.descendants[op * width..(op + 1) * width] }
    }
}

/// Conflicts of blocks on an out-of-order queue: all pairs except those where every access to one block is a strict ancestor of
/// every access to the other.
///
/// # Errors
/// [`Error::TooManyBuffers`] or [`Error::OutOfMemory`] when the bits do not fit.
pub fn out_of_order(blocks: &Blocks, reach: &Reachability) -> Result<ConflictGraph, Error> {
    let mut before = strictly_before(blocks, reach)?;
    before.or_transpose();
    before.complement();
    Ok(before)
}

/// The relation "block `i` is over before block `j` begins, whatever the order of execution", one row for each `i`.
pub(crate) fn strictly_before(blocks: &Blocks, reach: &Reachability) -> Result<ConflictGraph, Error> {
    let blocks = blocks.blocks();
    let mut before = ConflictGraph::new(blocks.len())?;
    // Most blocks have one first access; the bit test is then all there is to do.
    let firsts: Vec<Vec<usize>> = blocks.iter().map(|block| first_accesses(block, reach)).collect();
    let width = words_per_row(reach.len());
    let mut common = zeroed_words(width)?;
    for (i, block) in blocks.iter().enumerate() {
        if block.to_end || block.ops.is_empty() {
            continue;
        }
        common.fill(u64::MAX);
        for op in last_accesses(block, reach) {
            for (mine, theirs) in common.iter_mut().zip(reach.row(op)) {
                *mine &= theirs;
            }
        }
        if common.iter().all(|&word| word == 0) {
            continue;
        }
        let row = before.row_mut(i);
        for (j, other) in firsts.iter().enumerate() {
            let after = !other.is_empty() && other.iter().all(|&op| common[op / 64] >> (op % 64) & 1 == 1);
            row[j / 64] |= u64::from(after) << (j % 64);
        }
    }
    Ok(before)
}

/// Accesses that no other access of the block leads to; none when the content is there before the run.
fn first_accesses(block: &Block, reach: &Reachability) -> Vec<usize> {
    if block.from_start {
        return Vec::new();
    }
    let mut found: Vec<usize> = Vec::new();
    for &op in &block.ops {
        if !found.iter().any(|&earlier| reach.precedes(earlier, op)) {
            found.push(op);
        }
    }
    found
}

/// Accesses that lead to no other access of the block.
fn last_accesses(block: &Block, reach: &Reachability) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for &op in block.ops.iter().rev() {
        if !found.iter().any(|&later| reach.precedes(op, later)) {
            found.push(op);
        }
    }
    found
}
