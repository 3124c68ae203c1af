//! Counters and block caches per thread.

use alloc::alloc::alloc;
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::thread_local;

use super::{CLASSES, class_size};
use crate::block;
use crate::stats::{Counters, Event};

/// Most bytes that one class of one thread may hold back.
const CLASS_BYTES: usize = 16 * 1024;

/// A thread's counters; never freed, because their sum must survive the thread. A later thread goes on
/// counting where an ended one stopped, so there are as many as there were threads at once.
struct Shard {
    counters: Counters,
    taken: AtomicBool,
    next: *const Shard,
}

// SAFETY: the fields are atomics, except `next`, which is written before the shard is published.
unsafe impl Sync for Shard {}

/// All shards, newest first; only ever grows.
static SHARDS: AtomicPtr<Shard> = AtomicPtr::new(ptr::null_mut());
/// Counts of threads whose own shard is already gone (destructors that run late in a thread's life).
static ORPHANS: Counters = Counters::new();

/// A free block, as long as the cache has it. What the block's owner and late users of it look at stays as it was: the
/// prefix, which the next owner needs anyway, and the reference count, so that a second release is still seen.
#[repr(C)]
struct Node {
    prefix: [usize; PREFIX_WORDS],
    refcount: usize,
    destructor: usize,
    next: *mut Node,
}

const PREFIX_WORDS: usize = block::PREFIX / size_of::<usize>();
const _: () = assert!(size_of::<Node>() <= super::CLASS_STEP);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing to clean up yet.
    Fresh,
    /// The exit guard is registered.
    Active,
    /// The exit guard ran: keep nothing any more.
    Closed,
}

/// The free blocks of one class.
struct Magazine {
    head: Cell<*mut Node>,
    /// How many more may be kept: none before the thread is registered for clean-up and after it, so that the
    /// hot path asks nothing else.
    room: Cell<u32>,
}

struct Local {
    phase: Cell<Phase>,
    shard: Cell<*const Shard>,
    magazines: [Magazine; CLASSES + 1],
}

thread_local! {
    // No destructor here, so that access stays one address computation and works until the thread's last
    // instruction; `EXIT` cleans up.
    static LOCAL: Local = const {
        Local {
            phase: Cell::new(Phase::Fresh),
            shard: Cell::new(ptr::null()),
            magazines: [const { Magazine { head: Cell::new(ptr::null_mut()), room: Cell::new(0) } }; CLASSES + 1],
        }
    };
    static EXIT: Exit = const { Exit };
}

struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            local.phase.set(Phase::Closed);
            local.drain();
            // SAFETY: shards are never freed.
            if let Some(shard) = unsafe { local.shard.replace(ptr::null()).as_ref() } {
                shard.taken.store(false, Ordering::Release);
            }
        });
    }
}

impl Local {
    /// Whether this thread may still keep things; registers the clean-up the first time.
    #[inline]
    fn is_open(&self) -> bool {
        match self.phase.get() {
            Phase::Active => true,
            Phase::Fresh => self.open(),
            Phase::Closed => false,
        }
    }

    #[cold]
    fn open(&self) -> bool {
        let open = EXIT.try_with(|_| ()).is_ok();
        self.phase.set(if open { Phase::Active } else { Phase::Closed });
        self.make_room();
        open
    }

    #[inline]
    fn shard(&self) -> Option<&'static Shard> {
        // SAFETY: shards are never freed.
        match unsafe { self.shard.get().as_ref() } {
            Some(shard) => Some(shard),
            None => self.claim_shard(),
        }
    }

    #[cold]
    fn claim_shard(&self) -> Option<&'static Shard> {
        if !self.is_open() {
            return None;
        }
        let mut next = SHARDS.load(Ordering::Acquire);
        // SAFETY: shards are never freed; the list was published by the release below.
        while let Some(shard) = unsafe { next.as_ref() } {
            if !shard.taken.swap(true, Ordering::Acquire) {
                self.shard.set(shard);
                return Some(shard);
            }
            next = shard.next.cast_mut();
        }
        // SAFETY: the layout is not empty.
        let new = NonNull::new(unsafe { alloc(Layout::new::<Shard>()) })?.cast::<Shard>();
        let mut head = SHARDS.load(Ordering::Acquire);
        loop {
            let shard = Shard { counters: Counters::new(), taken: AtomicBool::new(true), next: head };
            // SAFETY: fresh memory of that layout, not published yet.
            unsafe { new.write(shard) };
            match SHARDS.compare_exchange(head, new.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break,
                Err(now) => head = now,
            }
        }
        // SAFETY: initialised above, never freed.
        let shard = unsafe { new.as_ref() };
        self.shard.set(shard);
        Some(shard)
    }

    fn drain(&self) {
        for (class, magazine) in self.magazines.iter().enumerate() {
            let mut next = magazine.head.replace(ptr::null_mut());
            while let Some(node) = NonNull::new(next) {
                // SAFETY: a cached block is a node.
                next = unsafe { (*node.as_ptr()).next };
                // SAFETY: the block is of this class, and off the list we own it.
                unsafe { block::release_class(class as u8, node.cast()) };
            }
        }
        self.make_room();
    }

    /// Sets all classes to what an empty cache may keep.
    fn make_room(&self) {
        let open = self.phase.get() == Phase::Active;
        for (class, magazine) in self.magazines.iter().enumerate().skip(1) {
            let blocks = if open { CLASS_BYTES / class_size(class as u8) } else { 0 };
            magazine.room.set(blocks as u32);
        }
    }
}

/// Counts on this thread.
#[inline]
pub(crate) fn count<const N: usize>(events: [Event; N]) {
    LOCAL.with(|local| match local.shard() {
        Some(shard) => events.into_iter().for_each(|event| shard.counters.add_owned(event)),
        None => events.into_iter().for_each(|event| ORPHANS.add_shared(event)),
    });
}

/// Visits the counters of all threads.
pub(crate) fn for_each_counters(mut visit: impl FnMut(&Counters)) {
    visit(&ORPHANS);
    let mut next = SHARDS.load(Ordering::Acquire).cast_const();
    // SAFETY: shards are never freed.
    while let Some(shard) = unsafe { next.as_ref() } {
        visit(&shard.counters);
        next = shard.next;
    }
}

/// A cached block of `class`, with the prefix that it had.
#[inline]
pub(crate) fn take(class: u8) -> Option<NonNull<u8>> {
    LOCAL.with(|local| {
        let magazine = local.magazines.get(usize::from(class))?;
        let node = NonNull::new(magazine.head.get())?;
        // SAFETY: a cached block is a node.
        magazine.head.set(unsafe { (*node.as_ptr()).next });
        magazine.room.set(magazine.room.get() + 1);
        Some(node.cast())
    })
}

/// Keeps a block of `class`; false when there is no room: then [`put_first`] is to be asked.
#[inline]
pub(crate) fn put(class: u8, base: NonNull<u8>) -> bool {
    LOCAL.with(|local| {
        let Some(magazine) = local.magazines.get(usize::from(class)) else {
            return false;
        };
        let room = magazine.room.get();
        if room == 0 {
            return false;
        }
        let node = base.cast::<Node>();
        // SAFETY: the block has at least 64 bytes, aligned to 64, and belongs to us now.
        unsafe { (*node.as_ptr()).next = magazine.head.get() };
        magazine.head.set(node.as_ptr());
        magazine.room.set(room - 1);
        true
    })
}

/// [`put`] of the thread's first block, which finds no room because nothing was prepared; false when the caller must
/// free it.
pub(crate) fn put_first(class: u8, base: NonNull<u8>) -> bool {
    let first = LOCAL.with(|local| local.phase.get() == Phase::Fresh && local.is_open());
    first && put(class, base)
}

/// Frees all blocks that the calling thread holds back.
pub fn drain_thread_cache() {
    LOCAL.with(Local::drain);
}
