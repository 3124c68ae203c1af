//! Checks whether an order covers all tensors that are live together, and derives the order of an
//! existing plan.

use alloc::vec::Vec;
use core::fmt;

use crate::conflict::set_bits;
use crate::{ConflictGraph, Error, Problem};

/// Why an order proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unordered {
    /// Two buffers, by index, that may be live together, neither below the other.
    Pair(usize, usize),
    /// A pair that names no buffer, or closes a cycle.
    Circle(usize, usize),
    /// The relation does not fit in memory.
    Memory(Error),
}

impl fmt::Display for Unordered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Pair(one, other) => {
                write!(f, "buffers {one} and {other} may live together, and neither lies below the other")
            }
            Self::Circle(below, above) => {
                write!(f, "buffer {below} below {above}: one of them is unknown, or the pairs go round")
            }
            Self::Memory(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for Unordered {}

/// Proves that `pairs` (below, above; buffers by index) order every two buffers of the problem that
/// may be live together. Returns the pairs in the order of evaluation: each after all pairs that
/// have its first buffer above. The proof uses lives and no sizes, so it holds for all sizes.
///
/// # Errors
/// The reason why they do not.
pub fn prove(problem: &Problem, pairs: &[(usize, usize)]) -> Result<Vec<(usize, usize)>, Unordered> {
    let n = problem.buffers().len();
    let mut above: Vec<Vec<usize>> = alloc::vec![Vec::new(); n];
    let mut in_degrees = alloc::vec![0_usize; n];
    for &(low, high) in pairs {
        if low >= n || high >= n || low == high {
            return Err(Unordered::Circle(low, high));
        }
        above[low].push(high);
        in_degrees[high] += 1;
    }
    let mut ready: Vec<usize> = (0..n).rev().filter(|&buffer| in_degrees[buffer] == 0).collect();
    let mut order = Vec::with_capacity(n);
    while let Some(buffer) = ready.pop() {
        order.push(buffer);
        for &high in &above[buffer] {
            in_degrees[high] -= 1;
            if in_degrees[high] == 0 {
                ready.push(high);
            }
        }
    }
    if let Some(&(low, high)) = pairs.iter().find(|(low, high)| in_degrees[*low] > 0 && in_degrees[*high] > 0)
    {
        return Err(Unordered::Circle(low, high));
    }
    // One row for each buffer: all buffers above it.
    let mut reach = ConflictGraph::new(n).map_err(Unordered::Memory)?;
    for &buffer in order.iter().rev() {
        for &high in &above[buffer] {
            let theirs = reach.row(high).to_vec();
            let row = reach.row_mut(buffer);
            row[high / 64] |= 1 << (high % 64);
            row.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
        }
    }
    reach.or_transpose();
    let relation = relation(problem).map_err(Unordered::Memory)?;
    for one in 0..n {
        let gaps = relation
            .row(one)
            .iter()
            .zip(reach.row(one))
            .map(|(conflicts, order_bits)| conflicts & !order_bits);
        let gaps: Vec<u64> = gaps.collect();
        let other = set_bits(&gaps).next();
        if let Some(other) = other {
            return Err(Unordered::Pair(one, other));
        }
    }
    Ok(order.iter().flat_map(|&low| above[low].iter().map(move |&high| (low, high))).collect())
}

/// The order of the buffers in a plan, from one offset for each buffer. It orders every two buffers
/// that may be live together, without pairs that follow from others.
///
/// # Errors
/// [`Error::TooManyBuffers`] or [`Error::OutOfMemory`] when the relation does not fit.
pub fn below(problem: &Problem, offsets: &[u64]) -> Result<Vec<(usize, usize)>, Error> {
    let (buffers, n) = (problem.buffers(), problem.buffers().len());
    if offsets.len() != n {
        return Err(Error::LengthMismatch { buffers: n, other: offsets.len() });
    }
    let relation = relation(problem)?;
    // A buffer without bytes may have some for other values, so it goes first.
    let key = |i: usize| (offsets[i], if buffers[i].size > 0 { n + i } else { i });
    let mut order: Vec<(u64, usize)> = (0..n).map(key).collect();
    order.sort_unstable();
    let order: Vec<usize> = order.into_iter().map(|(_, i)| if i < n { i } else { i - n }).collect();
    let mut position = alloc::vec![0; n];
    for (at, &i) in order.iter().enumerate() {
        position[i] = at;
    }
    // One row for each buffer: all buffers below it.
    let mut under = ConflictGraph::new(n)?;
    let mut pairs = Vec::new();
    for &high in &order {
        let lower = relation.neighbours(high).map(|low| position[low]);
        let mut lower: Vec<usize> = lower.filter(|&at| at < position[high]).collect();
        lower.sort_unstable();
        // The nearest first: buffers below those need no pair.
        for low in lower.into_iter().rev().map(|at| order[at]) {
            if under.contains(high, low) {
                continue;
            }
            let theirs = under.row(low).to_vec();
            let row = under.row_mut(high);
            row[low / 64] |= 1 << (low % 64);
            row.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine |= theirs);
            pairs.push((low, high));
        }
    }
    Ok(pairs)
}

/// The pairs that may be live together, for any sizes.
fn relation(problem: &Problem) -> Result<ConflictGraph, Error> {
    match problem.conflicts() {
        Some(conflicts) => Ok(conflicts.clone()),
        None => ConflictGraph::from_lifetimes(problem.buffers()),
    }
}
