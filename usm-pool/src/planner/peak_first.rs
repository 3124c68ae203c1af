//! The heaviest instant first: the buffers of the bound are stacked without holes, and the others
//! go around them.
//!
//! A plan can only meet the bound if the buffers of the heaviest instant form one solid stack.
//! Strategies that ignore that instant leave holes in it. Sorted by end, the latest lowest, the
//! stack is a staircase after its instant, so later buffers find one solid room above it; sorted by
//! begin, the same holds before the instant. In a training step most memory that is live at the
//! peak waits for the optimiser. There this meets the bound with tens of thousands of buffers in a
//! fraction of a second.

use alloc::vec::Vec;
use core::cmp::Reverse;

use super::Instance;
use super::greedy::{area_key, size_key, sorted};
use crate::sort;

/// The order of the stack, the first buffer lowest.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stack {
    /// The latest end first.
    End,
    /// The earliest begin first.
    Begin,
    /// The longest life first.
    Duration,
}

/// The order of the buffers beside the stack.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rest {
    /// Descending size.
    Size,
    /// Descending power of two of the size, then descending duration: of similar sizes, the longer
    /// life goes first.
    Octave,
    /// Descending size times duration.
    Area,
}

/// Every combination, those that meet the bound most often first.
pub(super) const ALL: [(Stack, Rest); 9] = [
    (Stack::End, Rest::Size),
    (Stack::Begin, Rest::Size),
    (Stack::Duration, Rest::Area),
    (Stack::End, Rest::Octave),
    (Stack::Begin, Rest::Octave),
    (Stack::Duration, Rest::Octave),
    (Stack::End, Rest::Area),
    (Stack::Begin, Rest::Area),
    (Stack::Duration, Rest::Size),
];

/// The order of placement. `heaviest[i]` tells whether buffer `i` belongs to the bound.
pub(super) fn order(instance: Instance<'_>, heaviest: &[bool], stack: Stack, rest: Rest) -> Vec<u32> {
    let mut order = sorted(instance, |b| {
        let length = b.lifetime().len();
        match rest {
            Rest::Size => size_key(b),
            Rest::Octave => {
                (Reverse(u64::from(b.size.checked_ilog2().unwrap_or(0))), Reverse(length), b.lower)
            }
            Rest::Area => area_key(b),
        }
    });
    sort::by_key(&mut order, |i| {
        let buffer = &instance.buffers[i as usize];
        let key = match stack {
            Stack::End => u64::MAX - buffer.upper,
            Stack::Begin => buffer.lower,
            Stack::Duration => u64::MAX - buffer.lifetime().len(),
        };
        if heaviest[i as usize] { (false, key) } else { (true, 0) }
    });
    order
}
