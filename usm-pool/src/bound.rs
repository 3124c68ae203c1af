//! Lower bounds on the peak, each with the certificate that proves it.
//!
//! A set of buffers that are pairwise in conflict must lie at pairwise different bytes, so its
//! stacked size is a bound. For an in-order queue the best such set is a cut through time; for an
//! out-of-order queue it is an antichain of maximum weight.

#[cfg(feature = "alloc")]
mod antichain;
#[cfg(feature = "alloc")]
mod time_cut;

#[cfg(feature = "alloc")]
pub use antichain::antichain;
#[cfg(feature = "alloc")]
pub(crate) use antichain::antichain_until;
#[cfg(feature = "alloc")]
pub use time_cut::{TimeCut, time_cut};

use crate::Buffer;
use crate::lifetime::align_up;

/// Minimum bytes of pairwise conflicting buffers, with alignment; `None` if the sum exceeds 64
/// bits.
///
/// With `g` the smallest alignment in a subset, all its offsets are multiples of `g`, so each
/// buffer but the topmost takes its size rounded up to `g`. Tries every occurring alignment as `g`,
/// with the buffers of at least that alignment, and takes the best result. Needs no heap, so a
/// program without one can check a plan's certificate.
#[must_use]
pub fn stacked<'a>(set: impl Iterator<Item = &'a Buffer> + Clone) -> Option<u64> {
    let mut best = 0;
    for shift in 0..u64::BITS {
        let unit = 1_u64 << shift;
        if !set.clone().any(|buffer| buffer.alignment == unit && buffer.size > 0) {
            continue;
        }
        let (mut sum, mut slack) = (0_u64, 0_u64);
        for buffer in set.clone().filter(|buffer| buffer.alignment >= unit) {
            let room = align_up(buffer.size, unit)?;
            sum = sum.checked_add(room)?;
            slack = slack.max(room - buffer.size);
        }
        best = best.max(sum - slack);
    }
    Some(best)
}

/// The bound that a cut through time proves: the stacked size of all buffers live at `time`. `None`
/// when it exceeds 64 bits.
#[must_use]
pub fn at_time(buffers: &[Buffer], time: u64) -> Option<u64> {
    stacked(buffers.iter().filter(|buffer| buffer.lower <= time && time < buffer.upper))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_topmost_buffer_needs_no_rounding() {
        let set = [Buffer::new(0, 0, 1, 100).aligned(64), Buffer::new(1, 0, 1, 60).aligned(64)];
        // 60 below 100 ends at 164, the other way round at 188.
        assert_eq!(stacked(set.iter()), Some(164));
    }

    #[test]
    fn small_alignments_fill_the_slack_of_large_ones() {
        let set = [
            Buffer::new(0, 0, 1, 1).aligned(64),
            Buffer::new(1, 0, 1, 65).aligned(64),
            Buffer::new(2, 0, 1, 63),
        ];
        // [0,1) [1,64) [64,129): equal to the sum of the sizes, and to the two aligned ones alone.
        assert_eq!(stacked(set.iter()), Some(129));
    }
}
