//! The product of two matrices, in tiles that pass through local memory.

use crate::argument::{Read, Write};
use crate::barrier::FenceSpace;
use crate::error::ArgumentError;
use crate::group::Group;
use crate::kernel::{Kernel, Values};
use crate::local::Local;
use crate::order::Order;
use crate::private::Private;
use crate::range::{NdRange, RangeError};

/// `c = a * b` for row-major matrices: `a` of `rows x inner`, `b` of `inner x columns`.
///
/// A work-item computes [`Matmul::WIDTH`] neighbouring elements of one row, which it keeps in
/// private memory from one tile to the next; a group has one column of items and shares its tile of
/// `b`. Sizes need not divide.
#[derive(Clone, Copy, Debug)]
pub struct Matmul {
    pub(super) rows: usize,
    pub(super) inner: usize,
    pub(super) columns: usize,
}

/// Rows of `b` in a tile.
const DEPTH: usize = 16;
const WIDTH: usize = Matmul::WIDTH;

impl Matmul {
    /// Elements of a row that one work-item computes.
    pub const WIDTH: usize = 16;

    /// The product of a `rows x inner` with an `inner x columns` matrix.
    #[must_use]
    pub const fn new(rows: usize, inner: usize, columns: usize) -> Self {
        Self { rows, inner, columns }
    }

    /// The nd-range with groups of `group` items.
    ///
    /// # Errors
    /// [`NdRange::covering`].
    pub fn range(&self, group: u64) -> Result<NdRange<2>, RangeError> {
        NdRange::covering([self.rows as u64, self.columns.div_ceil(WIDTH) as u64], [group, 1])
    }
}

impl Kernel<2> for Matmul {
    const NAME: &'static str = "matmul";
    type Arguments = (Read<f32>, Read<f32>, Write<f32>);
    type Local = (Local<f32>, Private<f32>);

    fn required_group(&self) -> Option<[u64; 2]> {
        Some([0, 1])
    }

    fn local(&self, _: &NdRange<2>, _: &Values<Self::Arguments>) -> [usize; 2] {
        [DEPTH * WIDTH, WIDTH]
    }

    fn check(
        &self,
        _: &NdRange<2>,
        lengths: &[usize],
        _: &Values<Self::Arguments>,
    ) -> Result<(), ArgumentError> {
        let elements = |rows: usize, columns: usize| (rows as u64).saturating_mul(columns as u64);
        ArgumentError::at_least(lengths, 0, elements(self.rows, self.inner))?;
        ArgumentError::at_least(lengths, 1, elements(self.inner, self.columns))?;
        ArgumentError::at_least(lengths, 2, elements(self.rows, self.columns))
    }

    #[inline]
    fn group<O: Order>(
        &self,
        group: &Group<'_, Self, 2, O>,
        (a, b, c): (&[f32], &[f32], &mut [f32]),
        (tile, mut sums): (&mut [f32], crate::PrivateArrays<'_, f32>),
    ) {
        let [group_row, group_column] = group.id().indices();
        let (first_row, first_column) = (group_row * group.size(), group_column * WIDTH);
        let width = self.columns.saturating_sub(first_column).min(WIDTH);
        if width == 0 {
            return;
        }
        let tile: &mut [[f32; WIDTH]] = bytemuck::cast_slice_mut(tile);
        for item in group.items() {
            sums.of(item).fill(0.0);
        }
        for start in (0..self.inner).step_by(DEPTH) {
            let depth = (self.inner - start).min(DEPTH);
            for item in group.items() {
                for k in (item.local()..depth).step_by(group.size()) {
                    let from = &b[(start + k) * self.columns + first_column..][..width];
                    tile[k] = [0.0; WIDTH];
                    tile[k][..width].copy_from_slice(from);
                }
            }
            group.barrier(FenceSpace::LOCAL);
            for item in group.items() {
                let row = first_row + item.local();
                if row >= self.rows {
                    continue;
                }
                let Some(sums) = sums.of(item).first_chunk_mut::<WIDTH>() else { continue };
                let factors = &a[row * self.inner + start..][..depth];
                let mut next = *sums;
                for (factor, values) in factors.iter().zip(&*tile) {
                    for (sum, value) in next.iter_mut().zip(values) {
                        *sum += factor * value;
                    }
                }
                *sums = next;
            }
            group.barrier(FenceSpace::LOCAL);
        }
        for item in group.items() {
            let row = first_row + item.local();
            if row < self.rows {
                let start = row * self.columns + first_column;
                c[start..start + width].copy_from_slice(&sums.of(item)[..width]);
            }
        }
    }
}

/// The plain loop, in the order that reads `b` by rows.
pub fn matmul_plain(kernel: &Matmul, a: &[f32], b: &[f32], c: &mut [f32]) {
    let Matmul { inner, columns, .. } = *kernel;
    if columns == 0 {
        return;
    }
    c.fill(0.0);
    for (row, c) in c.chunks_exact_mut(columns).enumerate() {
        for k in 0..inner {
            let factor = a[row * inner + k];
            for (sum, value) in c.iter_mut().zip(&b[k * columns..]) {
                *sum += factor * value;
            }
        }
    }
}
