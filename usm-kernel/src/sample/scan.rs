//! Running sums of an array of any length: groups scan their parts, the sums of the parts are
//! scanned in turn.

use crate::argument::{Read, Write};
use crate::barrier::FenceSpace;
use crate::error::ArgumentError;
use crate::group::Group;
use crate::kernel::{Kernel, Values};
use crate::local::Local;
use crate::order::Order;
use crate::range::NdRange;

/// Each group's part of `output` = the inclusive running sums (modulo 2^32) of its part of `input`;
/// `sums[group]` = the part's total. A work-item has [`ScanParts::PER_ITEM`] elements, fewer where
/// the array ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanParts;

impl ScanParts {
    /// Elements a work-item.
    pub const PER_ITEM: usize = 16;

    /// Groups of `group` items that `len` elements take.
    #[must_use]
    pub const fn groups(len: usize, group: usize) -> usize {
        len.div_ceil(match group.saturating_mul(Self::PER_ITEM) {
            0 => 1,
            part => part,
        })
    }
}

impl Kernel<1> for ScanParts {
    const NAME: &'static str = "scan_parts";
    type Arguments = (Read<u32>, Write<u32>, Write<u32>);
    type Local = (Local<u32>, Local<u32>);

    fn local(&self, range: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 2] {
        [range.local().items() as usize; 2]
    }

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        let input = lengths.first().map_or(0, |length| *length as u64);
        ArgumentError::at_least(lengths, 1, input)?;
        ArgumentError::at_least(lengths, 2, range.groups().items())
    }

    #[inline]
    fn group<O: Order>(
        &self,
        group: &Group<'_, Self, 1, O>,
        (input, output, sums): (&[u32], &mut [u32], &mut [u32]),
        (totals, shifted): (&mut [u32], &mut [u32]),
    ) {
        let part = group.size().saturating_mul(Self::PER_ITEM);
        let (input, output) = (group.chunk(input, part), group.chunk_mut(output, part));
        for item in group.items() {
            let mut sum = 0_u32;
            let own = item_range(input.len(), item.local());
            for (to, from) in output[own.clone()].iter_mut().zip(&input[own]) {
                sum = sum.wrapping_add(*from);
                *to = sum;
            }
            totals[item.local()] = sum;
        }
        // The totals of the items, scanned by doubling distances from one array into the other
        // (Hillis and Steele).
        let (mut from, mut to) = (totals, shifted);
        let mut distance = 1;
        while distance < group.size() {
            group.barrier(FenceSpace::LOCAL);
            for item in group.items() {
                let l = item.local();
                let before = if l < distance { 0 } else { from[l - distance] };
                to[l] = from[l].wrapping_add(before);
            }
            (from, to) = (to, from);
            distance *= 2;
        }
        group.barrier(FenceSpace::LOCAL);
        for item in group.items() {
            let l = item.local();
            let before = if l == 0 { 0 } else { from[l - 1] };
            for value in &mut output[item_range(input.len(), l)] {
                *value = value.wrapping_add(before);
            }
        }
        for _ in group.first(1) {
            sums[group.index()] = from[group.size() - 1];
        }
    }
}

/// The elements of one item in a part of `len`.
fn item_range(len: usize, item: usize) -> core::ops::Range<usize> {
    let start = item.saturating_mul(ScanParts::PER_ITEM).min(len);
    start..start.saturating_add(ScanParts::PER_ITEM).min(len)
}

/// Adds to each part of `output` the running sum of all parts before it: what makes [`ScanParts`] a
/// scan of the whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanCarry;

impl Kernel<1> for ScanCarry {
    const NAME: &'static str = "scan_carry";
    type Arguments = (Read<u32>, Write<u32>);
    type Local = ();

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 0, range.groups().items())
    }

    #[inline]
    fn group<O: Order>(&self, group: &Group<'_, Self, 1, O>, (sums, output): (&[u32], &mut [u32]), (): ()) {
        let Some(before) = group.index().checked_sub(1) else { return };
        let output = group.chunk_mut(output, group.size().saturating_mul(ScanParts::PER_ITEM));
        let len = output.len();
        for item in group.items() {
            for value in &mut output[item_range(len, item.local())] {
                *value = value.wrapping_add(sums[before]);
            }
        }
    }
}

/// `output` = the inclusive running sums of `input`, modulo 2^32, in groups of `group` items, by
/// host bodies.
///
/// # Errors
/// Those of the launches; a length that differs.
#[cfg(feature = "alloc")]
pub fn scan<B: usm_core::Backend, K1: usm_core::Kind, K2: usm_core::Kind>(
    queue: &usm_core::Queue<B>,
    input: &usm_core::UsmVec<u32, K1, B>,
    output: &mut usm_core::UsmVec<u32, K2, B>,
    group: u64,
) -> Result<usm_core::Event<B>, crate::LaunchError> {
    use super::runner::OnHost;
    scan_by((OnHost, OnHost), queue, input, output, group)
}

/// As [`scan()`], on the device of the two executables.
///
/// # Errors
/// As there.
#[cfg(feature = "alloc")]
pub fn scan_on<B: crate::Programmable, K1: usm_core::Kind, K2: usm_core::Kind>(
    executables: (&crate::Executable<ScanParts, B, 1>, &crate::Executable<ScanCarry, B, 1>),
    queue: &usm_core::Queue<B>,
    input: &usm_core::UsmVec<u32, K1, B>,
    output: &mut usm_core::UsmVec<u32, K2, B>,
    group: u64,
) -> Result<usm_core::Event<B>, crate::LaunchError> {
    scan_by(executables, queue, input, output, group)
}

#[cfg(feature = "alloc")]
fn scan_by<B: usm_core::Backend, K1: usm_core::Kind, K2: usm_core::Kind, R1, R2>(
    runners: (R1, R2),
    queue: &usm_core::Queue<B>,
    input: &usm_core::UsmVec<u32, K1, B>,
    output: &mut usm_core::UsmVec<u32, K2, B>,
    group: u64,
) -> Result<usm_core::Event<B>, crate::LaunchError>
where
    R1: super::runner::Runner<ScanParts, B>,
    R2: super::runner::Runner<ScanCarry, B>,
{
    use usm_core::{Device, UsmVec};

    let parts = ScanParts::groups(input.len(), usize::try_from(group).unwrap_or(usize::MAX));
    let range = NdRange::new([group.saturating_mul(parts as u64)], [group])?;
    let mut sums = UsmVec::<u32, Device, B>::zeroed(queue, parts)?;
    let launch = || crate::Launch::new(queue, range);
    let event = runners.0.run(launch(), ScanParts, (input, &mut *output, &mut sums))?;
    if parts <= 1 {
        return Ok(event);
    }
    let mut carries = UsmVec::<u32, Device, B>::zeroed(queue, parts)?;
    // A part has 16 elements at least, so this ends after 16 rounds at most.
    let _ = scan_by(runners, queue, &sums, &mut carries, group)?;
    runners.1.run(launch(), ScanCarry, (&carries, output))
}

/// The plain loop.
pub fn scan_plain(input: &[u32], output: &mut [u32]) {
    let mut sum = 0_u32;
    for (to, from) in output.iter_mut().zip(input) {
        sum = sum.wrapping_add(*from);
        *to = sum;
    }
}
