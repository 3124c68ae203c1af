//! Groups of a proven launch on several threads.
//!
//! The calling thread starts alone. If the rest would take much longer than waking other threads,
//! threads of rayon's pool take parts of it too. So a short launch costs only some queries of the
//! clock more, and neither a size nor a kind of kernel has to be known.

use alloc::vec::Vec;
use core::error::Error;
use core::num::NonZeroUsize;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rayon_core::ThreadPoolBuilder;
use usm_core::ends::ForkOnce;

use crate::argument::Signature;
use crate::group::Group;
use crate::host::phased;
use crate::kernel::{Kernel, LocalLengths, LocalViews};
use crate::local::LocalSignature;
use crate::order::InOrder;
use crate::range::{Id, NdRange};
use crate::sharing::Concurrent;

/// Remaining nanoseconds that are worth waking other threads, which takes about 5 us.
const WORTHWHILE: u128 = 50_000;
/// The least nanoseconds that a thread takes work for.
const GRAIN: u128 = 5_000;

/// Number of threads that the pool has for a launch of the calling thread, which is one of them.
fn pool_size() -> u64 {
    static PROCESS: ForkOnce<Option<u32>> = ForkOnce::new();
    // A thread of the pool is a part of work that the program has divided itself. If it waited
    // here, it would run other parts meanwhile, which may wait for the arrays of this launch.
    if rayon_core::current_thread_index().is_some() {
        return 1;
    }
    // An error with a source says that there are no threads, others that the pool exists.
    let process = PROCESS.get_or_refuse(|| {
        let built = ThreadPoolBuilder::new().build_global();
        built.err().is_none_or(|error| error.source().is_none()).then(std::process::id)
    });
    // The threads of the pool are not in a child that the process forked, nor is the one that was
    // starting them.
    if process == Ok(&Some(std::process::id())) { rayon_core::current_num_threads() as u64 } else { 1 }
}

/// Groups that threads take: the numbers from `next` to `end`.
struct Shares {
    next: AtomicU64,
    end: u64,
    /// The least number that a thread takes.
    grain: u64,
    threads: u64,
}

impl Shares {
    /// The next groups: fewer towards the end, so that all threads end together.
    fn take(&self) -> Option<Range<u64>> {
        let end = |from: u64| {
            let rest = self.end - from;
            (rest > 0).then(|| from + (rest / (2 * self.threads)).max(self.grain).min(rest))
        };
        // Only the numbers are exchanged here; the pool orders all other memory.
        let from = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, end).ok()?;
        Some(from..end(from)?)
    }
}

/// A proven launch whose groups several threads run.
pub(crate) struct Divided<'l, K: Kernel<D>, const D: usize> {
    pub(crate) kernel: &'l K,
    pub(crate) range: &'l NdRange<D>,
    pub(crate) raw: &'l <K::Arguments as Signature>::Raw,
    pub(crate) lengths: &'l LocalLengths<K::Local>,
    /// Bytes of local and private arrays of one group.
    pub(crate) needed: usize,
    /// Number of threads, if the launch states it.
    pub(crate) threads: Option<NonZeroUsize>,
}

impl<K: Kernel<D>, const D: usize> Divided<'_, K, D> {
    /// Runs all groups. `local` holds the arrays of this thread's groups.
    ///
    /// # Safety
    /// The launch is proven, and until this returns its arguments are live and not accessed in
    /// conflict by anything else.
    pub(crate) unsafe fn run(&self, mut local: LocalViews<'_, K::Local>) {
        let count = self.count();
        if let Some(stated) = self.threads {
            let stated = stated.get() as u64;
            let grain = (count / 64 / stated).max(1);
            // SAFETY: the caller's promise.
            return unsafe { self.run_rest(0..count, grain, stated, &mut local) };
        }
        let (mut done, mut step) = (0, (count / 64).max(1));
        let start = Instant::now();
        while done < count {
            let end = done.saturating_add(step).min(count);
            // SAFETY: the caller's promise.
            unsafe { self.run_share(done..end, &mut local) };
            done = end;
            let (elapsed, rest) = (start.elapsed().as_nanos(), count - done);
            // The first groups may be the fastest ones, so the time is taken again.
            step = done.saturating_mul(3);
            if elapsed * u128::from(rest) > WORTHWHILE * u128::from(done) {
                let grain = (u128::from(done) * GRAIN / elapsed).max(1) as u64;
                // SAFETY: the caller's promise.
                return unsafe { self.run_rest(done..count, grain, u64::MAX, &mut local) };
            }
        }
    }

    /// Runs the rest of the groups on at most this number of threads, each of which takes at least
    /// `grain` of them at once.
    ///
    /// # Safety
    /// As for [`run`](Self::run).
    unsafe fn run_rest(&self, rest: Range<u64>, grain: u64, most: u64, local: &mut LocalViews<'_, K::Local>) {
        let useful = ((rest.end - rest.start) / grain).min(most);
        let threads = if useful <= 1 { 1 } else { useful.min(pool_size()) };
        let shares = Shares { next: AtomicU64::new(rest.start), end: rest.end, grain, threads };
        let run = |local: &mut LocalViews<'_, K::Local>| {
            while let Some(share) = shares.take() {
                // SAFETY: the caller's promise; no two threads take the same share.
                unsafe { self.run_share(share, local) };
            }
        };
        if threads == 1 {
            return run(local);
        }
        rayon_core::in_place_scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| {
                    // Without memory for this thread's groups, the other threads run them.
                    let mut region = Vec::new();
                    if region.try_reserve_exact(self.needed).is_err() {
                        return;
                    }
                    region.resize(self.needed, 0);
                    if let Some(mut local) = phased::carve::<D, K>(self.range, &mut region, self.lengths) {
                        run(&mut local);
                    }
                });
            }
            run(local);
        });
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
