//! The conflicts in OpenVINO's form: for each operator, the operators whose output buffers it must
//! not reuse.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write as _;

use super::{Queue, conflicts};
use crate::Error;
use crate::alias::{Blocks, InPlace};
use crate::graph::Graph;

/// For each operator the indices of the operators (itself included) that may hold its outputs'
/// memory at the same time, ascending. The first operator in processing order is treated like every
/// other one, and the relation is symmetric.
///
/// # Errors
/// [`Error::TooManyBuffers`] or [`Error::OutOfMemory`] when the bits do not fit.
pub fn lists(graph: &Graph, queue: Queue) -> Result<Vec<Vec<usize>>, Error> {
    let blocks = Blocks::new(graph, InPlace::Never, None)?;
    let relation = conflicts(graph, &blocks, queue)?;
    // The operators that write into each block.
    let writers: Vec<Vec<usize>> = blocks
        .blocks()
        .iter()
        .map(|block| {
            block.members.iter().filter_map(|&(tensor, _)| graph.tensors()[tensor].producer).collect()
        })
        .collect();
    let mut lists: Vec<BTreeSet<usize>> = (0..graph.ops().len()).map(|op| BTreeSet::from([op])).collect();
    for (block, mine) in writers.iter().enumerate() {
        let others = relation.neighbours(block).chain(core::iter::once(block));
        let others: Vec<usize> = others.flat_map(|other| writers[other].iter().copied()).collect();
        for &op in mine {
            lists[op].extend(&others);
        }
    }
    Ok(lists.into_iter().map(|list| list.into_iter().collect()).collect())
}

/// The lists as text, one operator a line: `name: restricted by name, name, ...` without the
/// operator itself.
///
/// # Errors
/// As [`lists`].
pub fn lists_text(graph: &Graph, queue: Queue) -> Result<String, Error> {
    let mut text = String::new();
    for (op, list) in lists(graph, queue)?.into_iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(text, "{}: restricted by", graph.ops()[op].name);
        for (k, other) in list.into_iter().filter(|&other| other != op).enumerate() {
            let _ = write!(text, "{} {}", if k == 0 { "" } else { "," }, graph.ops()[other].name);
        }
        text.push('\n');
    }
    Ok(text)
}
