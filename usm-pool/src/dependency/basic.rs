//! Conflicts inside an operator: its outputs with its inputs and with each other.

use alloc::vec::Vec;

use crate::alias::Blocks;
use crate::graph::Graph;
use crate::{ConflictGraph, Error};

/// Conflicts between each operator's output blocks and its input and other output blocks.
///
/// # Errors
/// [`Error::TooManyBuffers`] or [`Error::OutOfMemory`] when the bits do not fit.
pub fn basic(graph: &Graph, blocks: &Blocks) -> Result<ConflictGraph, Error> {
    let mut conflicts = ConflictGraph::new(blocks.blocks().len())?;
    let mut operands = Vec::new();
    for op in graph.ops() {
        let block_of = |&tensor: &usize| blocks.place(tensor).map(|(block, _)| block);
        operands.clear();
        operands.extend(op.outputs.iter().filter_map(block_of));
        let outputs = operands.len();
        operands.extend(op.inputs.iter().filter_map(block_of));
        for (i, &output) in operands[..outputs].iter().enumerate() {
            for &other in &operands[i + 1..] {
                conflicts.insert(output, other);
            }
        }
    }
    Ok(conflicts)
}
