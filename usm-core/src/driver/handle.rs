//! Reference-counted objects of a runtime, released with their last owner.

use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;

/// The runtime of the objects: the function table of its library.
pub trait ReferenceCounting: 'static {
    /// Result of a function that releases an object. A failure has no remedy, because we cannot use
    /// the object any more.
    type Answer;
}

/// An owned reference to an object of a library, released once.
pub struct Handle<L: ReferenceCounting> {
    library: &'static L,
    raw: NonNull<c_void>,
    release: unsafe extern "C" fn(*mut c_void) -> L::Answer,
}

impl<L: ReferenceCounting> Handle<L> {
    /// # Safety
    /// `raw` is an object of `library`. The caller owns a reference to it, which `release`
    /// releases. Several threads may call the runtime with it at the same time, and any of them may
    /// release it.
    pub unsafe fn new(
        library: &'static L,
        raw: NonNull<c_void>,
        release: unsafe extern "C" fn(*mut c_void) -> L::Answer,
    ) -> Self {
        Self { library, raw, release }
    }

    /// The object's library.
    #[must_use]
    pub fn library(&self) -> &'static L {
        self.library
    }

    /// The object. It lives as long as `self`.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.raw.as_ptr()
    }
    /// As [`raw`](Self::raw).
    #[must_use]
    pub fn not_null(&self) -> NonNull<c_void> {
        self.raw
    }
}

impl<L: ReferenceCounting> Drop for Handle<L> {
    fn drop(&mut self) {
        let Ok(_inside) = crate::process::ask() else { return };
        // SAFETY: owned and released once, by the function that the caller of `new` promised.
        let _ = unsafe { (self.release)(self.raw()) };
    }
}

impl<L: ReferenceCounting> fmt::Debug for Handle<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.raw)
    }
}

// SAFETY: the caller of `new` promised that several threads may call the runtime with the object,
// and any of them may release the reference.
unsafe impl<L: ReferenceCounting + Sync> Send for Handle<L> {}
// SAFETY: as above; calls with a shared handle do not change the reference itself.
unsafe impl<L: ReferenceCounting + Sync> Sync for Handle<L> {}

#[cfg(all(test, not(loom)))]
mod tests {
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    struct Library;

    impl ReferenceCounting for Library {
        type Answer = i32;
    }

    static LIBRARY: Library = Library;
    static RELEASED: AtomicUsize = AtomicUsize::new(0);

    unsafe extern "C" fn release(_: *mut c_void) -> i32 {
        RELEASED.fetch_add(1, Ordering::Relaxed);
        -1
    }

    #[test]
    fn an_object_is_released_once_with_its_owner() {
        let object = NonNull::from(&LIBRARY).cast();
        // SAFETY: the function only counts.
        let handle = unsafe { Handle::new(&LIBRARY, object, release) };
        assert_eq!((handle.raw(), handle.not_null()), (object.as_ptr(), object));
        let moved = handle;
        assert_eq!(RELEASED.load(Ordering::Relaxed), 0);
        drop(moved);
        assert_eq!(RELEASED.load(Ordering::Relaxed), 1);
    }
}
