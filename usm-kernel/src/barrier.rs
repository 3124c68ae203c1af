//! Barriers of a work-group.
//!
//! In a phased kernel the end of each loop over the items is a barrier: every item has left the
//! phase before the first one enters the next, and what the phase wrote, in local and in global
//! memory, is seen by all of them. No item can skip a barrier, so there is no divergence.
//! Work-groups are not ordered against each other: a global fence orders the accesses of one group.

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
