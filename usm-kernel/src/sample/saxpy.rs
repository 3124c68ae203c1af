//! `y += alpha * x`: a kernel without groups.

use crate::argument::{Read, Value, Write};
use crate::error::ArgumentError;
use crate::group::Group;
use crate::kernel::{Kernel, Values};
use crate::order::Order;
use crate::range::NdRange;

/// `y[i] += alpha * x[i]` for each work-item.
#[derive(Clone, Copy, Debug, Default)]
pub struct Saxpy;

impl Kernel<1> for Saxpy {
    const NAME: &'static str = "saxpy";
    type Arguments = (Value<f32>, Read<f32>, Write<f32>);
    type Local = ();

    fn check(
        &self,
        range: &NdRange<1>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        ArgumentError::at_least(lengths, 1, range.global().items())?;
        ArgumentError::at_least(lengths, 2, range.global().items())
    }

    #[inline]
    fn group<O: Order>(
        &self,
        group: &Group<'_, Self, 1, O>,
        (alpha, x, y): (f32, &[f32], &mut [f32]),
        (): (),
    ) {
        let size = group.size();
        let (x, y) = (&group.block(x)[..size], &mut group.block_mut(y)[..size]);
        for item in group.items() {
            y[item.local()] += alpha * x[item.local()];
        }
    }
}

/// The plain loop.
pub fn saxpy_plain(alpha: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}
