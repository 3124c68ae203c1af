//! Lists of small integers, one after the other in one allocation.

use alloc::vec;
use alloc::vec::Vec;

/// `len` lists; list `i` is `data[start[i]..start[i + 1]]`.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    start: Vec<u32>,
    data: Vec<u32>,
}

impl Rows {
    /// Fills `rows` lists from `fill`, which pushes (row, value) pairs and is called twice: to
    /// count and to store.
    pub(super) fn new(rows: usize, fill: impl Fn(&mut dyn FnMut(usize, u32))) -> Self {
        let mut start = vec![0_u32; rows + 1];
        fill(&mut |row, _| start[row + 1] += 1);
        for row in 0..rows {
            start[row + 1] += start[row];
        }
        let mut data = vec![0; start[rows] as usize];
        let mut at = start.clone();
        fill(&mut |row, value| {
            data[at[row] as usize] = value;
            at[row] += 1;
        });
        Self { start, data }
    }

    pub(super) fn len(&self) -> usize {
        self.start.len().saturating_sub(1)
    }

    /// Number of values in all lists.
    pub(super) fn total(&self) -> usize {
        self.data.len()
    }

    pub(super) fn row(&self, row: usize) -> &[u32] {
        let (start, end) = self.range(row);
        &self.data[start as usize..end as usize]
    }

    pub(super) fn range(&self, row: usize) -> (u32, u32) {
        (self.start[row], self.start[row + 1])
    }

    pub(super) fn into_data(self) -> Vec<u32> {
        self.data
    }
}
