//! Counters of which each thread writes its own.

use core::fmt;

use crate::sync::{AtomicUsize, Ordering};

/// The counted events; the value is the index in [`Counters`].
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A block of memory was allocated.
    Alloc = 0,
    /// A block of memory was freed.
    Free = 1,
    /// A header was initialised.
    MiAlloc = 2,
    /// A header was destroyed.
    MiFree = 3,
}

/// A set of four counters.
pub struct Counters([AtomicUsize; 4]);

impl Counters {
    /// All counters at zero.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self([const { AtomicUsize::new(0) }; 4])
    }

    /// All counters at zero.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self([(); 4].map(|()| AtomicUsize::new(0)))
    }

    /// Counts an event; any thread may write.
    pub fn add_shared(&self, event: Event) {
        self.0[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an event; only this thread writes.
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
