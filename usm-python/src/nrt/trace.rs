//! Reports the source's blocks to `tracemalloc`. Numba's own runtime allocates through Python and
//! is visible there too.

use std::ffi::{c_int, c_uint};

use usm_core::ends::ForkOnce;

use crate::nrt::origin::has_interpreter;
use crate::process::symbol;

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
    static FUNCTIONS: ForkOnce<Option<Functions>> = ForkOnce::new();
    let find = || {
        // SAFETY: the documented type of this function.
        let track = unsafe { symbol::function(&[c"PyTraceMalloc_Track"]) }?;
        // SAFETY: as above.
        let untrack = unsafe { symbol::function(&[c"PyTraceMalloc_Untrack"]) }?;
        Some(Functions { track, untrack })
    };
    FUNCTIONS.get_or_make(find).as_ref()
}

/// Finds the functions during the import: see
/// [`attribute::prepare`](crate::process::attribute::prepare).
pub(crate) fn prepare() {
    let _ = (functions().is_some(), has_interpreter());
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
