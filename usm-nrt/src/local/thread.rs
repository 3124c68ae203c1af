//! What a thread has, from its first block to its end.

use alloc::boxed::Box;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use std::thread_local;

use super::cache::Cache;
use super::nesting::Nesting;
use super::shelf::Shelf;
use super::{cache_default, thread_slot};
use crate::block::{self, Kept};
use crate::claims::{Claim, Claims};
use crate::counters::{Counters, Event};
use crate::fallible::leaked;
use crate::meminfo::MemInfo;
use crate::system;

/// All threads' counters.
static SHARDS: Claims<Counters> = Claims::new();
/// Counts of threads that have already given up their own shard (destructors that run late in a
/// thread's life).
static LATE_COUNTERS: Counters = Counters::new();

/// On the heap, so that a thread-local variable is one pointer: a C library gets its variables at
/// fixed places only while they are small.
pub(super) struct Local {
    cache: Cache,
    nesting: Nesting,
    /// None until something was counted.
    shard: Cell<Option<&'static Claim<Counters>>>,
    /// None until a block of a slab was wanted.
    shelf: Cell<Option<&'static Claim<Shelf>>>,
}

thread_local! {
    static EXIT: Exit = const { Exit };
}

/// Cleans up at the end of a thread that has something.
struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        let local = thread_slot::find().cast_mut();
        thread_slot::set(ptr::null());
        if local.is_null() {
            return;
        }
        // SAFETY: made by `open` on this thread; nobody finds it any more, so this is its end.
        let local = unsafe { Box::from_raw(local) };
        local.cache.drain();
        if let Some(shelf) = local.shelf.get() {
            let left = shelf.clear();
            shelf.give_up();
            block::give_back(left);
        }
        if let Some(shard) = local.shard.get() {
            shard.give_up();
        }
    }
}

/// What the calling thread has, while it has something.
#[inline(always)]
fn current<'a>() -> Option<&'a Local> {
    // SAFETY: null, or what `open` made on this thread and its exit guard has not freed. No caller
    // keeps the reference, and none runs a guard meanwhile.
    unsafe { thread_slot::get().as_ref() }
}

/// [`current`] where it takes a call to find it, and for a thread that has nothing yet: registers
/// its clean-up then. `None` at the end of a thread's life, and without memory.
#[cold]
#[inline(never)]
fn open<'a>() -> Option<&'a Local> {
    // SAFETY: as in `current`.
    if let Some(local) = unsafe { thread_slot::find().as_ref() } {
        return Some(local);
    }
    EXIT.try_with(|_| ()).ok()?;
    let new = leaked(Local {
        cache: Cache::new(),
        nesting: Nesting::new(),
        shard: Cell::new(None),
        shelf: Cell::new(None),
    })?;
    thread_slot::set(new.as_ptr());
    // SAFETY: as in `current`.
    Some(unsafe { new.as_ref() })
}

impl Local {
    #[inline(always)]
    fn shard(&self) -> Option<&'static Claim<Counters>> {
        match self.shard.get() {
            Some(shard) => Some(shard),
            None => self.claim_shard(),
        }
    }

    #[cold]
    #[inline(never)]
    fn claim_shard(&self) -> Option<&'static Claim<Counters>> {
        self.shard.set(SHARDS.claim(Counters::new));
        self.shard.get()
    }

    #[inline(always)]
    fn shelf(&self) -> Option<&'static Shelf> {
        match self.shelf.get() {
            Some(shelf) => Some(shelf),
            None => self.claim_shelf(),
        }
    }

    #[cold]
    #[inline(never)]
    fn claim_shelf(&self) -> Option<&'static Shelf> {
        self.shelf.set(Shelf::claim());
        self.shelf.get().map(|shelf| &**shelf)
    }
}

/// Counts on this thread.
#[inline(always)]
pub(crate) fn count<const N: usize>(events: [Event; N]) {
    match current().and_then(Local::shard) {
        Some(shard) => events.into_iter().for_each(|event| shard.add_owned(event)),
        None => count_late(events),
    }
}

/// [`count`] for the first time on a thread, or after its end.
#[cold]
#[inline(never)]
fn count_late<const N: usize>(events: [Event; N]) {
    match open().and_then(Local::shard) {
        Some(shard) => events.into_iter().for_each(|event| shard.add_owned(event)),
        None => events.into_iter().for_each(|event| LATE_COUNTERS.add_shared(event)),
    }
}

/// Visits the counters of all threads.
pub(crate) fn for_each_counters(mut visit: impl FnMut(&Counters)) {
    visit(&LATE_COUNTERS);
    SHARDS.iter().for_each(|shard| visit(shard));
}

/// A block of `class` that this thread kept, with the prefix that it had, and the events counted if
/// `counted`; `None` also where it takes a call to find them.
#[inline(always)]
pub(crate) fn take<const N: usize>(class: u8, counted: bool, events: [Event; N]) -> Option<Kept> {
    let local = current()?;
    if !counted {
        return local.cache.take(class);
    }
    let shard = local.shard.get()?;
    let kept = local.cache.take(class)?;
    events.into_iter().for_each(|event| shard.add_owned(event));
    Some(kept)
}

/// Keeps a block of `class`, and counts the events if `counted`; gives it back, and nothing is
/// done, when this thread keeps nothing, and where it takes a call to find out.
#[inline(always)]
pub(crate) fn put<const N: usize>(class: u8, kept: Kept, counted: bool, events: [Event; N]) -> Option<Kept> {
    let Some(local) = current() else { return Some(kept) };
    if counted {
        let Some(shard) = local.shard.get() else { return Some(kept) };
        events.into_iter().for_each(|event| shard.add_owned(event));
    }
    local.cache.put(class, kept);
    None
}

/// What this thread keeps, if it may keep something; prepares it the first time, and the process
/// the very first time.
#[inline]
pub(crate) fn keeper<'a>() -> Option<&'a Cache> {
    if !cache_default::is_kept() {
        return None;
    }
    current().or_else(prepared).map(|local| &local.cache)
}

/// What this thread keeps of an installed allocator, if it may keep something.
#[inline]
pub(crate) fn shelf() -> Option<&'static Shelf> {
    if !cache_default::is_kept() {
        return None;
    }
    current().or_else(prepared)?.shelf()
}

#[cold]
fn prepared<'a>() -> Option<&'a Local> {
    let _ = open()?;
    let local = current();
    if local.is_none() {
        // It takes a call to find a thread's things in this process, twice a block: longer than the
        // allocator takes (measured: 22 instead of 10 ns a block).
        system::switch_thread_cache(false);
    }
    local
}

/// Begins the destructor of a block; false when the block waits for other destructors to return.
#[inline]
pub(crate) fn begin_destructor(mi: NonNull<MemInfo>) -> bool {
    current().or_else(open).is_none_or(|local| local.nesting.begin(mi))
}

/// Ends a destructor; then begins that of a block that waited, if no other runs.
#[inline]
pub(crate) fn end_destructor() -> Option<NonNull<MemInfo>> {
    current().or_else(open)?.nesting.end()
}

/// Frees all blocks that the calling thread holds back.
pub fn drain_thread_cache() {
    // SAFETY: as in `current`.
    if let Some(local) = unsafe { thread_slot::find().as_ref() } {
        local.cache.drain();
        if let Some(shelf) = local.shelf.get() {
            block::give_back(shelf.clear());
        }
    }
}
