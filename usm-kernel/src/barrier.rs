//! Barriers of a work-group.
//!
//! In a phased kernel the end of each loop over the items is a barrier. Every item has left the
//! phase before the first one enters the next, and all items see the phase's writes to local and
//! global memory. No item can skip a barrier, so items cannot diverge. Work-groups are not ordered
//! against each other: a global fence orders the accesses of one group.

use bitflags::bitflags;

bitflags! {
    /// The memory whose accesses a barrier orders. Bit values as OpenCL's `CLK_LOCAL_MEM_FENCE` and
    /// `CLK_GLOBAL_MEM_FENCE`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct FenceSpace: u32 {
        /// Local memory of the group.
        const LOCAL = 1;
        /// Global memory, for the items of this group only.
        const GLOBAL = 2;
    }
}
