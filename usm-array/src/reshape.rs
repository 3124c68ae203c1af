//! The same elements in another shape.

use crate::axes::Axes;
use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_DIMS};

impl Layout {
    /// The same elements in C order with another shape, if that needs no copy. One extent may be
    /// -1.
    ///
    /// # Errors
    /// [`Error::Reshape`].
    pub fn reshaped(&self, mut shape: Axes) -> Result<Self> {
        let request = shape.clone();
        let reshape_error = |reason| Error::Reshape { from: self.shape.clone(), to: request.clone(), reason };
        let mut extents = request.iter().filter(|extent| **extent != -1);
        let product =
            extents.try_fold(
                1_isize,
                |product, extent| {
                    if *extent < 0 { None } else { product.checked_mul(*extent) }
                },
            );
        let product = product.ok_or_else(|| reshape_error("an extent is negative or too large"))?;
        let len = self.len() as isize;
        let mut guesses = shape.iter_mut().filter(|extent| **extent == -1);
        match (guesses.next(), guesses.next()) {
            (Some(guess), None) if product != 0 && len % product == 0 => *guess = len / product,
            (None, _) if product == len => {}
            (Some(_), Some(_)) => return Err(reshape_error("more than one -1")),
            _ => return Err(reshape_error("the number of elements differs")),
        }
        if shape.len() > MAX_DIMS {
            return Err(reshape_error("more than 64 dimensions"));
        }
        if len == 0 {
            let extents: Vec<usize> = shape.iter().map(|extent| extent.unsigned_abs()).collect();
            let layout = Self::contiguous(self.itemsize(), &extents);
            let layout = layout.map_err(|_| reshape_error("the size in bytes does not fit 63 bits"))?;
            return Ok(layout.moved_to(self.offset));
        }
        let strides = match self.is_c_contiguous() {
            true => shape.packed_strides(self.itemsize()),
            false => {
                let strides = self.strides_of(&shape);
                strides.ok_or_else(|| reshape_error("the strides do not allow it; copy it first"))?
            }
        };
        Ok(Self::of_normal(self.itemsize(), shape, strides, self.offset))
    }

    /// The strides of another shape with as many elements; `None` if no strides reach them in that
    /// order. There are elements.
    fn strides_of(&self, shape: &[isize]) -> Option<Axes> {
        let axes = self.shape.iter().zip(&self.strides).map(|(extent, stride)| (*extent, *stride));
        let axes: Vec<(isize, isize)> = axes.filter(|(extent, _)| *extent != 1).collect();
        let mut strides = Axes::filled(shape.len(), 0);
        let (mut old, mut new) = (0, 0);
        // Each round takes the fewest axes of both with as many elements. The products stay below
        // the number of elements, and both reach it at the same time.
        while let (Some(&(extent, _)), Some(&target_extent)) = (axes.get(old), shape.get(new)) {
            let (mut old_extent, mut new_extent, mut old_end, mut new_end) =
                (extent, target_extent, old + 1, new + 1);
            while old_extent != new_extent {
                if old_extent < new_extent {
                    old_extent *= axes.get(old_end)?.0;
                    old_end += 1;
                } else {
                    new_extent *= shape.get(new_end)?;
                    new_end += 1;
                }
            }
            let run = &axes[old..old_end];
            if run.windows(2).any(|pair| pair[1].0.checked_mul(pair[1].1) != Some(pair[0].1)) {
                return None;
            }
            let mut stride = run[run.len() - 1].1;
            for axis in (new..new_end).rev() {
                strides[axis] = stride;
                // Behind the last axis with a second element the product is not used.
                stride = stride.wrapping_mul(shape[axis]);
            }
            (old, new) = (old_end, new_end);
        }
        Some(strides)
    }
}
