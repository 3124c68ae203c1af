//! Memory dependencies: which blocks may never share bytes.
//!
//! For an in-order queue [`basic`] and [`skipped_branch`] together are exactly "the lives overlap".
//! For an out-of-order queue [`out_of_order`] is exact too: two blocks may share if every access to
//! one is a strict ancestor of every access to the other.

mod basic;
mod lists;
mod out_of_order;
mod skipped_branch;

pub use basic::basic;
pub use lists::{lists, lists_text};
pub use out_of_order::{Reachability, out_of_order};
pub(crate) use out_of_order::{first_accesses, last_accesses, out_of_order_until};
pub use skipped_branch::skipped_branch;

use crate::alias::{Block, Blocks};
use crate::graph::Graph;
use crate::{ConflictGraph, Error};

pub use usm_core::QueueOrder as Queue;

/// All conflicts between the blocks of a graph on a queue.
///
/// # Errors
/// [`Error::TooManyBuffers`] or [`Error::OutOfMemory`] when the bits do not fit.
pub fn conflicts(graph: &Graph, blocks: &Blocks, queue: Queue) -> Result<ConflictGraph, Error> {
    match queue {
        Queue::InOrder => {
            let mut conflicts = basic(graph, blocks)?;
            conflicts.merge(&skipped_branch(graph, blocks)?);
            Ok(conflicts)
        }
        Queue::OutOfOrder => out_of_order(blocks, &Reachability::new(graph, &[])?),
    }
}

/// Where a block's life begins and ends among the operators, shifted by one so that 0 is "before
/// the run": the begin is the first access, the end the last one (one past the last operator when
/// the caller reads it afterwards).
fn span(block: &Block) -> (u64, u64) {
    let begin = if block.from_start { 0 } else { block.lifetime.lower + 1 };
    let last = block.lifetime.upper;
    let ends_with_access = block.ops.binary_search_by(|&op| (op as u64 + 1).cmp(&last)).is_ok();
    (begin, if ends_with_access && !block.to_end { last } else { last + 1 })
}
