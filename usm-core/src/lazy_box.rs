//! A value on the heap that is made at its first use: its owner pays one pointer until then.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr;
// Not loom's: one exchange that either thread may win is nothing for a model, and every list of
// uses would otherwise carry an object of the model.
use core::sync::atomic::{AtomicPtr, Ordering};

/// Null, or a box that this owns.
pub(crate) struct LazyBox<T>(AtomicPtr<T>, PhantomData<Box<T>>);

impl<T: Send> LazyBox<T> {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()), PhantomData)
    }

    pub(crate) fn of(value: T) -> Self {
        Self(AtomicPtr::new(Box::into_raw(Box::new(value))), PhantomData)
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: null, or a box that lives until `&mut self` takes it. `Acquire` makes the value
        // that another thread boxed visible.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    #[inline]
    pub(crate) fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        match self.get() {
            Some(value) => value,
            None => self.make(make()),
        }
    }

    /// Boxes the value, unless another thread was first.
    #[inline(never)]
    fn make(&self, value: T) -> &T {
        let mine = Box::into_raw(Box::new(value));
        let set = self.0.compare_exchange(ptr::null_mut(), mine, Ordering::AcqRel, Ordering::Acquire);
        match set {
            // SAFETY: just boxed, and owned by `self` from now on.
            Ok(_) => unsafe { &*mine },
            Err(other) => {
                // SAFETY: the box that was not handed over.
                drop(unsafe { Box::from_raw(mine) });
                // SAFETY: as in `get`; not null, because the exchange expected null.
                unsafe { &*other }
            }
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        // SAFETY: null, or a box of `self`, which is borrowed exclusively.
        unsafe { self.0.get_mut().as_mut() }
    }
}

impl<T> Drop for LazyBox<T> {
    #[inline]
    fn drop(&mut self) {
        let value = *self.0.get_mut();
        if !value.is_null() {
            // SAFETY: a box of `self`, which nothing uses any more.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::sync::Arc;

    #[test]
    fn one_value_is_made_and_dropped_once() {
        let counted = Arc::new(());
        let mut lazy = LazyBox::<Arc<()>>::new();
        assert!(lazy.get().is_none() && lazy.get_mut().is_none());
        let first: *const _ = lazy.get_or_make(|| Arc::clone(&counted));
        assert!(core::ptr::eq(first, lazy.get_or_make(|| unreachable!("it is made"))));
        // A thread that comes second drops its own.
        assert!(core::ptr::eq(first, lazy.make(Arc::clone(&counted))));
        assert_eq!(Arc::strong_count(&counted), 2);
        drop(lazy);
        assert_eq!(Arc::strong_count(&counted), 1);
        drop(LazyBox::of(Arc::clone(&counted)));
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
