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
use super::greedy::{area_key, order_by, size_key};
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
    /// Descending power of two of the life, then the earliest begin first: at a short and high peak
    /// its buffers are one staircase on both sides.
    Octave,
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
    /// Ascending power of two of the distance from the instant, then descending size: the room that
    /// the stack leaves is tight beside it and wide far away.
    Near,
}

/// Every combination, those that meet the bound most often first.
pub(super) const ALL: [(Stack, Rest); 10] = [
    (Stack::End, Rest::Size),
    (Stack::Begin, Rest::Size),
    (Stack::Duration, Rest::Area),
    (Stack::End, Rest::Octave),
    (Stack::Begin, Rest::Octave),
    (Stack::Duration, Rest::Octave),
    (Stack::End, Rest::Area),
    (Stack::Begin, Rest::Area),
    (Stack::Duration, Rest::Size),
    (Stack::Octave, Rest::Near),
];

/// The order of placement. `heaviest[i]` tells whether buffer `i` belongs to the bound.
pub(super) fn order(instance: Instance<'_>, heaviest: &[bool], stack: Stack, rest: Rest) -> Vec<u32> {
    let octave = |number: u64| u64::from(u64::BITS - number.leading_zeros());
    let begins = (0..heaviest.len()).filter(|&i| heaviest[i]).map(|i| instance.buffers[i].lower);
    let instant = begins.max().unwrap_or(0);
    let mut order = order_by(instance, |b| {
        let length = b.lifetime().len();
        match rest {
            Rest::Size => size_key(b),
            Rest::Octave => (Reverse(octave(b.size)), Reverse(length), b.lower),
            Rest::Area => area_key(b),
            Rest::Near => {
                let distance = b.lower.saturating_sub(instant).max(instant.saturating_sub(b.upper));
                (Reverse(u64::MAX - octave(distance)), Reverse(b.size), b.lower)
            }
        }
    });
    sort::by_key(&mut order, |i| {
        let buffer = &instance.buffers[i as usize];
        let key = match stack {
            Stack::End => (0, u64::MAX - buffer.upper),
            Stack::Begin => (0, buffer.lower),
            Stack::Duration => (0, u64::MAX - buffer.lifetime().len()),
            Stack::Octave => (u64::MAX - octave(buffer.lifetime().len()), buffer.lower),
        };
        if heaviest[i as usize] { (false, key) } else { (true, (0, 0)) }
    });
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::greedy::{Until, in_order};
    use crate::planner::offset_list::Fit;
    use crate::{Buffer, bound};

    /// Four layers that follow each other at the peak, what they leave, and what lives longer, as
    /// in a training step of a language model.
    const SHORT_PEAK: [(u64, u64, u64); 12] = [
        (0, 200, 100),
        (2, 180, 50),
        (10, 60, 40),
        (5, 16, 30),
        (9, 14, 312),
        (11, 15, 312),
        (12, 17, 312),
        (13, 19, 312),
        (15, 150, 390),
        (17, 150, 390),
        (14, 21, 20),
        (16, 23, 20),
    ];

    #[test]
    fn a_short_and_high_peak_needs_its_staircase() {
        let lives = SHORT_PEAK.into_iter().zip(0..);
        let buffers: Vec<Buffer> =
            lives.map(|((lower, upper, size), id)| Buffer::new(id, lower, upper, size)).collect();
        let instance = Instance { buffers: &buffers, conflicts: None };
        let cut = bound::time_cut(&buffers);
        let heaviest: Vec<bool> =
            buffers.iter().map(|buffer| buffer.lower <= cut.time && cut.time < buffer.upper).collect();
        let until = Until { limit: u64::MAX, work: u64::MAX, stop: &|| false, on_top: false };
        let peak = |(stack, rest)| {
            let order = order(instance, &heaviest, stack, rest);
            in_order(instance, &order, Fit::First, until).map(|offsets| instance.peak(&offsets))
        };
        let peaks = ALL.map(peak);
        let (last, others) = peaks.split_last().expect("some");
        assert_eq!((cut.bytes, *last), (1468, Some(1468)));
        assert!(others.iter().all(|peak| *peak > Some(cut.bytes)), "{peaks:?}");
    }
}
