//! The functions for tests: what goes wrong, and how many there are.

use core::ffi::{CStr, c_char};

/// Replaces the faults; 0, or 1 when the text is not understood.
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

/// How many there are of what the text names (see the README); all ones when it is not known.
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
