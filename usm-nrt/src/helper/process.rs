//! The end of the process, a place for debuggers to stop, and the reset of a floating-point unit.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::math::{fmod, fmodf};
use crate::export::export;

/// What is called before `fmod`; see [`numba_set_fnclex`].
static CLEAR: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

fn clear() {
    let clear = CLEAR.load(Ordering::Acquire);
    // SAFETY: null, or the function that was given.
    let clear = unsafe { core::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn()>>(clear) };
    if let Some(clear) = clear {
        // SAFETY: it takes nothing and may be called on any thread, says the contract of
        // `numba_set_fnclex`.
        unsafe { clear() }
    }
}

export! {
    /// Says that compiled code cannot go on and ends the process: for states that its compiler
    /// rules out.
    fn numba_fatal_error() -> c_int {
        std::eprintln!("Fatal error: in compiled function");
        std::process::abort()
    }
    /// Does nothing: debuggers stop here.
    #[inline(never)]
    fn numba_gdb_breakpoint() {
        // Keeps the body from being merged with another empty one.
        core::hint::black_box(());
    }
    /// Gives the function that clears the floating-point unit before `fmod` on Windows
    /// (`void (*)(void)`, or null).
    fn numba_set_fnclex(function: *mut c_void) {
        CLEAR.store(function, Ordering::Release);
    }
    /// `fmod` with the floating-point unit cleared before.
    fn numba_fixed_fmod(x: f64, y: f64) -> f64 {
        clear();
        fmod(x, y)
    }
    /// `fmodf` with the floating-point unit cleared before.
    fn numba_fixed_fmodf(x: f32, y: f32) -> f32 {
        clear();
        fmodf(x, y)
    }
}
