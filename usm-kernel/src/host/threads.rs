//! Groups of a proven launch on several threads.

use alloc::vec::Vec;
use core::num::NonZeroUsize;
use core::ops::{ControlFlow, Range};

use usm_core::threads::{self, Shares};

use crate::argument::Signature;
use crate::group::Group;
use crate::host::phased;
use crate::kernel::{Kernel, LocalLengths, LocalViews};
use crate::local::LocalSignature;
use crate::order::InOrder;
use crate::range::{Id, NdRange};
use crate::sharing::Concurrent;

/// A proven launch whose groups several threads run.
pub(crate) struct DividedLaunch<'l, K: Kernel<D>, const D: usize> {
    pub(crate) kernel: &'l K,
    pub(crate) range: &'l NdRange<D>,
    pub(crate) raw: &'l <K::Arguments as Signature>::Raw,
    pub(crate) lengths: &'l LocalLengths<K::Local>,
    /// Bytes of local and private arrays of one group.
    pub(crate) bytes: usize,
    /// Number of threads, if the launch states it.
    pub(crate) threads: Option<NonZeroUsize>,
}

impl<K: Kernel<D>, const D: usize> DividedLaunch<'_, K, D> {
    /// Runs all groups. `local` holds the arrays of this thread's groups.
    ///
    /// # Safety
    /// The launch is proven, and until this returns its arguments are live and not accessed in
    /// conflict by anything else.
    pub(crate) unsafe fn run(&self, mut local: LocalViews<'_, K::Local>) {
        let run_all = |groups| {
            // SAFETY: the caller's promise.
            unsafe { self.run_share(groups, &mut local) };
            ControlFlow::Continue(())
        };
        let others = |shares: &Shares| {
            // Without memory for this thread's groups, the other threads run them.
            let mut region = Vec::new();
            if region.try_reserve_exact(self.bytes).is_err() {
                return;
            }
            region.resize(self.bytes, 0);
            if let Some(mut local) = phased::carve::<D, K>(self.range, &mut region, self.lengths) {
                // SAFETY: the caller's promise; no two threads take the same share.
                shares.for_each(|groups| unsafe { self.run_share(groups, &mut local) });
            }
        };
        let ran = threads::divide(self.count(), self.threads, run_all, others);
        ran.expect("the launch has read the setting before");
    }

    /// The dimension that a kernel without groups is divided in: the slowest one that has more than
    /// one position.
    fn dimension(&self) -> usize {
        self.range.global().sizes().iter().position(|size| *size > 1).unwrap_or(0)
    }

    /// Number of groups, or of positions in [`dimension`](Self::dimension).
    fn count(&self) -> u64 {
        if K::WHOLE {
            self.range.global().sizes()[self.dimension()].min(self.range.global().items())
        } else {
            self.range.groups().items()
        }
    }

    /// # Safety
    /// As for [`run`](Self::run); no other thread runs these groups.
    unsafe fn run_share(&self, share: Range<u64>, local: &mut LocalViews<'_, K::Local>) {
        // SAFETY: the caller's promise. By the proof no two groups access one element unless both
        // read it or both accesses are atomic.
        let mut views = unsafe { K::Arguments::views::<Concurrent>(self.raw) };
        let mut run = |group: Group<'_, K, D, InOrder>| {
            K::Local::prepare(local, (!K::WRITES_FIRST).then_some(0));
            let views = K::Arguments::reborrow::<Concurrent>(&mut views);
            self.kernel.group_beside_others(&group, views, K::Local::reborrow(local));
        };
        if K::WHOLE {
            let dimension = self.dimension();
            let count = share.end - share.start;
            let part = NdRange::part(*self.range.global(), dimension, count);
            let start = core::array::from_fn(|d| if d == dimension { share.start } else { 0 });
            run(Group::part(&part, Id::new(start), InOrder));
        } else {
            for number in share {
                run(Group::new(self.range, number, InOrder, true));
            }
        }
    }
}
