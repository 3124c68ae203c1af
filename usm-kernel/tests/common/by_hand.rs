//! A kernel whose phases are written by hand. It has no code for devices and no nodes.

use usm_kernel::{ArgumentError, FenceSpace, Group, Kernel, Local, NdRange, Order, Values, Write};

/// `a[i] += a[mirror of i in its group]`, with as many elements as work-items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reverse;

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
    fn group<O: Order>(&self, group: &mut Group<'_, Self, 1, O>, (a,): (&mut [f32],), (lm,): (&mut [f32],)) {
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
