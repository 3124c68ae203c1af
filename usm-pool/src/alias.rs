//! Storage classes: tensors that must lie in one block because they are views of it, or because an
//! operator works in place.
//!
//! The block carries the union of its members' lives. Forgetting that for the root of a chain is
//! the most common way in which planners corrupt memory, so planners never see tensors, only
//! blocks.

use alloc::vec::Vec;

use crate::dependency::Reachability;
use crate::graph::{Graph, TensorKind};
use crate::permit::Permit;
use crate::{Error, Lifetime};

/// How many in-place permits are used. More sharing usually lowers the peak, but a small result in
/// a large block keeps the block alive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InPlace {
    /// Permits are ignored.
    Never,
    /// Only if input and output have the same size.
    #[default]
    SameSize,
    /// All legal permits.
    Always,
}

/// One block of memory and the tensors in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Block {
    /// Index of the tensor that gives the block its size and id.
    pub root: usize,
    /// Tensors in the block with their offset in it, in bytes; the root first.
    pub members: Vec<(usize, u64)>,
    /// Union of the members' lives on an in-order queue.
    pub lifetime: Lifetime,
    /// Size in bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub alignment: u64,
    /// Operators that read or write a member, ascending, each once.
    pub ops: Vec<usize>,
    /// Its content exists before the first operator, so no other block may use the bytes earlier.
    pub from_start: bool,
    /// The caller reads a member after the run, so no other block may use the bytes later.
    pub to_end: bool,
}

/// The blocks of a graph's activations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    blocks: Vec<Block>,
    place: Vec<Option<(usize, u64)>>,
}

impl Blocks {
    /// Joins views, and the pairs that `in_place` allows. With `reach`, a permit is legal on an
    /// out-of-order queue if every other access to the input is an ancestor of the operator.
    /// Without it, the processing order decides.
    ///
    /// # Errors
    /// [`Error::SizeOverflow`] never; reserved for tables that cannot be allocated.
    pub fn new(graph: &Graph, in_place: InPlace, reach: Option<&Reachability>) -> Result<Self, Error> {
        let mut blocks: Vec<Option<Block>> = Vec::new();
        let mut place = alloc::vec![None; graph.tensors().len()];
        for (root, node) in graph.tensors().iter().enumerate() {
            if node.alias.is_some() || node.kind != TensorKind::Activation {
                continue;
            }
            for &member in graph.family(root) {
                place[member] = Some((blocks.len(), graph.tensors()[member].root_offset));
            }
            blocks.push(Some(family_block(graph, root)));
        }
        if in_place != InPlace::Never {
            for op in 0..graph.ops().len() {
                for &(input, output) in &graph.ops()[op].in_place {
                    join(graph, in_place, reach, (op, input, output), &mut blocks, &mut place);
                }
            }
        }
        // Joined blocks left holes in the list; closes them in order.
        let mut renumber = alloc::vec![0; blocks.len()];
        let mut dense_blocks = Vec::with_capacity(blocks.len());
        for (old, block) in blocks.into_iter().enumerate() {
            if let Some(block) = block {
                renumber[old] = dense_blocks.len();
                dense_blocks.push(block);
            }
        }
        for (block, _) in place.iter_mut().flatten() {
            *block = renumber[*block];
        }
        Ok(Self { blocks: dense_blocks, place })
    }

    /// All blocks, ordered by their root tensor.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Block of a tensor and offset in it in bytes; `None` for tensors outside of the arena.
    #[must_use]
    pub fn place(&self, tensor: usize) -> Option<(usize, u64)> {
        self.place.get(tensor).copied().flatten()
    }
}

/// Block of a root and its views.
fn family_block(graph: &Graph, root: usize) -> Block {
    let node = &graph.tensors()[root];
    let mut ops = Vec::new();
    let mut first_write = usize::MAX;
    let mut first_read = usize::MAX;
    let mut hull = Lifetime::new(0, 0);
    let mut to_end = false;
    for &member in graph.family(root) {
        let tensor = &graph.tensors()[member];
        ops.extend(tensor.users.iter().copied());
        ops.extend(tensor.producer);
        first_write = first_write.min(tensor.producer.unwrap_or(usize::MAX));
        first_read = first_read.min(tensor.users.first().copied().unwrap_or(usize::MAX));
        to_end |= tensor.is_output;
        // A root without a producer begins at the first write to its family, not at the start; the
        // lines below add the start.
        let life = graph.lifetime(member);
        let counts = tensor.producer.is_some() || tensor.alias.is_some();
        let lower = if counts { life.lower } else { life.upper - 1 };
        hull = hull.union(Lifetime::new(lower, life.upper));
    }
    ops.sort_unstable();
    ops.dedup();
    for &(first, last) in graph.loops() {
        // Iterations may overlap on an out-of-order queue, so a block that the body uses is used by
        // all of the body.
        if ops.iter().any(|op| (first..=last).contains(op)) {
            ops.extend(first..=last);
            ops.sort_unstable();
            ops.dedup();
        }
    }
    let is_carried = graph.tensors()[root].producer.is_some_and(|producer| first_read <= producer);
    let from_start =
        first_write == usize::MAX || (first_read <= first_write && node.producer.is_none() && !is_carried);
    if from_start {
        hull.lower = 0;
    }
    Block {
        root,
        members: graph
            .family(root)
            .iter()
            .map(|&member| (member, graph.tensors()[member].root_offset))
            .collect(),
        lifetime: hull,
        size: node.size,
        alignment: node.alignment,
        ops,
        from_start,
        to_end,
    }
}

/// Puts the output's block into the input's if the permit is legal.
fn join(
    graph: &Graph,
    in_place: InPlace,
    reach: Option<&Reachability>,
    (op, input, output): (usize, usize, usize),
    blocks: &mut [Option<Block>],
    place: &mut [Option<(usize, u64)>],
) {
    let (Some((from, delta)), Some((to, 0))) = (place[input], place[output]) else {
        return;
    };
    let (Some(source), Some(target)) = (&blocks[from], &blocks[to]) else {
        return;
    };
    let permit = Permit { op, input, output, source: (source, delta), target };
    let fits = in_place != InPlace::SameSize || target.size == graph.tensors()[input].size;
    let begins_here = target.lifetime.lower == op as u64;
    // Two outputs over one input, or an output and a view that is made here.
    let has_other_output =
        source.members.iter().any(|&(member, _)| graph.tensors()[member].producer == Some(op));
    let is_in_loop = graph.loops().iter().any(|&(first, last)| (first..=last).contains(&op));
    if !permit.can_be_taken(graph, reach)
        || target.size > graph.tensors()[input].size
        || !fits
        || !begins_here
        || has_other_output
        || is_in_loop
        || delta % target.alignment != 0
    {
        return;
    }
    let Some(target) = blocks[to].take() else {
        return;
    };
    let Some(source) = blocks[from].as_mut() else {
        return;
    };
    for (member, at) in target.members {
        // Inside the input, so no overflow.
        let at = at.saturating_add(delta);
        place[member] = Some((from, at));
        source.members.push((member, at));
    }
    source.lifetime = source.lifetime.union(target.lifetime);
    source.alignment = source.alignment.max(target.alignment);
    source.ops.extend(target.ops);
    source.ops.sort_unstable();
    source.ops.dedup();
    source.to_end |= target.to_end;
}
