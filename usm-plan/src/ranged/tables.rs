//! The tables of [`RangeTable`](range::RangeTable), owned.

use usm_pool::bound::time_cut;
use usm_pool::range::{self, At, Dimension, RangeError, evaluate};
use usm_pool::{Buffer, range::Item as Row};

use super::PLANS;
use super::evaluation::{Evaluation, Item};

#[derive(Debug)]
pub(crate) struct Tables {
    dimensions: Vec<Dimension>,
    ids: Vec<u64>,
    items: Vec<Item>,
    plans: Vec<Vec<(u32, u32)>>,
    /// The blocks for the values of the problem, each with the item that gives it its size.
    blocks: Vec<(Buffer, u32)>,
    evaluation: Option<Evaluation>,
    pub(super) fits_by_order: bool,
}

impl Tables {
    pub(super) fn new(
        dimensions: Vec<Dimension>,
        ids: Vec<u64>,
        items: Vec<Item>,
        plans: Vec<Vec<(u32, u32)>>,
        blocks: Vec<(Buffer, u32)>,
        fits_by_order: bool,
    ) -> Self {
        let evaluation = Evaluation::new(&items, &plans, &blocks);
        Self { dimensions, ids, items, plans, blocks, evaluation, fits_by_order }
    }

    /// Ids of the tensors that have an offset.
    pub(crate) fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The values of each dimension.
    pub(crate) fn dimensions(&self) -> &[Dimension] {
        &self.dimensions
    }

    /// The number of blocks, which are those of all values.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Whether a proof for one value holds for all. Every permit was used in a block of tensors
    /// that all fill it and have bytes for that value: other tensors of a block overlap for some
    /// values, and tensors without bytes for none. And the operators follow each other alike for
    /// all values.
    pub(crate) fn fits_by_order(&self) -> bool {
        self.fits_by_order
    }

    /// Whether these are values of the dimensions.
    pub(crate) fn fits(&self, values: &[u64]) -> Result<(), RangeError> {
        range::fits(&self.dimensions, values)
    }

    /// The bound in bytes for some values on an in-order queue.
    pub(crate) fn bound(&self, values: &[u64]) -> Result<u64, RangeError> {
        let mut blocks = Vec::with_capacity(self.blocks.len());
        for &(block, item) in &self.blocks {
            let size = evaluate(&self.items[item as usize].0, values);
            let size = size.map_err(|fault| RangeError::Expression { item: item as usize, fault })?;
            blocks.push(Buffer { size, ..block });
        }
        Ok(time_cut(&blocks).bytes)
    }

    /// Writes the offset of each tensor for some values. The bound is that of [`Self::bound`],
    /// where it is at hand.
    pub(crate) fn at(&self, values: &[u64], offsets: &mut [u64]) -> Result<(At, Option<u64>), RangeError> {
        let count = self.items.len();
        if let (Some(evaluation), Some(offsets)) = (&self.evaluation, offsets.get_mut(..count)) {
            self.fits(values)?;
            if let Some(plan) = evaluation.at(values, offsets) {
                return Ok(plan);
            }
        }
        let mut sizes = vec![0; count];
        let row = |index: usize| {
            let (size, alignment, root, inside) = &self.items[index];
            Row { size, alignment: *alignment, root: *root, inside }
        };
        let mut plans: [&[(u32, u32)]; PLANS] = [&[]; PLANS];
        for (plan, pairs) in plans.iter_mut().zip(&self.plans) {
            *plan = pairs;
        }
        let plans = &plans[..self.plans.len().min(PLANS)];
        let at = range::at(&self.dimensions, count, row, plans, values, offsets, &mut sizes)?;
        Ok((at, None))
    }
}
