//! Each group adds its own reverse: the example of local memory and a barrier.

use crate::argument::Write;
use crate::barrier::FenceSpace;
use crate::error::ArgumentError;
use crate::group::Group;
use crate::kernel::{Kernel, Values};
use crate::local::Local;
use crate::order::Order;
use crate::range::NdRange;

/// `a[i] += a[mirror of i in its group]`, with as many elements as work-items.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reverse;

impl Kernel<1> for Reverse {
    const NAME: &'static str = "reverse";
    type Arguments = (Write<f32>,);
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
        ArgumentError::at_least(lengths, 0, range.global().items())
    }

    #[inline]
    fn group<O: Order>(&self, group: &Group<'_, Self, 1, O>, (a,): (&mut [f32],), (lm,): (&mut [f32],)) {
        // Slices of the group's size: the compiler then proves the indices of the loops.
        let size = group.size();
        let (a, lm) = (&mut group.block_mut(a)[..size], &mut lm[..size]);
        for item in group.items() {
            lm[item.local()] = a[item.local()];
        }
        group.barrier(FenceSpace::LOCAL);
        for item in group.items() {
            a[item.local()] += lm[size - 1 - item.local()];
        }
    }
}

/// The same as Numba's documentation writes it: local memory of a fixed size, indexed with
/// the *global* id. Right for one group of exactly `N` items, and refused for anything else.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReverseOneGroup<const N: usize>;

impl<const N: usize> Kernel<1> for ReverseOneGroup<N> {
    const NAME: &'static str = "reverse_array";
    type Arguments = (Write<f32>,);
    type Local = (Local<f32>,);

    fn required_group(&self) -> Option<[u64; 1]> {
        Some([N as u64])
    }

    fn local(&self, _: &NdRange<1>, _: &Values<Self::Arguments>) -> [usize; 1] {
        [N]
    }

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        // Of one group only, however many elements there are.
        ArgumentError::at_least(&[N], 0, range.global().items())?;
        ArgumentError::at_least(lengths, 0, range.global().items())
    }

    #[inline]
    fn group<O: Order>(&self, group: &Group<'_, Self, 1, O>, (a,): (&mut [f32],), (lm,): (&mut [f32],)) {
        for item in group.items() {
            let i = item.global();
            lm[i] = a[i];
        }
        group.barrier(FenceSpace::LOCAL);
        for item in group.items() {
            let i = item.global();
            a[i] += lm[N - 1 - i];
        }
    }
}

/// The plain loop for [`Reverse`]: groups of `group` elements.
pub fn reverse_plain(a: &mut [f32], group: usize) {
    for block in a.chunks_exact_mut(group.max(1)) {
        let (last, middle) = (block.len() - 1, block.len() / 2);
        for i in 0..middle {
            let sum = block[i] + block[last - i];
            (block[i], block[last - i]) = (sum, sum);
        }
        if block.len() % 2 == 1 {
            block[middle] += block[middle];
        }
    }
}
