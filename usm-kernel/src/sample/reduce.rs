//! The sum of an array: each group sums its part in local memory and leaves one partial sum.

use crate::argument::{Read, Write};
use crate::barrier::FenceSpace;
use crate::error::ArgumentError;
use crate::group::Group;
use crate::kernel::{Kernel, Values};
use crate::local::Local;
use crate::order::Order;
use crate::range::NdRange;

/// `sums[group]` = the sum of the group's part of `a`: `per_item` elements a work-item, fewer where
/// the array ends.
#[derive(Clone, Copy, Debug)]
pub struct Reduce {
    pub(super) per_item: usize,
}

/// Rows of a block: each is one load, all of them together one store.
const ROWS: usize = 16;

impl Reduce {
    /// Elements a work-item that keep the tree small beside the loads.
    pub const PER_ITEM: usize = 256;

    /// A reduction with `per_item` elements a work-item, at least 1.
    #[must_use]
    pub const fn new(per_item: usize) -> Self {
        Self { per_item: if per_item == 0 { 1 } else { per_item } }
    }

    /// Groups of `group` items that `len` elements take.
    #[must_use]
    pub const fn groups(&self, len: usize, group: usize) -> usize {
        len.div_ceil(match self.per_item.saturating_mul(group) {
            0 => 1,
            part => part,
        })
    }
}

impl Default for Reduce {
    fn default() -> Self {
        Self::new(Self::PER_ITEM)
    }
}

impl Kernel<1> for Reduce {
    const NAME: &'static str = "reduce";
    type Arguments = (Read<f32>, Write<f32>);
    type Local = (Local<f32>,);

    fn local(&self, range: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 1] {
        [range.local().items() as usize]
    }

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 1, range.groups().items())
    }

    #[inline]
    fn group<O: Order>(
        &self,
        group: &Group<'_, Self, 1, O>,
        (a, sums): (&[f32], &mut [f32]),
        (lm,): (&mut [f32],),
    ) {
        let size = group.size();
        let lm = &mut lm[..size];
        let part = group.chunk(a, size.saturating_mul(self.per_item));
        lm.fill(0.0);
        // The usual sizes are compiled in: then one address serves all rows of a block.
        let rest = match size {
            64 => add_blocks::<64, O>(group, lm, part),
            128 => add_blocks::<128, O>(group, lm, part),
            256 => add_blocks::<256, O>(group, lm, part),
            512 => add_blocks::<512, O>(group, lm, part),
            1024 => add_blocks::<1024, O>(group, lm, part),
            _ => part,
        };
        for row in rest.chunks(size) {
            for item in group.first(row.len()) {
                lm[item.local()] += row[item.local()];
            }
        }
        group.barrier(FenceSpace::LOCAL);
        let mut live = size;
        while live > 1 {
            let half = live.div_ceil(2);
            let (low, high) = lm[..live].split_at_mut(half);
            for item in group.first(high.len()) {
                low[item.local()] += high[item.local()];
            }
            group.barrier(FenceSpace::LOCAL);
            live = half;
        }
        for _ in group.first(1) {
            sums[group.index()] = lm[0];
        }
    }
}

/// Adds all whole blocks of `ROWS` rows to `sums`, neighbouring items reading neighbouring
/// elements; what is left.
#[inline]
fn add_blocks<'a, const SIZE: usize, O: Order>(
    group: &Group<'_, Reduce, 1, O>,
    sums: &mut [f32],
    part: &'a [f32],
) -> &'a [f32] {
    let Some(sums) = sums.first_chunk_mut::<SIZE>() else { return part };
    let mut rest = part;
    while let Some((block, after)) = rest.split_at_checked(SIZE * ROWS) {
        for item in group.first(SIZE) {
            let mut column: [f32; ROWS] = core::array::from_fn(|row| block[row * SIZE + item.local()]);
            // Pairwise: shorter chains of additions, and smaller errors, than a running sum.
            let mut live = ROWS;
            while live > 1 {
                live /= 2;
                for row in 0..live {
                    column[row] += column[row + live];
                }
            }
            sums[item.local()] += column[0];
        }
        rest = after;
    }
    rest
}

/// The sum of `a`, in groups of `group` items, by host bodies: partial sums are reduced again until
/// one is left.
///
/// # Errors
/// Those of the launches and of the copy back.
#[cfg(feature = "alloc")]
pub fn reduce<B: usm_core::Backend, K: usm_core::Kind>(
    queue: &usm_core::Queue<B>,
    a: &usm_core::UsmVec<f32, K, B>,
    group: u64,
) -> Result<f32, crate::LaunchError> {
    reduce_by(super::runner::OnHost, queue, a, group)
}

/// As [`reduce()`], on the device of `executable`.
///
/// # Errors
/// As there.
#[cfg(feature = "alloc")]
pub fn reduce_on<B: crate::Programmable, K: usm_core::Kind>(
    executable: &crate::Executable<Reduce, B, 1>,
    queue: &usm_core::Queue<B>,
    a: &usm_core::UsmVec<f32, K, B>,
    group: u64,
) -> Result<f32, crate::LaunchError> {
    reduce_by(executable, queue, a, group)
}

#[cfg(feature = "alloc")]
fn reduce_by<B: usm_core::Backend, K: usm_core::Kind>(
    runner: impl super::runner::Runner<Reduce, B>,
    queue: &usm_core::Queue<B>,
    a: &usm_core::UsmVec<f32, K, B>,
    group: u64,
) -> Result<f32, crate::LaunchError> {
    use usm_core::{Device, UsmVec};

    let kernel = Reduce::default();
    let launch = |len: usize| -> Result<_, crate::LaunchError> {
        // One group for an empty array: its sum is 0.
        let groups = kernel.groups(len, usize::try_from(group).unwrap_or(usize::MAX)).max(1);
        let range = NdRange::new([group.saturating_mul(groups as u64)], [group])?;
        Ok((crate::Launch::new(queue, range), UsmVec::<f32, Device, B>::zeroed(queue, groups)?))
    };
    let (first, mut sums) = launch(a.len())?;
    let _ = runner.run(first, kernel, (a, &mut sums))?;
    // A group takes 256 elements at least, so this ends after 8 rounds at most.
    while sums.len() > 1 {
        let (next, mut fewer) = launch(sums.len())?;
        let _ = runner.run(next, kernel, (&sums, &mut fewer))?;
        sums = fewer;
    }
    let mut sum = [0.0];
    queue.read_to_slice(&mut sum, &sums)?;
    Ok(sum[0])
}

/// The plain loop.
#[must_use]
pub fn reduce_plain(a: &[f32]) -> f32 {
    a.iter().sum()
}
