//! A launch in parts.

use std::ops::Range;

/// Divides a launch into numbered parts, so that threads share them and that it can be interrupted
/// between them.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    /// Three global sizes and three local ones, the fastest dimension first.
    sizes: [u64; 6],
    /// Groups in each dimension.
    counts: [u64; 3],
    /// Groups of a part in each dimension.
    steps: [u64; 3],
    /// Parts in each dimension.
    parts: [u64; 3],
    /// The most parts of a run.
    most: u64,
}

/// The most items of a run, which has at least one group. It takes less than a millisecond for
/// usual kernels, and much longer than a call.
const RUN: u64 = 1 << 16;
/// The most items of a part, and the number of parts of a launch that has enough items.
const PART: u64 = 1 << 13;
const PARTS: u64 = 512;
/// The least items of a part: those that our own compiler runs at once.
const LEAST: u64 = 16;
/// Parts of a row begin at multiples of so many items, where vectors and lines of a cache begin.
const STRIP: u64 = 64;

impl Groups {
    /// Sizes of a launch, the fastest dimension last: at most three. Without `local` the kernel
    /// needs no groups.
    #[must_use]
    pub fn of(global: &[u64], local: Option<&[u64]>) -> Self {
        let three = |sizes: &[u64]| {
            let mut fastest_first = sizes.iter().rev().copied();
            [(); 3].map(|()| fastest_first.next().unwrap_or(1))
        };
        Self::new(three(global), local.map(three))
    }

    /// Sizes of a launch, the fastest dimension first. Without `local` the kernel needs no groups,
    /// and the last group of a dimension may be shorter.
    fn new(global: [u64; 3], local: Option<[u64; 3]>) -> Self {
        let all = global.iter().fold(1_u64, |all, size| all.saturating_mul(*size));
        let items = (all / PARTS).clamp(LEAST, PART);
        let local = local.unwrap_or_else(|| fitting_part(global, items, STRIP));
        let counts: [u64; 3] = std::array::from_fn(|axis| global[axis].div_ceil(local[axis].max(1)));
        let of_group = local.iter().fold(1_u64, |all, size| all.saturating_mul(*size)).max(1);
        let steps = fitting_part(counts, items / of_group, 1);
        let parts = std::array::from_fn(|axis| counts[axis].div_ceil(steps[axis]));
        let of_part = steps.iter().fold(of_group, |all, step| all.saturating_mul(*step));
        let sizes = std::array::from_fn(|place| if place < 3 { global[place] } else { local[place - 3] });
        Self { sizes, counts, steps, parts, most: (RUN / of_part).max(1) }
    }

    /// Number of parts.
    pub(crate) fn count(&self) -> u64 {
        self.parts.iter().fold(1, |all, count| all.saturating_mul(*count))
    }

    /// Takes the parts of the next run from the front of `parts`: some of a row, or whole rows.
    pub(crate) fn take_run(&self, parts: &mut Range<u64>) -> Option<[u64; 12]> {
        let left = (parts.end.saturating_sub(parts.start)).min(self.most);
        if left == 0 {
            return None;
        }
        let [x, y, _] = self.parts;
        let first = [parts.start % x, parts.start / x % y, parts.start / x / y];
        let run = if first[0] != 0 || left < x {
            [left.min(x - first[0]), 1, 1]
        } else if first[1] != 0 || left / x < y {
            [x, (left / x).min(y - first[1]), 1]
        } else {
            [x, y, left / x / y]
        };
        parts.start += run.iter().product::<u64>();
        let start = |axis: usize| first[axis] * self.steps[axis];
        let end =
            |axis: usize| (first[axis] + run[axis]).saturating_mul(self.steps[axis]).min(self.counts[axis]);
        Some(std::array::from_fn(|place| match place {
            0..6 => self.sizes[place],
            6..9 => start(place - 6),
            _ => end(place - 9),
        }))
    }
}

/// The part of these sizes, the fastest dimension first, that has about so many elements, and at
/// least one. A row that is not much longer stays whole: the rest of it would be a part of few
/// elements. Otherwise a part of a row has a multiple of `strip` elements, if there are so many.
fn fitting_part(sizes: [u64; 3], most: u64, strip: u64) -> [u64; 3] {
    let mut left = most.max(1);
    sizes.map(|size| {
        let part = match size <= left.saturating_add(left / 2) {
            true => size.max(1),
            false => left - left % strip.min(left),
        };
        left = if part == size { (left / part).max(1) } else { 1 };
        part
    })
}
