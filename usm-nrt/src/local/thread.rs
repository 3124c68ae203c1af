//! The data of a thread, from its first block to its end.

use alloc::boxed::Box;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use std::thread_local;

use usm_core::per_thread::{Claim, Claims};

use super::cache::Cache;
use super::destructor_queue::DestructorQueue;
use super::shelf::Shelf;
use super::{cache_default, thread_slot};
use crate::block::{self, FreeBlock};
use crate::counters::{Counters, Event};
use crate::fallible::try_into_raw;
use crate::meminfo::MemInfo;
use crate::system;

/// The counters of all threads.
static SHARDS: Claims<Counters> = Claims::new();
/// The counters of threads that have already given up their own: of destructors that run late at a
/// thread's end.
static LATE_COUNTERS: Counters = Counters::new();

/// Lies on the heap, so that the thread-local variable is one pointer: a C library gets variables
/// at fixed places only while they are small.
pub(super) struct Local {
    cache: Cache,
    destructors: DestructorQueue,
    /// `None` until the thread counts an event.
    shard: Cell<Option<&'static Claim<Counters>>>,
    /// `None` until the thread needs a block of a slab.
    shelf: Cell<Option<&'static Claim<Shelf>>>,
}

thread_local! {
    static EXIT: Exit = const { Exit };
}

/// Frees the thread's data at its end.
struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        let local = thread_slot::find().cast_mut();
        thread_slot::set(ptr::null());
        if local.is_null() {
            return;
        }
        // SAFETY: made by `open` on this thread. The pointer to it is cleared, so this is its last
        // use.
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

/// The calling thread's data, if it has any.
#[inline(always)]
fn current<'a>() -> Option<&'a Local> {
    // SAFETY: null, or made by `open` on this thread and not yet freed by its exit guard. No caller
    // keeps the reference, and no guard runs meanwhile.
    unsafe { thread_slot::get().as_ref() }
}

/// [`current`] with a call to find the data. A thread without data gets them, and registers their
/// clean-up. `None` at the end of a thread's life, and without memory.
#[cold]
#[inline(never)]
fn open<'a>() -> Option<&'a Local> {
    // SAFETY: as in `current`.
    if let Some(local) = unsafe { thread_slot::find().as_ref() } {
        return Some(local);
    }
    EXIT.try_with(|_| ()).ok()?;
    let new = try_into_raw(Local {
        cache: Cache::new(),
        destructors: DestructorQueue::new(),
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
        self.shard.set(SHARDS.claim(Counters::new, try_into_raw));
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

/// Counts events on this thread.
#[inline(always)]
pub(crate) fn count<const N: usize>(events: [Event; N]) {
    match current().and_then(Local::shard) {
        Some(shard) => events.into_iter().for_each(|event| shard.add_owned(event)),
        None => count_late(events),
    }
}

/// [`count`] for a thread's first event, and after its end.
#[cold]
#[inline(never)]
fn count_late<const N: usize>(events: [Event; N]) {
    match open().and_then(Local::shard) {
        Some(shard) => events.into_iter().for_each(|event| shard.add_owned(event)),
        None => events.into_iter().for_each(|event| LATE_COUNTERS.add_shared(event)),
    }
}

/// Calls `visit` with the counters of each thread.
pub(crate) fn for_each_counters(mut visit: impl FnMut(&Counters)) {
    visit(&LATE_COUNTERS);
    SHARDS.iter().for_each(|shard| visit(shard));
}

/// A block of `class` that this thread kept, with an unchanged prefix. Counts the events if
/// `counts`. `None` also if finding the thread's data takes a call.
#[inline(always)]
pub(crate) fn take<const N: usize>(class: u8, counts: bool, events: [Event; N]) -> Option<FreeBlock> {
    let local = current()?;
    if !counts {
        return local.cache.take(class);
    }
    let shard = local.shard.get()?;
    let block = local.cache.take(class)?;
    events.into_iter().for_each(|event| shard.add_owned(event));
    Some(block)
}

/// Keeps a block of `class`, and counts the events if `counts`. If this thread keeps no blocks, or
/// finding its data takes a call, returns the block and does nothing.
#[inline(always)]
pub(crate) fn put<const N: usize>(
    class: u8,
    block: FreeBlock,
    counts: bool,
    events: [Event; N],
) -> Option<FreeBlock> {
    let Some(local) = current() else { return Some(block) };
    if counts {
        let Some(shard) = local.shard.get() else { return Some(block) };
        events.into_iter().for_each(|event| shard.add_owned(event));
    }
    local.cache.put(class, block);
    None
}

/// The cache of this thread, if it may keep blocks. The first call of a thread prepares it; the
/// first call of the process decides the default.
#[inline]
pub(crate) fn cache_if_enabled<'a>() -> Option<&'a Cache> {
    if !cache_default::is_kept() {
        return None;
    }
    current().or_else(open_local).map(|local| &local.cache)
}

/// The shelf of this thread, if it may keep blocks of an installed allocator.
#[inline]
pub(crate) fn shelf() -> Option<&'static Shelf> {
    if !cache_default::is_kept() {
        return None;
    }
    current().or_else(open_local)?.shelf()
}

#[cold]
fn open_local<'a>() -> Option<&'a Local> {
    let _ = open()?;
    let local = current();
    if local.is_none() {
        // In this process finding a thread's data takes a call, twice for each block. That is
        // slower than the allocator (measured: 22 instead of 10 ns a block).
        system::switch_thread_cache(false);
    }
    local
}

/// Begins the destructor of a block. False if the block waits until other destructors return.
#[inline]
pub(crate) fn begin_destructor(mi: NonNull<MemInfo>) -> bool {
    current().or_else(open).is_none_or(|local| local.destructors.begin(mi))
}

/// Ends a destructor. If no other runs, begins that of a waiting block and returns the block.
#[inline]
pub(crate) fn end_destructor() -> Option<NonNull<MemInfo>> {
    current().or_else(open)?.destructors.end()
}

/// Frees all blocks that the calling thread keeps.
pub fn drain_thread_cache() {
    // SAFETY: as in `current`.
    if let Some(local) = unsafe { thread_slot::find().as_ref() } {
        local.cache.drain();
        if let Some(shelf) = local.shelf.get() {
            block::give_back(shelf.clear());
        }
    }
}
