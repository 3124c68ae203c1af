//! What the ledger of a device asks pools, and what they tell it.

use alloc::vec::Vec;
use core::ops::Range;

use crate::backend::PointerInfo;

/// What a pool's owners did since the pool last told the ledger: sums of bytes as requested, and
/// numbers of blocks. The differences may wrap.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Bytes allocated.
    pub allocated: u64,
    /// Bytes freed.
    pub freed: u64,
    /// Allocations.
    pub allocations: u64,
    /// Frees.
    pub frees: u64,
}

/// Bytes of the segments of a pool, for statistics.
#[derive(Clone, Copy, Debug, Default)]
pub struct Holding {
    /// Segments.
    pub reserved: u64,
    /// Free blocks that nothing uses.
    pub cached: u64,
    /// Free blocks that unfinished operations were last known to use.
    pub pending: u64,
}

/// A pool, as the ledger of its device asks it: blocks come and go without the ledger.
pub trait Lending: Send + Sync {
    /// Tells the ledger by [`report`](crate::segment::report) what happened since the last call.
    fn report(&self);
    /// What the segments hold.
    fn holding(&self) -> Holding;
    /// The live block that contains `address`, as requested.
    fn find(&self, address: usize) -> Option<PointerInfo>;
    /// The addresses of the segment that contains `address`.
    fn segment(&self, address: usize) -> Option<Range<usize>>;
    /// Adds the live blocks to `all`.
    fn list(&self, all: &mut Vec<PointerInfo>);
    /// Returns idle segments to the runtime, for an allocation that found no memory. Returns their
    /// bytes.
    fn trim(&self) -> u64;
}
