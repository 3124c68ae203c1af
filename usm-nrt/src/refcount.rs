//! The atomic reference count.

use crate::sync::{AtomicUsize, Ordering, fence};

/// Largest counted value; above it the count is pinned (see [`RefCount`]).
pub const MAX_REFCOUNT: usize = isize::MAX as usize;

/// The value of a pinned count. It is equally far from zero and from wrapping, so no later run of
/// acquires and releases, checked or inlined by a compiler, brings it back to a plausible value.
const PINNED: usize = MAX_REFCOUNT + MAX_REFCOUNT / 2;

/// A thread-safe reference count with the memory layout of `std::atomic_size_t`.
///
/// The orderings are those of `Arc`. An increment is relaxed, because its caller already owns a
/// reference. A decrement releases, and the last one acquires the work of all others.
///
/// Misuse never frees twice. A count that overflows, is acquired at zero or is released at zero
/// becomes *pinned*: it never reaches zero again. Its block is leaked instead of freed while in
/// use. [`RefCount::is_pinned`] reports it.
#[derive(Debug)]
#[repr(transparent)]
pub struct RefCount(AtomicUsize);

impl RefCount {
    /// A count of one reference, which the caller owns.
    pub fn one() -> Self {
        Self(AtomicUsize::new(1))
    }

    /// The current count; 0 while the last release runs the destructor, and afterwards.
    #[inline]
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether misuse was detected and the block is never freed.
    #[inline]
    pub fn is_pinned(&self) -> bool {
        self.get() > MAX_REFCOUNT
    }

    /// Adds a reference. False if that is impossible; the count is then pinned.
    #[inline]
    pub fn acquire(&self) -> bool {
        let old = self.0.fetch_add(1, Ordering::Relaxed);
        // One comparison checks both ends: 0 wraps to the top.
        if old.wrapping_sub(1) >= MAX_REFCOUNT {
            self.pin();
            return false;
        }
        true
    }

    /// Releases a reference.
    #[inline]
    pub fn release(&self) -> Release {
        // A count of one cannot change here: the caller owns the reference, and there are no weak
        // references. The acquire load pairs with the release of earlier owners. So a reference
        // that was never shared needs no atomic instruction.
        if self.0.load(Ordering::Acquire) == 1 {
            self.0.store(0, Ordering::Relaxed);
            return Release::Last;
        }
        let old = self.0.fetch_sub(1, Ordering::Release);
        if old == 1 {
            fence(Ordering::Acquire);
            return Release::Last;
        }
        if old.wrapping_sub(1) >= MAX_REFCOUNT {
            self.pin();
            return Release::Pinned;
        }
        Release::Shared
    }

    /// [`acquire`](Self::acquire) without an atomic instruction.
    ///
    /// # Safety
    /// No other thread uses this count meanwhile.
    #[inline]
    pub unsafe fn acquire_unsync(&self) -> bool {
        let old = self.0.load(Ordering::Relaxed);
        if old.wrapping_sub(1) >= MAX_REFCOUNT {
            self.pin();
            return false;
        }
        self.0.store(old + 1, Ordering::Relaxed);
        true
    }

    /// [`release`](Self::release) without an atomic instruction.
    ///
    /// # Safety
    /// No other thread uses this count meanwhile.
    #[inline]
    pub unsafe fn release_unsync(&self) -> Release {
        let old = self.0.load(Ordering::Acquire);
        if old.wrapping_sub(1) >= MAX_REFCOUNT {
            self.pin();
            return Release::Pinned;
        }
        self.0.store(old - 1, Ordering::Relaxed);
        if old == 1 { Release::Last } else { Release::Shared }
    }

    #[cold]
    #[inline(never)]
    fn pin(&self) {
        self.0.store(PINNED, Ordering::Relaxed);
    }
}

/// The outcome of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the last release must destroy the block"]
pub enum Release {
    /// Other references remain.
    Shared,
    /// No reference remains: the caller now owns the block exclusively and must destroy it.
    Last,
    /// The count is pinned, because it was released too often or overflowed. The block must not be
    /// destroyed.
    Pinned,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_release_is_reported_once() {
        let count = RefCount::one();
        assert!(count.acquire());
        assert_eq!(count.get(), 2);
        assert_eq!(count.release(), Release::Shared);
        assert_eq!(count.release(), Release::Last);
        assert_eq!(count.get(), 0);
    }

    #[test]
    fn misuse_pins_instead_of_freeing_twice() {
        let count = RefCount::one();
        assert_eq!(count.release(), Release::Last);
        assert_eq!(count.release(), Release::Pinned);
        assert!(count.is_pinned());
        for _ in 0..1000 {
            assert_eq!(count.release(), Release::Pinned);
        }
        let dead = RefCount::one();
        assert_eq!(dead.release(), Release::Last);
        assert!(!dead.acquire());
        assert!(dead.is_pinned());
    }

    #[test]
    fn overflow_pins() {
        let count = RefCount(AtomicUsize::new(MAX_REFCOUNT));
        assert!(count.acquire());
        assert!(count.is_pinned());
        assert!(!count.acquire());
        assert_eq!(count.release(), Release::Pinned);
    }

    #[test]
    fn unsynchronised_operations_agree_with_the_atomic_ones() {
        for start in [0, 1, 2, 3, MAX_REFCOUNT, MAX_REFCOUNT + 1, usize::MAX] {
            let (a, b) = (RefCount(AtomicUsize::new(start)), RefCount(AtomicUsize::new(start)));
            // SAFETY: `b` is local to this thread.
            let unsync = unsafe { b.acquire_unsync() };
            assert_eq!(a.acquire(), unsync, "acquire at {start}");
            assert_eq!(a.get(), b.get());
            let (a, b) = (RefCount(AtomicUsize::new(start)), RefCount(AtomicUsize::new(start)));
            // SAFETY: `b` is local to this thread.
            let unsync = unsafe { b.release_unsync() };
            assert_eq!(a.release(), unsync, "release at {start}");
            assert_eq!(a.get(), b.get());
        }
    }
}
