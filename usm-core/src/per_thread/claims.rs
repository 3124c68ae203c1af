//! Per-thread values that are never freed, so that any thread may look at all of them at any time.
//! A later thread reuses the value of an ended one, so there are only as many as there were threads
//! at once.

use core::fmt;
use core::ops::Deref;
use core::ptr::{self, NonNull};

use super::atomics::{AtomicPtr, AtomicUsize, Ordering};
use super::owner;

/// A value and its owner.
#[derive(Debug)]
pub struct Claim<T> {
    value: T,
    /// The owner's number; 0 for none.
    owner: AtomicUsize,
    next: *const Claim<T>,
}

// SAFETY: `next` is written before the claim is published, and only read then.
unsafe impl<T: Sync> Sync for Claim<T> {}

impl<T> Claim<T> {
    /// Leaves the value to a later thread, which sees all writes of this one.
    pub fn give_up(&self) {
        self.owner.store(0, Ordering::Release);
    }

    /// Whether the owner was a thread that a fork left behind. An access that it had in progress
    /// never ends, and the value stays in the middle of it.
    pub(super) fn is_left_behind(&self) -> bool {
        owner::is_left_behind(self.owner.load(Ordering::Relaxed))
    }
}

impl<T> Deref for Claim<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.value
    }
}

/// All values, newest first. The list only grows.
pub struct Claims<T>(AtomicPtr<Claim<T>>);

impl<T: Sync + 'static> Claims<T> {
    /// Makes an empty list.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Makes an empty list.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Claims a value for the calling thread until it gives it up. `make` makes a new one if none
    /// is free, and `place` moves it to the heap, for good; `None` without memory.
    pub fn claim(
        &self,
        make: impl FnOnce() -> T,
        place: impl FnOnce(Claim<T>) -> Option<NonNull<Claim<T>>>,
    ) -> Option<&'static Claim<T>> {
        let thread = owner::current();
        let order = (Ordering::Acquire, Ordering::Relaxed);
        let is_taken = |claim: &Claim<T>| claim.owner.compare_exchange(0, thread, order.0, order.1).is_ok();
        if let Some(left) = self.iter().find(|claim| is_taken(claim)) {
            return Some(left);
        }
        let mut new = place(Claim { value: make(), owner: AtomicUsize::new(thread), next: ptr::null() })?;
        let mut head = self.0.load(Ordering::Acquire);
        loop {
            // SAFETY: not published yet.
            unsafe { new.as_mut() }.next = head;
            match self.0.compare_exchange(head, new.as_ptr(), Ordering::AcqRel, Ordering::Acquire) {
                // SAFETY: made above, never freed.
                Ok(_) => return Some(unsafe { new.as_ref() }),
                Err(now) => head = now,
            }
        }
    }

    /// All values at this moment.
    pub fn iter(&self) -> impl Iterator<Item = &'static Claim<T>> + Clone + use<T> {
        let mut next = self.0.load(Ordering::Acquire).cast_const();
        core::iter::from_fn(move || {
            // SAFETY: never freed; the list was published by the release in `claim`.
            let claim = unsafe { next.as_ref() }?;
            next = claim.next;
            Some(claim)
        })
    }
}

impl<T> fmt::Debug for Claims<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims").finish_non_exhaustive()
    }
}
