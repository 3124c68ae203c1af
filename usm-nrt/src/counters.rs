//! Counters that each thread writes alone, and the list of all of them.

use core::fmt;
#[cfg(feature = "std")]
use core::{alloc::Layout, ptr, ptr::NonNull};

#[cfg(feature = "std")]
use crate::sync::{AtomicBool, AtomicPtr};
use crate::sync::{AtomicUsize, Ordering};

/// What is counted; the value is the index in [`Counters`].
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A block of memory was made.
    Alloc = 0,
    /// One was freed.
    Free = 1,
    /// A header was initialised.
    MiAlloc = 2,
    /// One was destroyed.
    MiFree = 3,
}

/// One set of counters.
pub struct Counters([AtomicUsize; 4]);

impl Counters {
    /// All zero.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; 4])
    }

    /// All zero.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self([(); 4].map(|()| AtomicUsize::new(0)))
    }

    /// Counts when any thread may write.
    pub fn add_shared(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts when only this thread writes.
    #[cfg(feature = "std")]
    #[inline]
    pub fn add_owned(&self, event: Event) {
        let counter = &self.0[event as usize];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// Adds these counts to `sum`.
    pub fn add_to(&self, sum: &mut [usize; 4]) {
        for (sum, counter) in sum.iter_mut().zip(&self.0) {
            *sum = sum.wrapping_add(counter.load(Ordering::Relaxed));
        }
    }
}

impl fmt::Debug for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut sum = [0; 4];
        self.add_to(&mut sum);
        f.debug_tuple("Counters").field(&sum).finish()
    }
}

/// A thread's counters; never freed, because their sum must survive the thread. A later thread goes on
/// counting where an ended one stopped, so there are as many as there were threads at once.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct Shard {
    /// Written by the thread that has claimed them.
    pub counters: Counters,
    taken: AtomicBool,
    next: *const Shard,
}

// SAFETY: the fields are atomics, except `next`, which is written before the shard is published.
#[cfg(feature = "std")]
unsafe impl Sync for Shard {}

#[cfg(feature = "std")]
impl Shard {
    /// Leaves the counters to a later thread, which sees all that this one has counted.
    pub fn give_up(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

/// All shards, newest first; only ever grows.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct Shards(AtomicPtr<Shard>);

#[cfg(feature = "std")]
impl Shards {
    /// None yet.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// None yet.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Counters for the calling thread alone, until it gives them up; `None` without memory.
    pub fn claim(&self) -> Option<&'static Shard> {
        let mut next = self.0.load(Ordering::Acquire);
        // SAFETY: shards are never freed; the list was published by the release below.
        while let Some(shard) = unsafe { next.as_ref() } {
            if !shard.taken.swap(true, Ordering::Acquire) {
                return Some(shard);
            }
            next = shard.next.cast_mut();
        }
        // SAFETY: the layout is not empty.
        let new = NonNull::new(unsafe { alloc::alloc::alloc(Layout::new::<Shard>()) })?.cast::<Shard>();
        let shard = Shard { counters: Counters::new(), taken: AtomicBool::new(true), next: ptr::null() };
        // SAFETY: fresh memory of that layout.
        unsafe { new.write(shard) };
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: not published yet.
            unsafe { (*new.as_ptr()).next = head };
            match self.0.compare_exchange(head, new.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: initialised above, never freed.
                Ok(_) => return Some(unsafe { new.as_ref() }),
                Err(now) => head = now,
            }
        }
    }

    /// Visits the counters of all threads.
    pub fn for_each(&self, mut visit: impl FnMut(&Counters)) {
        let mut next = self.0.load(Ordering::Acquire).cast_const();
        // SAFETY: shards are never freed.
        while let Some(shard) = unsafe { next.as_ref() } {
            visit(&shard.counters);
            next = shard.next;
        }
    }
}
