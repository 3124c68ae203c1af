//! The pool of threads that work on the host is divided between: kernels, large copies, files.
//!
//! There is one for a process, rayon's own, so that a program that uses rayon too has no second set
//! of threads. Work is begun by the calling thread alone, which takes the time; only a rest that
//! takes much longer than waking other threads is divided. So short work costs only some queries of
//! the clock more, and neither a size nor a kind of work has to be known.
//!
//! The calling thread alone works in a child that the process forked, where the threads do not
//! exist, and on a thread of rayon, which is a part of work that the program has divided itself.
//!
//! ```
//! use core::ops::ControlFlow;
//! use core::sync::atomic::{AtomicU64, Ordering};
//! use usm_core::threads;
//!
//! let sum = AtomicU64::new(0);
//! let add = |parts: core::ops::Range<u64>| sum.fetch_add(parts.sum(), Ordering::Relaxed);
//! let alone = |parts| {
//!     add(parts);
//!     ControlFlow::Continue(())
//! };
//! let others = |shares: &threads::Shares| shares.for_each(|parts| _ = add(parts));
//! threads::divide(1000, None, alone, others)?;
//! assert_eq!(sum.into_inner(), 499_500);
//! # Ok::<(), usm_core::Error>(())
//! ```

mod crew;

use core::error::Error as _;
use core::num::NonZeroUsize;
use core::ops::{ControlFlow, Range};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use alloc::boxed::Box;
use alloc::sync::Arc;

use rayon_core::{ThreadPool, ThreadPoolBuilder};

use self::crew::Crew;
use crate::error::{ErrorKind, Result};
use crate::process::ForkOnce;

/// The environment variable with the number of threads.
pub const VARIABLE: &str = "USM_NUM_THREADS";

/// The largest number of threads.
pub const MOST: usize = 4096;

/// Remaining nanoseconds that are worth waking other threads, which takes about 5 us.
const WORTHWHILE: u128 = 50_000;
/// The least nanoseconds that a thread takes parts for.
const GRAIN: u128 = 5_000;

/// The stated number of threads, or [`UNREAD`], [`NONE`], [`BAD`].
static STATED: AtomicUsize = AtomicUsize::new(UNREAD);
const UNREAD: usize = 0;
const NONE: usize = usize::MAX;
const BAD: usize = usize::MAX - 1;

/// Rayon's pool; `None` if it has no threads.
static POOL: ForkOnce<Option<Pool>> = ForkOnce::new();

/// A pool with more threads than rayon's, which [`set`] made. Never freed.
static LARGER: AtomicPtr<ThreadPool> = AtomicPtr::new(ptr::null_mut());

struct Pool {
    /// The process that its threads are in.
    process: u32,
    size: usize,
}

/// Uses this number of threads from now on, the calling one included, in place of
/// `USM_NUM_THREADS` and of rayon's number. A child of a fork uses one, whatever is set.
///
/// # Errors
/// [`ErrorKind::BadSetting`] above [`MOST`].
pub fn set(threads: NonZeroUsize) -> Result<()> {
    if threads.get() > MOST {
        let least = WANTED;
        return Err(ErrorKind::BadSetting { name: "the number of threads", wanted: least }.into());
    }
    STATED.store(threads.get(), Ordering::Relaxed);
    Ok(())
}

/// The number of threads that work of the calling thread may use, itself included. Starts the pool.
///
/// # Errors
/// [`ErrorKind::BadSetting`] if `USM_NUM_THREADS` is no number from 1 to [`MOST`].
pub fn count() -> Result<NonZeroUsize> {
    let setting = stated()?;
    let number = if is_alone(setting) { 1 } else { pool(setting).map_or(1, |(_, size)| size) };
    Ok(NonZeroUsize::new(number).unwrap_or(NonZeroUsize::MIN))
}

/// Runs `count` parts of some work, numbered from 0, and returns when they are done: the number of
/// parts, or fewer if `own_work` broke.
///
/// `own_work` runs parts on the calling thread, and may end the work, in which case parts that were
/// not begun stay undone; those that were are the first ones. `others` runs on each other thread
/// that helps, and runs the parts that it takes of its [`Shares`]; it may take none. If `threads`
/// states a number, the work is divided at once, between at most so many.
///
/// # Errors
/// [`ErrorKind::BadSetting`] if `USM_NUM_THREADS` is no number from 1 to [`MOST`]; nothing ran
/// then.
pub fn divide(
    count: u64,
    threads: Option<NonZeroUsize>,
    mut own_work: impl FnMut(Range<u64>) -> ControlFlow<()>,
    others: impl Fn(&Shares) + Sync,
) -> Result<u64> {
    divide_if(count, threads, || true, |parts, _| own_work(parts), others)
}

/// As [`divide`], if `may` says so: it is asked once, when other threads are worth waking.
/// `own_work` gets the shares too, to [stop the other threads for a
/// while](Shares::while_others_wait).
///
/// # Errors
/// As for [`divide`].
pub fn divide_if(
    count: u64,
    threads: Option<NonZeroUsize>,
    may: impl FnOnce() -> bool,
    mut own_work: impl FnMut(Range<u64>, &Shares) -> ControlFlow<()>,
    others: impl Fn(&Shares) + Sync,
) -> Result<u64> {
    let setting = stated()?;
    let mut shares = Shares::new(count);
    if let Some(most) = threads {
        let most = most.get() as u64;
        shares.grain = (count / 64 / most).max(1);
        shares.run(most, setting, may, own_work, others);
        return Ok(shares.done());
    }
    let (mut end_of_done, mut step) = (0, (count / 64).max(1));
    let start = Instant::now();
    while end_of_done < count {
        let end = end_of_done.saturating_add(step).min(count);
        let flow = own_work(end_of_done..end, &shares);
        end_of_done = end;
        if flow.is_break() {
            break;
        }
        let (elapsed, rest) = (start.elapsed().as_nanos(), count - end_of_done);
        // The first parts may be the fastest ones, so the time is taken again.
        step = end_of_done.saturating_mul(3);
        if elapsed * u128::from(rest) > WORTHWHILE * u128::from(end_of_done) {
            shares.next = AtomicU64::new(end_of_done);
            shares.grain = (u128::from(end_of_done) * GRAIN / elapsed).max(1) as u64;
            shares.run(u64::MAX, setting, may, own_work, others);
            return Ok(shares.done());
        }
    }
    Ok(end_of_done)
}

/// Parts of work that threads take.
#[derive(Debug)]
pub struct Shares {
    next: AtomicU64,
    end: AtomicU64,
    /// The least number that a thread takes.
    grain: u64,
    threads: u64,
    /// `None` while the calling thread works alone.
    crew: Option<Arc<Crew>>,
}

impl Shares {
    const fn new(count: u64) -> Self {
        Self { next: AtomicU64::new(0), end: AtomicU64::new(count), grain: 1, threads: 1, crew: None }
    }

    /// The next parts: fewer towards the end, so that all threads end together. Waits while the
    /// calling thread wants to be alone.
    pub fn take(&self) -> Option<Range<u64>> {
        if let Some(crew) = &self.crew {
            crew.wait_if_asked();
        }
        let (end, threads) = (self.end.load(Ordering::Relaxed), self.threads);
        let behind = |from: u64| {
            let rest = end.saturating_sub(from);
            (rest > 0).then(|| from + (rest / (2 * threads)).max(self.grain).min(rest))
        };
        // Only the numbers are exchanged here; the pool orders all other memory.
        let from = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, behind).ok()?;
        Some(from..behind(from)?)
    }

    /// Runs what this thread takes until nothing is left.
    pub fn for_each(&self, mut run: impl FnMut(Range<u64>)) {
        while let Some(parts) = self.take() {
            run(parts);
        }
    }

    /// Gives out nothing more.
    pub fn close(&self) {
        self.end.store(0, Ordering::Relaxed);
    }

    /// For other threads in the middle of a part: waits while the calling thread wants to be
    /// alone. False once the work has ended early.
    pub fn may_continue(&self) -> bool {
        if let Some(crew) = &self.crew {
            crew.wait_if_asked();
        }
        self.end.load(Ordering::Relaxed) != 0
    }

    /// For the calling thread: runs `work` while no other thread runs parts. Each of them ends its
    /// share first, or asks whether it [may continue](Self::may_continue). `work` may fork the
    /// process: the child has this thread alone, and [lacks](Self::is_forked) the others' parts.
    pub fn while_others_wait<R>(&self, work: impl FnOnce() -> R) -> R {
        match &self.crew {
            Some(crew) => crew.stop_during(work),
            None => work(),
        }
    }

    /// Whether this process is a child that was forked during the work, where parts that other
    /// threads had taken stay undone.
    pub fn is_forked(&self) -> bool {
        self.crew.as_ref().is_some_and(|crew| crew.is_forked())
    }

    /// The number of the first part that nobody took.
    fn done(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// Runs all parts, on at most so many threads.
    fn run(
        &mut self,
        most: u64,
        setting: Option<NonZeroUsize>,
        may: impl FnOnce() -> bool,
        mut own_work: impl FnMut(Range<u64>, &Self) -> ControlFlow<()>,
        others: impl Fn(&Self) + Sync,
    ) {
        let (next, end) = (self.next.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed));
        let useful = ((end - next) / self.grain).min(most);
        let pool = if useful <= 1 || is_alone(setting) || !may() { None } else { pool(setting) };
        let pool = pool.filter(|(_, size)| *size > 1);
        let crew = pool.map(|_| Arc::new(Crew::new()));
        if let Some((_, size)) = pool {
            self.threads = useful.min(size as u64);
        }
        self.crew.clone_from(&crew);
        let shares = &*self;
        let mut own = || {
            while let Some(parts) = shares.take() {
                if own_work(parts, shares).is_break() {
                    return shares.close();
                }
            }
        };
        match (pool, &crew) {
            (Some((pool, _)), Some(crew)) => {
                let spawn = |job: Box<dyn FnOnce() + Send>| match pool {
                    Some(pool) => pool.spawn(job),
                    None => rayon_core::spawn(job),
                };
                let help = || {
                    // A share that was begun while the calling thread wants to be alone waits.
                    if shares.may_continue() {
                        others(shares);
                    }
                };
                Crew::work_with(crew, shares.threads - 1, spawn, own, &help);
            }
            _ => own(),
        }
    }
}

const WANTED: &str = "a number of threads from 1 to 4096";

/// The number of threads that [`set`] or `USM_NUM_THREADS` states, if any. Starts nothing.
///
/// # Errors
/// [`ErrorKind::BadSetting`] if `USM_NUM_THREADS` is no number from 1 to [`MOST`].
pub fn stated() -> Result<Option<NonZeroUsize>> {
    let mut setting = STATED.load(Ordering::Relaxed);
    if setting == UNREAD {
        let value = match std::env::var_os(VARIABLE).as_deref().map(std::ffi::OsStr::to_str) {
            None | Some(Some("")) => NONE,
            Some(text) => match text.and_then(|text| text.trim().parse::<usize>().ok()) {
                Some(number @ 1..=MOST) => number,
                _ => BAD,
            },
        };
        // A number that another thread has set meanwhile stays.
        let order = Ordering::Relaxed;
        setting = STATED.compare_exchange(UNREAD, value, order, order).map_or_else(|set| set, |_| value);
    }
    match setting {
        BAD => Err(ErrorKind::BadSetting { name: VARIABLE, wanted: WANTED }.into()),
        NONE => Ok(None),
        number => Ok(NonZeroUsize::new(number)),
    }
}

/// Whether the calling thread works alone, for a reason that needs no pool.
fn is_alone(setting: Option<NonZeroUsize>) -> bool {
    // If a thread of the pool waited here, it would run other parts of the program's own work
    // meanwhile, which may wait for the memory of this one.
    setting.is_some_and(|setting| setting.get() == 1) || rayon_core::current_thread_index().is_some()
}

/// The pool, [`None`] for rayon's own, and the number of threads to use of it.
fn pool(setting: Option<NonZeroUsize>) -> Option<(Option<&'static ThreadPool>, usize)> {
    // An error with a source says that there are no threads, others that the pool exists.
    let make = || {
        let result =
            ThreadPoolBuilder::new().num_threads(setting.map_or(0, NonZeroUsize::get)).build_global();
        let fine = result.err().is_none_or(|error| error.source().is_none());
        fine.then(|| Pool { process: std::process::id(), size: rayon_core::current_num_threads() })
    };
    let pool = POOL.get_or_refuse(make).ok()?.as_ref()?;
    // The threads of the pool are not in a child that the process forked, nor is the one that was
    // starting them.
    if pool.process != std::process::id() {
        return None;
    }
    match setting.map(|setting| setting.get().min(rayon_core::max_num_threads())) {
        Some(setting) if setting > pool.size => Some(larger(setting, pool.size)),
        Some(setting) => Some((None, setting)),
        None => Some((None, pool.size)),
    }
}

/// A pool with at least so many threads; without memory for them, rayon's.
fn larger(least: usize, size: usize) -> (Option<&'static ThreadPool>, usize) {
    loop {
        let pointer = LARGER.load(Ordering::Acquire);
        // SAFETY: null, or from a box that is never freed.
        if let Some(pool) = unsafe { pointer.as_ref() }.filter(|pool| pool.current_num_threads() >= least) {
            return (Some(pool), least);
        }
        let Ok(new_pool) = ThreadPoolBuilder::new().num_threads(least).build() else { return (None, size) };
        let new_pool = Box::into_raw(Box::new(new_pool));
        let order = (Ordering::AcqRel, Ordering::Acquire);
        if LARGER.compare_exchange(pointer, new_pool, order.0, order.1).is_err() {
            // SAFETY: from the box above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(new_pool) });
        }
    }
}
