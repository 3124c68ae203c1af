//! Handles of a context whose number is in the device's books.
//!
//! Every allocation holds one. An `Arc` would change its count by an atomic operation at the birth
//! of an allocation and by another at its end, beside the lock of the books, which costs as much;
//! under that lock the count is a plain number, and both are one step.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::shared::Shared;

/// A native context that carries its books.
///
/// Its owners are counted there, so two contexts with the same books would count each other's:
///
/// ```compile_fail,E0200
/// use std::sync::Arc;
/// use usm_core::SharedState;
/// use usm_core::backend::KeepsBooks;
///
/// struct Half(Arc<SharedState>);
///
/// impl KeepsBooks for Half {
///     fn shared(&self) -> &SharedState {
///         &self.0
///     }
/// }
/// ```
///
/// # Safety
/// [`shared`](Self::shared) gives the same books each time, and no other context has these books.
pub unsafe trait KeepsBooks {
    /// The books.
    fn shared(&self) -> &Shared;
}

/// One of several owners of a native context, which goes with the last of them.
///
/// One pointer wide. A copy of its bits is another owner once the count was raised for it: see
/// [`Backend::COUNTED`](crate::Backend::COUNTED).
pub struct Counted<T: KeepsBooks> {
    context: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: as for `Arc`: owners reach the context by reference from any thread, and the last one
// drops it on its own.
unsafe impl<T: KeepsBooks + Send + Sync> Send for Counted<T> {}
// SAFETY: as above.
unsafe impl<T: KeepsBooks + Send + Sync> Sync for Counted<T> {}

impl<T: KeepsBooks> Counted<T> {
    /// The first owner. The context's books are its own, by the promise of [`KeepsBooks`], and were
    /// opened with one owner.
    pub fn new(context: T) -> Self {
        Self { context: NonNull::from(Box::leak(Box::new(context))), owns: PhantomData }
    }
}

impl<T: KeepsBooks> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the context lives as long as one owner does.
        unsafe { self.context.as_ref() }
    }
}

impl<T: KeepsBooks> Clone for Counted<T> {
    fn clone(&self) -> Self {
        self.shared().retain();
        Self { context: self.context, owns: PhantomData }
    }
}

impl<T: KeepsBooks> Drop for Counted<T> {
    fn drop(&mut self) {
        if !self.shared().release() {
            // SAFETY: this was the last owner; the context was made by `new`, and the lock of the
            // count orders all others' uses before.
            drop(unsafe { Box::from_raw(self.context.as_ptr()) });
        }
    }
}

impl<T: KeepsBooks + fmt::Debug> fmt::Debug for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
