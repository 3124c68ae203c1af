//! The run-time pool beside offset-allocator behind a mutex, which also manages addresses without
//! touching memory, beside mimalloc, beside UMF if `USM_UMF_LIBRARY` names its library, and beside
//! our own plain allocations. The traces of `USM_SHARED` are replayed if it names their folder.

mod beside;
mod churn;
mod other;
mod pair;
mod traces;
mod umf;

use crate::row::Row;

/// All rows.
pub(crate) fn rows() -> Vec<Row> {
    let mut rows = pair::rows();
    rows.extend(other::rows());
    rows.extend(churn::rows());
    rows.extend(beside::rows());
    rows.extend(traces::rows());
    rows
}

/// Numbers without a pattern, the same in each run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// From `low` to `high`, each power of two as often as any other.
    pub(crate) fn size(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = ((low as f64).ln(), (high as f64).ln());
        let part = self.next() as f64 / (1_u64 << 31) as f64;
        (low + (high - low) * part).exp() as u64
    }
}
