//! The end of the process, a breakpoint for debuggers, and the reset of a floating-point unit.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use super::math::{fmod, fmodf};
use crate::export::export;

/// The function called before `fmod`; see [`numba_set_fnclex`].
static CLEAR: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

fn clear() {
    let clear = CLEAR.load(Ordering::Acquire);
    // SAFETY: null, or the stored function.
    let clear = unsafe { core::mem::transmute::<*mut c_void, Option<unsafe extern "C" fn()>>(clear) };
    if let Some(clear) = clear {
        // SAFETY: the function takes no argument, and any thread may call it: `numba_set_fnclex`
        // demands both.
        unsafe { clear() }
    }
}

export! {
    /// Reports that compiled code cannot continue and ends the process, for states that its
    /// compiler rules out.
    fn numba_fatal_error() -> c_int {
        std::eprintln!("Fatal error: in compiled function");
        std::process::abort()
    }
    /// Does nothing. Debuggers set a breakpoint here.
    #[inline(never)]
    fn numba_gdb_breakpoint() {
        // Keeps the linker from merging the body with another empty one.
        core::hint::black_box(());
    }
    /// Sets the function that clears the floating-point unit before `fmod` on Windows (`void
    /// (*)(void)`, or null).
    fn numba_set_fnclex(function: *mut c_void) {
        CLEAR.store(function, Ordering::Release);
    }
    /// `fmod` after clearing the floating-point unit.
    fn numba_fixed_fmod(x: f64, y: f64) -> f64 {
        clear();
        fmod(x, y)
    }
    /// `fmodf` after clearing the floating-point unit.
    fn numba_fixed_fmodf(x: f32, y: f32) -> f32 {
        clear();
        fmodf(x, y)
    }
}
