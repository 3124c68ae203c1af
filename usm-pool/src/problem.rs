//! The planners' input: buffers, their conflicts, and the tensors in each buffer.

use alloc::vec::Vec;

use crate::alias::{Blocks, InPlace};
use crate::dependency::{Queue, Reachability, out_of_order_until};
use crate::graph::Graph;
use crate::lifetime::align_up;
use crate::sort;
use crate::{Buffer, ConflictGraph, Error};

mod relaxed;

/// One tensor of a problem: its record and its place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Member {
    /// Id, own life, size and alignment. The root of views carries the union of their lives.
    pub tensor: Buffer,
    /// Index of the buffer.
    pub buffer: usize,
    /// Offset in the buffer in bytes.
    pub offset: u64,
    /// Whether it is a view of another tensor in the buffer, with no bytes of its own.
    pub view: bool,
}

/// A checked planning problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    buffers: Vec<Buffer>,
    members: Vec<Member>,
    conflicts: Option<ConflictGraph>,
    /// If lives have gaps: their pieces, each with the size and alignment of its buffer and the
    /// buffer's index as id.
    pieces: Vec<Buffer>,
    queue: Queue,
    /// Ordering edges under which the conflicts hold, beside the data dependencies.
    ordering_edges: Vec<(usize, usize)>,
    /// Whether the conflicts are exact: all necessary ones and no others.
    exact: bool,
}

impl Problem {
    /// Independent buffers on an in-order queue: two of them may share bytes when their lives do
    /// not overlap.
    ///
    /// # Errors
    /// A malformed life or alignment, a repeated id, or sizes whose sum exceeds 64 bits.
    pub fn from_buffers(buffers: Vec<Buffer>) -> Result<Self, Error> {
        let member = |(buffer, &tensor)| Member { tensor, buffer, offset: 0, view: false };
        let members = buffers.iter().enumerate().map(member).collect();
        Self::checked(buffers, members, None, Queue::InOrder)
    }

    /// Buffers with an explicit conflict relation, for example from an out-of-order queue. Only
    /// reports then use the lives.
    ///
    /// # Errors
    /// As [`Self::from_buffers`], and [`Error::LengthMismatch`].
    pub fn from_conflicts(buffers: Vec<Buffer>, conflicts: ConflictGraph) -> Result<Self, Error> {
        let mut problem = Self::from_buffers(buffers)?;
        if conflicts.len() != problem.buffers.len() {
            return Err(Error::LengthMismatch { buffers: problem.buffers.len(), other: conflicts.len() });
        }
        problem.conflicts = Some(conflicts);
        problem.queue = Queue::OutOfOrder;
        Ok(problem)
    }

    /// Buffers whose lives have gaps: periods in which the content is not needed and other buffers
    /// may use the bytes. `gaps` names a buffer by index with a half-open gap; the gaps of one
    /// buffer are in ascending order.
    ///
    /// # Errors
    /// As [`Self::from_buffers`], [`Error::BadGap`], and [`Error::TooManyBuffers`] when the
    /// conflict bits do not fit.
    pub fn with_gaps(buffers: Vec<Buffer>, gaps: &[(usize, u64, u64)]) -> Result<Self, Error> {
        let mut problem = Self::from_buffers(buffers)?;
        if gaps.is_empty() {
            return Ok(problem);
        }
        let mut pieces: Vec<Buffer> = Vec::new();
        let mut open: Vec<u64> = problem.buffers.iter().map(|buffer| buffer.lower).collect();
        for &(i, lower, upper) in gaps {
            let Some(buffer) = problem.buffers.get(i) else {
                return Err(Error::LengthMismatch { buffers: problem.buffers.len(), other: i });
            };
            if lower >= upper || lower < open[i] || upper > buffer.upper {
                return Err(Error::BadGap { id: buffer.id, lower, upper });
            }
            pieces.push(Buffer { id: i as u64, lower: open[i], upper: lower, ..*buffer });
            open[i] = upper;
        }
        for (i, buffer) in problem.buffers.iter().enumerate() {
            pieces.push(Buffer { id: i as u64, lower: open[i], ..*buffer });
        }
        pieces.retain(|piece| !piece.lifetime().is_empty());
        sort::by_key(&mut pieces, |piece| (piece.lower, piece.id));
        let mut conflicts = ConflictGraph::new(problem.buffers.len())?;
        for (rank, piece) in pieces.iter().enumerate() {
            for other in pieces[rank + 1..].iter().take_while(|other| other.lower < piece.upper) {
                conflicts.insert(piece.id as usize, other.id as usize);
            }
        }
        problem.conflicts = Some(conflicts);
        problem.pieces = pieces;
        Ok(problem)
    }

    /// The activations of a graph on a queue.
    ///
    /// # Errors
    /// Sizes whose sum exceeds 64 bits, or tables that do not fit in memory.
    pub fn from_graph(graph: &Graph, queue: Queue, in_place: InPlace) -> Result<Self, Error> {
        match queue {
            Queue::InOrder => Self::from_blocks(graph, &Blocks::new(graph, in_place, None)?, None),
            Queue::OutOfOrder => Self::with_reachability(graph, &Reachability::new(graph, &[])?, in_place),
        }
    }

    /// The activations of a graph on an out-of-order queue with a known order, for example with
    /// added ordering edges.
    ///
    /// # Errors
    /// As [`Self::from_graph`].
    pub fn with_reachability(graph: &Graph, reach: &Reachability, in_place: InPlace) -> Result<Self, Error> {
        Self::with_reachability_until(graph, reach, in_place, &|| false)
    }

    /// As [`Self::with_reachability`]; with extra conflicts if `stop` returns true.
    pub(crate) fn with_reachability_until(
        graph: &Graph,
        reach: &Reachability,
        in_place: InPlace,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, Error> {
        let blocks = Blocks::new(graph, in_place, Some(reach))?;
        let (conflicts, exact) = out_of_order_until(&blocks, reach, stop)?;
        let mut problem = Self::from_blocks(graph, &blocks, Some(conflicts))?;
        problem.ordering_edges = reach.edges().to_vec();
        problem.exact = exact;
        if reach.order().iter().enumerate().any(|(at, &op)| at != op) {
            problem.set_submission_lives(graph, &blocks, reach);
        }
        Ok(problem)
    }

    /// Lives in the order of submission, if ordering edges go against the processing order.
    fn set_submission_lives(&mut self, graph: &Graph, blocks: &Blocks, reach: &Reachability) {
        let n = reach.len() as u64;
        let mut position = alloc::vec![0_u64; reach.len()];
        for (at, &op) in reach.order().iter().enumerate() {
            position[op] = at as u64;
        }
        let life = |ops: &mut dyn Iterator<Item = usize>, from_start: bool, to_end: bool| {
            let (mut lower, mut upper) = (u64::MAX, 0);
            for op in ops {
                lower = lower.min(position[op]);
                upper = upper.max(position[op] + 1);
            }
            let lower = if from_start { 0 } else { lower.min(n.saturating_sub(1)) };
            (lower, if to_end { n.max(1) } else { upper.max(lower + 1) })
        };
        for (buffer, block) in self.buffers.iter_mut().zip(blocks.blocks()) {
            (buffer.lower, buffer.upper) =
                life(&mut block.ops.iter().copied(), block.from_start, block.to_end);
        }
        for member in &mut self.members {
            let Some(tensor) = graph.tensor_index(member.tensor.id) else { continue };
            let node = &graph.tensors()[tensor];
            let views =
                if node.alias.is_none() { graph.family(tensor) } else { core::slice::from_ref(&tensor) };
            let nodes = || views.iter().map(|&view| &graph.tensors()[view]);
            let mut ops = nodes().flat_map(|node| node.users.iter().copied().chain(node.producer));
            let from_start = node.alias.is_none() && blocks.blocks()[member.buffer].from_start;
            let to_end = nodes().any(|node| node.is_output);
            (member.tensor.lower, member.tensor.upper) = life(&mut ops, from_start, to_end);
        }
    }

    fn from_blocks(graph: &Graph, blocks: &Blocks, conflicts: Option<ConflictGraph>) -> Result<Self, Error> {
        let tensors = graph.tensors();
        let buffers = blocks.blocks().iter().map(|block| Buffer {
            id: tensors[block.root].id,
            lower: block.lifetime.lower,
            upper: block.lifetime.upper,
            size: block.size,
            alignment: block.alignment,
        });
        let mut members = Vec::new();
        for (i, tensor) in tensors.iter().enumerate() {
            let Some((buffer, offset)) = blocks.place(i) else {
                continue;
            };
            let view = tensor.alias.is_some();
            let family = graph.family(i).iter().map(|&view| graph.lifetime(view));
            let life = family.reduce(|a, b| a.union(b)).unwrap_or_else(|| graph.lifetime(i));
            let tensor = Buffer {
                id: tensor.id,
                lower: life.lower,
                upper: life.upper,
                size: tensor.size,
                alignment: tensor.alignment,
            };
            members.push(Member { tensor, buffer, offset, view });
        }
        let queue = if conflicts.is_some() { Queue::OutOfOrder } else { Queue::InOrder };
        Self::checked(buffers.collect(), members, conflicts, queue)
    }

    fn checked(
        buffers: Vec<Buffer>,
        members: Vec<Member>,
        conflicts: Option<ConflictGraph>,
        queue: Queue,
    ) -> Result<Self, Error> {
        let mut sum = 0_u64;
        // In the worst case all buffers are stacked, each moved up by its alignment. That sum must
        // stay below 2^64, so that no step of a planner overflows.
        for buffer in &buffers {
            let &Buffer { id, lower, upper, size, alignment } = buffer;
            if lower > upper {
                return Err(Error::ReversedLifetime { id, lower, upper });
            }
            if !alignment.is_power_of_two() {
                return Err(Error::BadAlignment { id, alignment });
            }
            let room = align_up(size, alignment).and_then(|room| room.checked_add(alignment - 1));
            sum = room.and_then(|room| sum.checked_add(room)).ok_or(Error::SizeOverflow { id, size, sum })?;
        }
        let mut ids: Vec<u64> = members.iter().map(|member| member.tensor.id).collect();
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::DuplicateId { id: pair[0] });
        }
        let (pieces, ordering_edges) = (Vec::new(), Vec::new());
        Ok(Self { buffers, members, conflicts, pieces, queue, ordering_edges, exact: true })
    }

    /// The problem of some of the buffers (by index, ascending), with the tensors in them.
    ///
    /// # Errors
    /// As [`Self::from_conflicts`].
    pub(crate) fn subset(&self, keep: &[usize]) -> Result<Self, Error> {
        let mut renumber = alloc::vec![None; self.buffers.len()];
        for (new, &old) in keep.iter().enumerate() {
            renumber[old] = Some(new);
        }
        let members = self.members.iter();
        let members = members
            .filter_map(|member| Some(Member { buffer: renumber[member.buffer]?, ..*member }))
            .collect();
        let buffers = keep.iter().map(|&i| self.buffers[i]).collect();
        let conflicts = self.conflicts.as_ref().map(|graph| graph.induced(keep));
        let mut part = Self::checked(buffers, members, conflicts, self.queue)?;
        part.ordering_edges.clone_from(&self.ordering_edges);
        part.exact = self.exact;
        let pieces = self.pieces.iter();
        let pieces =
            pieces.filter_map(|piece| Some(Buffer { id: renumber[piece.id as usize]? as u64, ..*piece }));
        part.pieces = pieces.collect();
        Ok(part)
    }

    /// The buffers to place.
    #[must_use]
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The tensors that lie in the buffers.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// The conflict relation; without one, buffers conflict when their lives overlap.
    #[must_use]
    pub fn conflicts(&self) -> Option<&ConflictGraph> {
        self.conflicts.as_ref()
    }

    /// The pieces of lives with gaps, ascending in begin; the id of a piece is the index of its
    /// buffer. Empty without gaps.
    #[must_use]
    pub fn pieces(&self) -> &[Buffer] {
        &self.pieces
    }

    /// The queue that the conflicts hold for.
    #[must_use]
    pub fn queue(&self) -> Queue {
        self.queue
    }

    /// Whether two buffers, by index, may be live together.
    #[must_use]
    pub fn conflict(&self, i: usize, j: usize) -> bool {
        match &self.conflicts {
            Some(graph) => graph.contains(i, j),
            None => i != j && self.buffers[i].lifetime().overlaps(self.buffers[j].lifetime()),
        }
    }

    /// Whether the conflicts are exact. Only then is a set of conflicting buffers a bound for the
    /// graph.
    pub(crate) fn is_exact(&self) -> bool {
        self.exact
    }

    /// Ordering edges (earlier, later operator) under which the conflicts hold, beside the data
    /// dependencies.
    #[must_use]
    pub fn ordering_edges(&self) -> &[(usize, usize)] {
        &self.ordering_edges
    }

    /// Sum of the tensors' sizes in bytes without views: the memory without sharing, at most
    /// `u64::MAX`.
    #[must_use]
    pub fn naive(&self) -> u64 {
        let own = self.members.iter().filter(|member| !member.view);
        own.fold(0, |sum, member| sum.saturating_add(member.tensor.size))
    }
}
