//! The caches of threads: a thread allocates and frees without the pool's lock, as long as its own
//! cache has the block or the room.
//!
//! A thread has one cache for each of the [`CACHES`] residues of a pool's number, and a pool that
//! needs one takes it from the pool that had it. The owner holds the cache's turn while it uses it.
//! Any other thread that wants the blocks closes the turn first: before a pool grows, refuses, or
//! ends.
//!
//! Nothing here is freed: a later thread reuses the caches of an ended one. So there are as many as
//! there were threads at once.

use alloc::boxed::Box;
use alloc::sync::{Arc, Weak};
use core::cell::Cell;
use core::ptr::NonNull;
use core::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::thread_local;

use usm_core::per_thread::{self, Claim, Claims, Turn};

use super::bins::{Bins, Flow};
use super::table::Num64;
use crate::sync::atomics::{AtomicBool, fence};
use crate::sync::{Mutex, yield_now};

/// Caches of a thread.
const CACHES: usize = 16;

/// A pool, as its caches know it.
pub(super) trait Keeper: Send + Sync {
    /// Takes the blocks and the sums of a cache whose turn the caller holds, and ends the pool's
    /// use of it.
    fn take_leave(&self, cache: &Cache);
}

/// One cache of a thread. Lines of their own: its thread writes them all the time.
#[repr(align(128))]
pub(super) struct Cache {
    turn: Turn,
    /// The number of the pool whose blocks are here; 0 of none.
    pool: Num64,
    /// Whether another thread wanted the blocks and could not take them.
    is_wanted: AtomicBool,
    pub(super) flow: Flow,
    /// Numbers for allocations: the next one, and one past the last.
    pub(super) ids: (Num64, Num64),
    bins: spin::Once<Box<Bins>>,
    /// Stands for the lists in models, which fail if two uses are not ordered.
    #[cfg(loom)]
    lists: loom::cell::UnsafeCell<()>,
    keeper: Mutex<Option<Weak<dyn Keeper>>>,
}

/// The caches of one thread.
struct Local([Cache; CACHES]);

// SAFETY: of loom's cell, which fails a model where two uses are not ordered.
#[cfg(loom)]
unsafe impl Sync for Cache {}

#[cfg(not(loom))]
static LOCALS: Claims<Local> = Claims::new();

/// Held by a thread that closes other threads' caches, for a few instructions of each. No fork
/// happens meanwhile.
#[cfg(not(loom))]
static CLOSING: Mutex<()> = Mutex::new(());

#[cfg(loom)]
loom::lazy_static! {
    static ref LOCALS: Claims<Local> = Claims::new();
    static ref CLOSING: Mutex<()> = Mutex::new(());
}

fn closing<R>(call: impl FnOnce() -> R) -> R {
    usm_core::ends::delay_forks(|| {
        let _closing = CLOSING.lock();
        call()
    })
}

/// For tests: a system without a barrier in all threads.
static NO_BARRIER: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);

/// For tests.
pub fn set_no_barrier(value: bool) {
    NO_BARRIER.store(value, Ordering::Relaxed);
}

#[cfg(not(loom))]
fn barrier() -> bool {
    !NO_BARRIER.load(Ordering::Relaxed) && per_thread::in_all_threads()
}

/// In models the owner has the other half.
#[cfg(loom)]
fn barrier() -> bool {
    fence(Ordering::SeqCst);
    !NO_BARRIER.load(Ordering::Relaxed)
}

#[cfg(not(loom))]
thread_local! {
    static HERE: Cell<Option<&'static Claim<Local>>> = const { Cell::new(None) };
    static EXIT: Exit = const { Exit() };
}

#[cfg(loom)]
loom::thread_local! {
    static HERE: Cell<Option<&'static Claim<Local>>> = Cell::new(None);
    static EXIT: Exit = Exit(Cell::new(None));
}

/// The caches of the calling thread.
#[inline(always)]
fn find_local() -> Option<&'static Claim<Local>> {
    #[cfg(loom)]
    return HERE.try_with(Cell::get).ok().flatten();
    #[cfg(not(loom))]
    HERE.get()
}

fn set_local(local: Option<&'static Claim<Local>>) {
    // A model's thread may have lost it at its end.
    let _ = HERE.try_with(|cell| cell.set(local));
}

/// Returns the blocks of a thread at its end.
struct Exit(
    /// A model's thread has lost its other values by then.
    #[cfg(loom)]
    Cell<Option<&'static Claim<Local>>>,
);

impl Drop for Exit {
    fn drop(&mut self) {
        #[cfg(loom)]
        let local = self.0.take();
        #[cfg(not(loom))]
        let local = find_local();
        let Some(local) = local else { return };
        set_local(None);
        local.0.iter().for_each(leave);
        local.give_up();
    }
}

/// A number for a new pool. Pools that follow each other do not share caches.
pub(super) fn new_pool() -> u64 {
    #[cfg(not(loom))]
    static NEXT: Num64 = Num64::new(1);
    // Each run of a model has the same numbers.
    #[cfg(loom)]
    loom::lazy_static! {
        static ref NEXT: Num64 = Num64::new(1);
    }
    static PREPARED: core::sync::atomic::AtomicBool = core::sync::atomic::AtomicBool::new(false);
    if !PREPARED.swap(true, Ordering::Relaxed) {
        // Without the barrier each thread returns its blocks by itself.
        let _ = per_thread::prepare();
    }
    NEXT.add_shared(1)
}

impl Cache {
    fn new() -> Self {
        Self {
            turn: Turn::new(),
            pool: Num64::new(0),
            is_wanted: AtomicBool::new(false),
            flow: Flow::new(),
            ids: (Num64::new(0), Num64::new(0)),
            bins: spin::Once::new(),
            #[cfg(loom)]
            lists: loom::cell::UnsafeCell::new(()),
            keeper: Mutex::new(None),
        }
    }

    /// The lists, which a cache in use has.
    #[inline(always)]
    pub(super) fn bins(&self) -> &Bins {
        match self.bins.get() {
            Some(bins) => bins,
            None => self.bins.call_once(|| Box::new(Bins::new())),
        }
    }

    /// Whether the cache is this pool's.
    #[inline(always)]
    pub(super) fn is_of(&self, pool: u64) -> bool {
        self.pool.get() == pool
    }

    /// Whether the thread frees what other threads allocate.
    pub(super) fn frees_more(&self) -> bool {
        self.flow.frees.get() > self.flow.allocations.get()
    }

    /// Ends a pool's use of the cache: the caller holds the turn, and took blocks and sums.
    pub(super) fn clear(&self) {
        self.pool.set(0);
        self.flow.clear();
        self.ids.1.set(0);
        self.ids.0.set(0);
    }

    /// Begins the owner's use of the lists. False if another thread wants them; otherwise
    /// [`end`](Self::end) follows, before the owner begins again or waits for anything.
    #[inline(always)]
    pub(super) fn begin(&self) -> bool {
        let is_open = self.turn.enter();
        #[cfg(loom)]
        if is_open {
            self.lists.with_mut(|_| ());
        }
        is_open
    }

    #[inline(always)]
    pub(super) fn end(&self) {
        self.turn.leave();
    }

    /// Runs a few instructions with the turn; `None` if another thread wants the cache.
    pub(super) fn enter<R>(&self, call: impl FnOnce(&Bins) -> R) -> Option<R> {
        self.begin().then(|| {
            let result = call(self.bins());
            self.end();
            result
        })
    }

    /// The number of an allocation. Threads take some numbers at once.
    #[inline(always)]
    pub(super) fn next_id(&self, ids: &Num64) -> u64 {
        const AT_ONCE: u64 = 64;
        let (next, end) = &self.ids;
        if next.get() == end.get() {
            next.set(ids.add_shared(AT_ONCE));
            end.set(next.get() + AT_ONCE);
        }
        next.add(1);
        next.get() - 1
    }
}

/// The calling thread's cache of a pool, if it has one.
#[inline(always)]
pub(super) fn find(pool: u64) -> Option<&'static Cache> {
    let cache = &find_local()?.0[pool as usize % CACHES];
    cache.is_of(pool).then_some(cache)
}

/// The same; a thread without one gets it. `None` at the end of a thread's life.
#[cold]
pub(super) fn open(pool: u64, keeper: &Arc<impl Keeper + 'static>) -> Option<&'static Cache> {
    if let Some(cache) = find(pool) {
        answer(cache);
        return Some(cache);
    }
    let local = match find_local() {
        Some(local) => local,
        None => {
            EXIT.try_with(|_| ()).ok()?;
            let make = || Local(core::array::from_fn(|_| Cache::new()));
            let place = |claim| Some(NonNull::from(Box::leak(Box::new(claim))));
            let local = LOCALS.claim(make, place)?;
            set_local(Some(local));
            #[cfg(loom)]
            EXIT.with(|exit| exit.0.set(Some(local)));
            local
        }
    };
    let cache = &local.0[pool as usize % CACHES];
    leave(cache);
    let keeper = Arc::downgrade(keeper);
    *cache.keeper.lock() = Some(keeper);
    let _ = cache.bins();
    cache.pool.set(pool);
    // Whoever closes the pool later sees this cache, or this thread sees the pool closed.
    fence(Ordering::SeqCst);
    Some(cache)
}

/// Returns the blocks of a cache of the calling thread, whatever pool they are of.
fn leave(cache: &Cache) {
    answer(cache);
    let keeper = cache.keeper.lock().take();
    if cache.pool.get() == 0 {
        return;
    }
    // Blocks keep their pool alive: without one there are none here.
    let keeper = keeper.and_then(|keeper| keeper.upgrade());
    let mut is_left = false;
    while !is_left {
        is_left = cache
            .enter(|_| match &keeper {
                Some(keeper) => keeper.take_leave(cache),
                None => cache.clear(),
            })
            .is_some();
        if !is_left {
            // Another thread takes the blocks, in some instructions.
            yield_now();
            answer(cache);
        }
    }
}

/// Gives back the blocks of the calling thread's cache of a closed pool, which the thread that
/// closed it could not take.
#[cold]
pub(super) fn leave_closed(pool: u64) {
    if let Some(cache) = find(pool).filter(|cache| cache.is_wanted.load(Ordering::Acquire)) {
        leave(cache);
    }
}

/// Opens a cache of the calling thread that another thread wanted and could not take. The blocks
/// are the caller's to return.
fn answer(cache: &Cache) {
    if cache.is_wanted.load(Ordering::Acquire) {
        closing(|| {
            if cache.is_wanted.swap(false, Ordering::Relaxed) {
                cache.turn.open();
            }
        });
    }
}

/// Takes from the caches of a pool, each with its turn held. Those that cannot be taken are left
/// closed: their threads return the blocks themselves, at their next call.
pub(super) fn take_all(pool: u64, mut take: impl FnMut(&Cache)) {
    if let Some(own) = find(pool) {
        answer(own);
        let _ = own.enter(|_| take(own));
    }
    let place = pool as usize % CACHES;
    let own = find_local().map(|local| core::ptr::from_ref(&**local));
    closing(|| {
        let is_other = |local: &Local| own != Some(core::ptr::from_ref(local)) && local.0[place].is_of(pool);
        let mut visits = alloc::vec::Vec::new();
        let took_all = per_thread::take_all(
            &LOCALS,
            is_other,
            |local: &Local| &local.0[place].turn,
            barrier,
            |local| {
                // One that an earlier call left closed may be another pool's.
                if local.0[place].is_of(pool) {
                    #[cfg(loom)]
                    local.0[place].lists.with_mut(|_| ());
                    take(&local.0[place]);
                }
                visits.push(core::ptr::from_ref(local));
            },
        );
        if !took_all {
            for local in LOCALS.iter().filter(|local| is_other(local)) {
                if !visits.contains(&core::ptr::from_ref(&**local)) {
                    local.0[place].turn.close();
                    local.0[place].is_wanted.store(true, Ordering::Release);
                }
            }
        }
    });
}

/// Calls `visit` with the caches of a pool, while their threads may use them.
pub(super) fn for_each(pool: u64, visit: impl FnMut(&'static Cache)) {
    let place = pool as usize % CACHES;
    let all = LOCALS.iter().map(|local| {
        let local: &'static Local = local;
        &local.0[place]
    });
    all.filter(|cache| cache.is_of(pool)).for_each(visit);
}
