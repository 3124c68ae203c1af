//! Reports the source's blocks to `tracemalloc`. Numba's own runtime allocates through Python and
//! is visible there too.

use std::ffi::{c_int, c_uint};
use std::sync::OnceLock;

use crate::nrt_origin::has_interpreter;

/// The domain of this memory, to distinguish it from Python's own (0), for
/// `tracemalloc.DomainFilter`: "usm".
pub(crate) const DOMAIN: c_uint = 0x75_73_6D;

type Track = unsafe extern "C" fn(c_uint, usize, usize) -> c_int;
type Untrack = unsafe extern "C" fn(c_uint, usize) -> c_int;

struct Functions {
    track: Track,
    untrack: Untrack,
}

/// Functions of the interpreter that the stable interface lacks.
fn functions() -> Option<&'static Functions> {
    static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
    let find = || {
        #[cfg(unix)]
        {
            let this = libloading::os::unix::Library::this();
            // SAFETY: the documented type of this function.
            let track = unsafe { this.get::<Track>(b"PyTraceMalloc_Track\0") }.ok()?;
            // SAFETY: as above.
            let untrack = unsafe { this.get::<Untrack>(b"PyTraceMalloc_Untrack\0") }.ok()?;
            Some(Functions { track: *track, untrack: *untrack })
        }
        #[cfg(not(unix))]
        None
    };
    FUNCTIONS.get_or_init(find).as_ref()
}

/// Records an allocation of `size` bytes at `address`. Ignores threads without the interpreter:
/// tracing waits for it, and the thread that holds it may be waiting for them.
pub(crate) fn record_new(address: usize, size: usize) {
    if let Some(functions) = functions().filter(|_| has_interpreter()) {
        // SAFETY: this thread has the interpreter; any numbers are allowed. Without tracing the
        // call does nothing.
        let _ = unsafe { (functions.track)(DOMAIN, address, size) };
    }
}

/// Records that the memory is about to be freed.
pub(crate) fn record_free(address: usize) {
    if let Some(functions) = functions() {
        // SAFETY: needs no interpreter; an unknown address has no effect.
        let _ = unsafe { (functions.untrack)(DOMAIN, address) };
    }
}
