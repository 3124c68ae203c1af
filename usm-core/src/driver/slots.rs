//! Driver objects that are reused once their last handle is dropped: no heap and no call of the
//! driver for each operation.
//!
//! The slot counts its own handles. An `Arc` would not do, for three reasons. A handle would have
//! to ask whether it is the last one; of two dropped concurrently, each may see the other, and then
//! neither returns the object. Loom does not see the standard library's count. And an index into a
//! list of the context would make a handle two words wide and cost one more count per handle.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::sync::{AtomicUsize, Mutex, Ordering};

#[cfg(all(test, loom))]
mod models;

/// More handles than memory can hold; only forgotten handles can exceed this number.
const MOST_HANDLES: usize = isize::MAX as usize;

/// The slots of one context. Dropping it drops the free slots; a slot in use is dropped with its
/// last handle.
pub struct Slots<T>(Arc<Home<T>>);

struct Home<T> {
    free: Mutex<Free<T>>,
}

struct Free<T> {
    /// Slots without a handle. They keep their home alive, until it is closed.
    slots: Vec<Box<Slot<T>>>,
    is_closed: bool,
}

struct Slot<T> {
    /// In a free slot: the count of the next handle.
    handles: AtomicUsize,
    /// The list to which the last handle returns the slot. If `None`, the last handle drops the
    /// slot.
    home: Option<Arc<Home<T>>>,
    object: T,
}

/// A counted handle of a value in a slot.
pub struct SlotHandle<T> {
    slot: NonNull<Slot<T>>,
    owns: PhantomData<Slot<T>>,
}

// SAFETY: as for `Arc`: threads access the value by reference, and any of them may drop it.
unsafe impl<T: Send + Sync> Send for SlotHandle<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for SlotHandle<T> {}

impl<T> Slots<T> {
    /// No slots.
    #[must_use]
    pub fn new() -> Self {
        let free = Mutex::new(Free { slots: Vec::new(), is_closed: false });
        Self(Arc::new(Home { free }))
    }

    /// Takes the most recently returned value, if any. The result is its only handle.
    #[inline]
    pub fn take(&self) -> Option<SlotHandle<T>> {
        self.0.free.lock().slots.pop().map(SlotHandle::of)
    }

    /// Adds a new value. The result is its only handle.
    pub fn add(&self, object: T) -> SlotHandle<T> {
        SlotHandle::new(Some(Arc::clone(&self.0)), object)
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        if crate::process::is_closed() {
            return;
        }
        let mut free = self.0.free.lock();
        free.is_closed = true;
        let slots = core::mem::take(&mut free.slots);
        // Dropping calls drivers, so it happens without the lock.
        drop(free);
        drop(slots);
    }
}

impl<T> Home<T> {
    /// Takes back a slot without a handle. `home` is a pointer, because only the slot may keep it
    /// alive.
    ///
    /// # Safety
    /// `home` is the slot's home.
    #[inline]
    unsafe fn return_slot(home: *const Self, slot: Box<Slot<T>>) {
        // SAFETY: the slot keeps its home alive; after the slot is in the list and the lock
        // released, nothing here accesses the home.
        let mut free = unsafe { (*home).free.lock() };
        if !free.is_closed {
            return free.slots.push(slot);
        }
        drop(free);
        drop(slot);
    }
}

impl<T> SlotHandle<T> {
    /// Makes a value that belongs to no slots and is dropped with its last handle.
    pub fn without_slots(object: T) -> Self {
        Self::new(None, object)
    }

    fn new(home: Option<Arc<Home<T>>>, object: T) -> Self {
        Self::of(Box::new(Slot { handles: AtomicUsize::new(1), home, object }))
    }

    #[inline]
    fn of(slot: Box<Slot<T>>) -> Self {
        Self { slot: NonNull::from(Box::leak(slot)), owns: PhantomData }
    }

    #[inline]
    fn slot(&self) -> &Slot<T> {
        // SAFETY: a slot lives as long as it has a handle.
        unsafe { self.slot.as_ref() }
    }
}

impl<T> Deref for SlotHandle<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.slot().object
    }
}

impl<T> Clone for SlotHandle<T> {
    #[inline]
    fn clone(&self) -> Self {
        if self.slot().handles.fetch_add(1, Ordering::Relaxed) > MOST_HANDLES {
            std::process::abort();
        }
        Self { slot: self.slot, owns: PhantomData }
    }
}

impl<T> Drop for SlotHandle<T> {
    #[inline]
    fn drop(&mut self) {
        let handles = &self.slot().handles;
        // If this is the only handle, it leaves its count to the next one, without a contended
        // atomic operation. Acquire orders all other threads' uses of the value before the next
        // use.
        if handles.load(Ordering::Acquire) != 1 {
            if handles.fetch_sub(1, Ordering::AcqRel) != 1 {
                return;
            }
            handles.store(1, Ordering::Relaxed);
        }
        if crate::process::is_closed() {
            // A thread that no longer exists may have locked the list.
            return;
        }
        // SAFETY: `of` made the pointer, and this was the last handle.
        let slot = unsafe { Box::from_raw(self.slot.as_ptr()) };
        match slot.home.as_ref().map(Arc::as_ptr) {
            // SAFETY: this slot's home.
            Some(home) => unsafe { Home::return_slot(home, slot) },
            None => drop(slot),
        }
    }
}

impl<T> fmt::Debug for Slots<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slots").field("free", &self.0.free.lock().slots.len()).finish()
    }
}

impl<T: fmt::Debug> fmt::Debug for SlotHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::cell::Cell;

    use super::*;

    struct Object<'t>(&'t Cell<u32>);

    impl Drop for Object<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn an_object_is_free_once_its_last_handle_is_gone() {
        let gone = Cell::new(0);
        let slots = Slots::new();
        assert!(slots.take().is_none());
        let one = slots.add(Object(&gone));
        let two = one.clone();
        drop(one);
        assert!(slots.take().is_none(), "a handle is left");
        drop(two);
        let again = slots.take().expect("free");
        assert!(slots.take().is_none(), "once");
        drop(again);
        assert!(slots.take().is_some());
        assert_eq!(gone.get(), 0);
        drop(slots);
        assert_eq!(gone.get(), 1);
    }

    #[test]
    fn an_object_in_use_outlives_its_slots_and_is_dropped_with_its_last_handle() {
        let gone = Cell::new(0);
        let slots = Slots::new();
        let one = slots.add(Object(&gone));
        let two = one.clone();
        drop(slots);
        drop(one);
        assert_eq!(gone.get(), 0);
        drop(two);
        assert_eq!(gone.get(), 1);
    }

    #[test]
    fn an_object_without_slots_is_dropped_with_its_last_handle() {
        let gone = Cell::new(0);
        let one = SlotHandle::without_slots(Object(&gone));
        let two = one.clone();
        drop(one);
        assert_eq!(gone.get(), 0);
        drop(two);
        assert_eq!(gone.get(), 1);
    }

    #[test]
    fn a_forgotten_handle_keeps_its_object_for_ever() {
        let gone = Cell::new(0);
        let slots = Slots::new();
        let one = slots.add(Object(&gone));
        core::mem::forget(one.clone());
        drop(one);
        assert!(slots.take().is_none());
        drop(slots);
        assert_eq!(gone.get(), 0);
    }
}
