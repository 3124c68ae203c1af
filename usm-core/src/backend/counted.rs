//! Context handles that are counted in the device's ledger.
//!
//! Every allocation holds one. An `Arc` would cost an atomic operation when an allocation is made
//! and another when it is dropped, each as expensive as the ledger's lock. Under that lock the
//! count is a plain number, and one step changes both.

use alloc::boxed::Box;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use crate::context_state::ContextState;

/// A native context with its own [`ContextState`].
///
/// The state counts its owners. Two contexts with one state would count each other's:
///
/// ```compile_fail,E0200
/// use std::sync::Arc;
/// use usm_core::ContextState;
/// use usm_core::backend::HasContextState;
///
/// struct Half(Arc<ContextState>);
///
/// impl HasContextState for Half {
///     fn shared(&self) -> &ContextState {
///         &self.0
///     }
/// }
/// ```
///
/// # Safety
/// [`shared`](Self::shared) returns the same state on every call, and no other context has this
/// state.
pub unsafe trait HasContextState {
    /// The context's state.
    fn shared(&self) -> &ContextState;
}

/// One of several owners of a native context. The last owner drops the context.
///
/// One pointer wide. A copy of its bits is another owner once the count was raised for it: see
/// [`Backend::COUNTED`](crate::Backend::COUNTED).
pub struct Counted<T: HasContextState> {
    context: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: as for `Arc`: owners reach the context by reference from any thread, and the last one
// drops it on its own.
unsafe impl<T: HasContextState + Send + Sync> Send for Counted<T> {}
// SAFETY: as above.
unsafe impl<T: HasContextState + Send + Sync> Sync for Counted<T> {}

impl<T: HasContextState> Counted<T> {
    /// Makes the first owner. The state belongs to this context alone, by the promise of
    /// [`HasContextState`], and begins with one owner.
    pub fn new(context: T) -> Self {
        Self { context: NonNull::from(Box::leak(Box::new(context))), owns: PhantomData }
    }
}

impl<T: HasContextState> Deref for Counted<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the context lives as long as one owner does.
        unsafe { self.context.as_ref() }
    }
}

impl<T: HasContextState> Clone for Counted<T> {
    fn clone(&self) -> Self {
        self.shared().retain();
        Self { context: self.context, owns: PhantomData }
    }
}

impl<T: HasContextState> Drop for Counted<T> {
    fn drop(&mut self) {
        if !self.shared().release() {
            // SAFETY: this was the last owner; the context was made by `new`, and the lock of the
            // count orders all others' uses before.
            drop(unsafe { Box::from_raw(self.context.as_ptr()) });
        }
    }
}

impl<T: HasContextState + fmt::Debug> fmt::Debug for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
