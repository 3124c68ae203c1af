//! The default of the thread cache if the program did not choose: on, unless a memory checker is
//! attached.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::system;

/// Whether the default is decided, or the program chose.
static CHOSEN: AtomicBool = AtomicBool::new(false);

/// Records that the program chose.
pub(crate) fn record_choice() {
    CHOSEN.store(true, Ordering::Relaxed);
}

/// Whether blocks are kept. Decides the default at the first call.
#[inline]
pub(super) fn is_kept() -> bool {
    if !CHOSEN.load(Ordering::Relaxed) {
        decide();
    }
    system::thread_cache_enabled()
}

#[cold]
fn decide() {
    // Other threads do not wait for the decision; they may keep a block or two meanwhile.
    if !CHOSEN.swap(true, Ordering::Relaxed) && (is_refused() || is_watched()) {
        system::switch_thread_cache(false);
    }
}

/// Whether the environment turns the cache off.
fn is_refused() -> bool {
    std::env::var_os("USM_NRT_THREAD_CACHE").is_some_and(|value| value == "0")
}

/// Whether a sanitizer is in the process. It detects the use of a freed block only if the block is
/// really freed.
fn is_watched() -> bool {
    const MARKS: [&CStr; 4] = [c"__asan_init", c"__hwasan_init", c"__tsan_init", c"__msan_init"];
    MARKS.into_iter().any(is_defined)
}

#[cfg(all(unix, not(miri)))]
fn is_defined(name: &CStr) -> bool {
    use core::ffi::{c_char, c_void};
    use core::ptr;

    unsafe extern "C" {
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // `RTLD_DEFAULT`: the default search order.
    let everywhere = if cfg!(target_vendor = "apple") {
        ptr::without_provenance_mut(-2_isize as usize)
    } else {
        ptr::null_mut()
    };
    // SAFETY: the C library's function, with its handle for all libraries and a terminated name.
    !unsafe { dlsym(everywhere, name.as_ptr()) }.is_null()
}

#[cfg(not(all(unix, not(miri))))]
fn is_defined(_: &CStr) -> bool {
    false
}
