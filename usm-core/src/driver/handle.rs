//! Objects that a runtime counts, released with their last owner: the one shape of OpenCL's and
//! SYCL's handles.

use core::ffi::c_void;
use core::fmt;
use core::ptr::NonNull;

/// A runtime whose objects these are: the table of its library.
pub trait Counting: 'static {
    /// Answer of a function that releases an object. A failure has no remedy: for us the object is
    /// gone either way.
    type Answer;
}

/// A reference to an object of a library, given back once.
pub struct Handle<L: Counting> {
    library: &'static L,
    raw: NonNull<c_void>,
    release: unsafe extern "C" fn(*mut c_void) -> L::Answer,
}

impl<L: Counting> Handle<L> {
    /// # Safety
    /// `raw` is an object of `library` with a reference that the caller owns and `release` gives
    /// back. The runtime's calls on it may be made from several threads at once.
    pub unsafe fn new(
        library: &'static L,
        raw: NonNull<c_void>,
        release: unsafe extern "C" fn(*mut c_void) -> L::Answer,
    ) -> Self {
        Self { library, raw, release }
    }

    /// The library that it is of.
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

impl<L: Counting> Drop for Handle<L> {
    fn drop(&mut self) {
        let Ok(_inside) = crate::process::ask() else { return };
        // SAFETY: owned, given back once, by the function that `new` was promised.
        let _ = unsafe { (self.release)(self.raw()) };
    }
}

impl<L: Counting> fmt::Debug for Handle<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:p}", self.raw)
    }
}

// SAFETY: both runtimes' objects are counted references that any thread may use (OpenCL: all but
// clSetKernelArg, which is not called on these; SYCL: its classes are thread safe and the library
// keeps no thread state).
unsafe impl<L: Counting + Sync> Send for Handle<L> {}
// SAFETY: as above; what is called on a shared handle does not change the reference itself.
unsafe impl<L: Counting + Sync> Sync for Handle<L> {}
