//! The driver's own functions, for tests: faults and counters.

use core::ffi::{CStr, c_char};

/// Replaces the faults. Returns 0, or 1 for a text that cannot be parsed.
///
/// # Safety
///
/// `text` ends with a zero.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn usm_ze_faults(text: *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let faults = text.to_str().ok().and_then(|text| crate::fault::Faults::parse(text).ok());
    match (faults, crate::state::lock().as_mut()) {
        (Some(faults), Some(state)) => {
            state.faults = faults;
            0
        }
        _ => 1,
    }
}

/// The counter that the text names (the README lists them), or all ones for an unknown name.
///
/// # Safety
///
/// `text` ends with a zero.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn usm_ze_count(text: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    let guard = crate::state::lock();
    let state = guard.as_ref();
    text.to_str().ok().zip(state).and_then(|(text, state)| state.count(text)).unwrap_or(u64::MAX)
}
