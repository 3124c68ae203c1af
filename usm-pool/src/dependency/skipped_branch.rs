//! Conflicts with blocks that begin before another block's last user.

use alloc::vec::Vec;

use super::span;
use crate::alias::Blocks;
use crate::graph::Graph;
use crate::sort;
use crate::{ConflictGraph, Error};

/// Conflicts between each block and all blocks that begin strictly between its first access and its
/// last user in processing order. A block with content before the run begins before every operator.
///
/// # Errors
/// [`Error::TooManyBuffers`] or [`Error::OutOfMemory`] when the bits do not fit.
pub fn skipped_branch(_graph: &Graph, blocks: &Blocks) -> Result<ConflictGraph, Error> {
    let mut conflicts = ConflictGraph::new(blocks.blocks().len())?;
    let spans: Vec<(u64, u64)> = blocks.blocks().iter().map(span).collect();
    let mut order: Vec<usize> = (0..spans.len()).collect();
    sort::by_key(&mut order, |block| spans[block].0);
    for (rank, &block) in order.iter().enumerate() {
        let (begin, end) = spans[block];
        for &other in &order[rank + 1..] {
            let at = spans[other].0;
            if at >= end {
                break;
            }
            // `basic` handles blocks of the same operator; content from before the run has no
            // operator.
            if at > begin || begin == 0 {
                conflicts.insert(block, other);
            }
        }
    }
    Ok(conflicts)
}
