//! Operators that may run concurrently if only data dependencies order them.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::alias::{Block, Blocks};
use crate::conflict::{words_per_row, zeroed_words};
use crate::graph::Graph;
use crate::sort;
use crate::{ConflictGraph, Error};

/// Transitive closure of the operator graph as bitsets.
#[derive(Clone, Debug)]
pub struct Reachability {
    n: usize,
    descendants: Vec<u64>,
    /// A topological order of the operators; the processing order unless an edge goes against it.
    order: Vec<usize>,
    edges: Vec<(usize, usize)>,
    /// Whether paths are missing because time ran out.
    is_incomplete: bool,
}

impl Reachability {
    /// Largest number of operators: at 65,536 the bits take 512 MiB.
    pub const LIMIT: usize = 1 << 16;

    /// The closure of the data dependencies and of `edges` (earlier, later), which may go against
    /// the processing order.
    ///
    /// # Errors
    /// [`Error::TooManyBuffers`] above [`Self::LIMIT`] operators, [`Error::OrderingEdge`] for an
    /// edge that names no operator or closes a cycle, [`Error::OutOfMemory`] when the bits cannot
    /// be allocated.
    pub fn new(graph: &Graph, edges: &[(usize, usize)]) -> Result<Self, Error> {
        Self::until(graph, edges, &|| false)
    }

    /// As [`Self::new`]. If `stop` returns true, contains only the paths found so far, with which
    /// [`out_of_order_until`] finds too many conflicts, never too few.
    pub(crate) fn until(
        graph: &Graph,
        edges: &[(usize, usize)],
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let n = graph.ops().len();
        if n > Self::LIMIT {
            return Err(Error::TooManyBuffers { buffers: n, limit: Self::LIMIT });
        }
        let mut successors: Vec<Vec<usize>> = (0..n).map(|_| Vec::new()).collect();
        for op in 0..n {
            for before in graph.predecessors(op) {
                // A read of the previous iteration imposes no order within an iteration.
                if before < op {
                    successors[before].push(op);
                }
            }
        }
        for &(earlier, later) in edges {
            if earlier >= n || later >= n {
                return Err(Error::OrderingEdge { earlier, later });
            }
            successors[earlier].push(later);
        }
        let order = topological(&successors).map_err(|later| {
            let earlier = edges.iter().find(|edge| edge.1 == later).map_or(later, |edge| edge.0);
            Error::OrderingEdge { earlier, later }
        })?;
        let width = words_per_row(n);
        let mut position = alloc::vec![0; n];
        for (at, &op) in order.iter().enumerate() {
            position[op] = at;
        }
        let mut descendants = zeroed_words(n * width)?;
        let mut row = alloc::vec![0_u64; width];
        let mut is_incomplete = false;
        for &op in order.iter().rev() {
            is_incomplete = stop();
            if is_incomplete {
                break;
            }
            // Nearest successors first, because operators that they reach need no second pass.
            sort::by_key(&mut successors[op], |next| position[next]);
            row.fill(0);
            for &next in &successors[op] {
                if row[next / 64] >> (next % 64) & 1 == 1 {
                    continue;
                }
                row[next / 64] |= 1 << (next % 64);
                for (mine, theirs) in row.iter_mut().zip(&descendants[next * width..(next + 1) * width]) {
                    *mine |= theirs;
                }
            }
            descendants[op * width..(op + 1) * width].copy_from_slice(&row);
        }
        Ok(Self { n, descendants, order, edges: edges.to_vec(), is_incomplete })
    }

    /// The edges (earlier, later operator) added to the data dependencies.
    #[must_use]
    pub fn edges(&self) -> &[(usize, usize)] {
        &self.edges
    }

    /// A topological order of the operators, in which they may be submitted: the processing order,
    /// unless an edge goes against it.
    #[must_use]
    pub fn order(&self) -> &[usize] {
        &self.order
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

    /// Whether a path leads from `before` to `after` (never from an operator to itself); false when
    /// either is out of range.
    #[must_use]
    pub fn precedes(&self, before: usize, after: usize) -> bool {
        after < self.n && self.row(before).get(after / 64).is_some_and(|word| word >> (after % 64) & 1 == 1)
    }

    /// Bits of the operators that are reachable from `op`.
    #[must_use]
    pub fn row(&self, op: usize) -> &[u64] {
        let width = words_per_row(self.n);
        if op >= self.n { &[] } else { &self.descendants[op * width..(op + 1) * width] }
    }
}

/// The topological order that stays closest to the indices, or an operator on a cycle.
fn topological(successors: &[Vec<usize>]) -> Result<Vec<usize>, usize> {
    let mut in_degrees = alloc::vec![0_usize; successors.len()];
    for &next in successors.iter().flatten() {
        in_degrees[next] += 1;
    }
    let ready = (0..successors.len()).filter(|&op| in_degrees[op] == 0).map(Reverse);
    let mut ready: BinaryHeap<Reverse<usize>> = ready.collect();
    let mut order = Vec::with_capacity(successors.len());
    while let Some(Reverse(op)) = ready.pop() {
        order.push(op);
        for &next in &successors[op] {
            in_degrees[next] -= 1;
            if in_degrees[next] == 0 {
                ready.push(Reverse(next));
            }
        }
    }
    match in_degrees.iter().position(|&left| left > 0) {
        Some(op) => Err(op),
        None => Ok(order),
    }
}

/// Conflicts of blocks on an out-of-order queue: all pairs except those where every access to one
/// block is a strict ancestor of every access to the other.
///
/// # Errors
/// [`Error::TooManyBuffers`] or [`Error::OutOfMemory`] when the bits do not fit.
pub fn out_of_order(blocks: &Blocks, reach: &Reachability) -> Result<ConflictGraph, Error> {
    Ok(out_of_order_until(blocks, reach, &|| false)?.0)
}

/// As [`out_of_order`], and whether the conflicts are exact. If `stop` returns true or paths are
/// missing, all pairs conflict: a plan stays correct, but they prove no bound.
pub(crate) fn out_of_order_until(
    blocks: &Blocks,
    reach: &Reachability,
    stop: &dyn Fn() -> bool,
) -> Result<(ConflictGraph, bool), Error> {
    let relation = if reach.is_incomplete { None } else { strictly_before(blocks, reach, stop)? };
    let Some(mut before) = relation else {
        return Ok((ConflictGraph::complete(blocks.blocks().len())?, false));
    };
    before.or_transpose();
    before.complement();
    Ok((before, true))
}

/// The relation "block `i` is complete before block `j` begins, in every execution order", one row
/// for each `i`; `None` if `stop` ended it.
fn strictly_before(
    blocks: &Blocks,
    reach: &Reachability,
    stop: &dyn Fn() -> bool,
) -> Result<Option<ConflictGraph>, Error> {
    let blocks = blocks.blocks();
    let mut before = ConflictGraph::new(blocks.len())?;
    // Most blocks have one first access, and then a bit test is enough.
    let mut firsts: Vec<Vec<usize>> = Vec::with_capacity(blocks.len());
    for block in blocks {
        if stop() {
            return Ok(None);
        }
        firsts.push(first_accesses(block, reach));
    }
    let spans: Vec<Span> = firsts.chunks(64).map(Span::of).collect();
    let width = words_per_row(reach.len());
    let mut common = zeroed_words(width)?;
    for (i, block) in blocks.iter().enumerate() {
        if block.to_end || block.ops.is_empty() {
            continue;
        }
        if stop() {
            return Ok(None);
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
        let after = |other: &Vec<usize>| {
            !other.is_empty() && other.iter().all(|&op| common[op / 64] >> (op % 64) & 1 == 1)
        };
        for (word, (others, span)) in before.row_mut(i).iter_mut().zip(firsts.chunks(64).zip(&spans)) {
            // Neighbouring blocks usually have neighbouring first accesses, so usually all or none
            // of these 64 begin after this one.
            let window = &common[span.words.clone()];
            *word = if window.iter().all(|&bits| bits == u64::MAX) {
                span.nonempty
            } else if window.iter().all(|&bits| bits == 0) {
                0
            } else if let Some(first) = span.run {
                let bits = |word: usize| common.get(word).copied().unwrap_or(0);
                let high = bits(first / 64 + 1).checked_shl(64 - first as u32 % 64).unwrap_or(0);
                (bits(first / 64) >> (first % 64) | high) & span.nonempty
            } else {
                others.iter().enumerate().fold(0, |bits, (k, other)| bits | u64::from(after(other)) << k)
            };
        }
    }
    Ok(Some(before))
}

/// The positions of 64 blocks' first accesses among the operators.
struct Span {
    /// The words of a row of operators that hold all positions.
    words: core::ops::Range<usize>,
    /// The blocks with at least one.
    nonempty: u64,
    /// The first access of the first block, if each has one and the operators are consecutive.
    run: Option<usize>,
}

impl Span {
    fn of(firsts: &[Vec<usize>]) -> Self {
        let words = || firsts.iter().flatten().map(|op| op / 64);
        let words = words().min().unwrap_or(0)..words().max().map_or(0, |last| last + 1);
        let nonempty =
            firsts.iter().enumerate().fold(0, |bits, (k, first)| bits | u64::from(!first.is_empty()) << k);
        let first = firsts.first().and_then(|first| first.first().copied());
        let run = first.filter(|first| firsts.iter().enumerate().all(|(k, one)| one[..] == [first + k]));
        Self { words, nonempty, run }
    }
}

/// Accesses that are reachable from no other access of the block; none if the content exists before
/// the run.
pub(crate) fn first_accesses(block: &Block, reach: &Reachability) -> Vec<usize> {
    if block.from_start {
        return Vec::new();
    }
    let mut accesses: Vec<usize> = Vec::new();
    if block.ops.len() <= MANY {
        for &op in &block.ops {
            if !accesses.iter().any(|&earlier| reach.precedes(earlier, op)) {
                accesses.push(op);
            }
        }
        return accesses;
    }
    let mut descendants = alloc::vec![0; words_per_row(reach.len())];
    for &op in &block.ops {
        if descendants[op / 64] >> (op % 64) & 1 == 0 {
            accesses.push(op);
            for (mine, theirs) in descendants.iter_mut().zip(reach.row(op)) {
                *mine |= theirs;
            }
        }
    }
    accesses
}

/// From this number of accesses on, their rows are compared instead of each pair.
const MANY: usize = 64;

/// The accesses that lead to no other access of the block.
pub(crate) fn last_accesses(block: &Block, reach: &Reachability) -> Vec<usize> {
    if block.ops.len() > MANY {
        let mut accesses = alloc::vec![0_u64; words_per_row(reach.len())];
        for op in &block.ops {
            accesses[op / 64] |= 1 << (op % 64);
        }
        let leads = |op: &&usize| reach.row(**op).iter().zip(&accesses).any(|(row, mine)| row & mine != 0);
        return block.ops.iter().rev().filter(|op| !leads(op)).copied().collect();
    }
    let mut accesses: Vec<usize> = Vec::new();
    for &op in block.ops.iter().rev() {
        if !accesses.iter().any(|&other| reach.precedes(op, other)) {
            accesses.push(op);
        }
    }
    accesses
}
