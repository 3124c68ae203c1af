//! The driver's own functions, for tests: settings, faults and counters.

use core::ffi::{CStr, c_char};

use crate::fault::Faults;
use crate::state::{Settings, lock};
use crate::worker;

/// # Safety
/// `text` ends with a zero and outlives the result.
unsafe fn read<'a>(text: *const c_char) -> Option<&'a str> {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Replaces the faults. Returns 1, or 0 for a text that cannot be parsed.
///
/// # Safety
/// `text` ends with a zero.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn usm_cuda_faults(text: *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    let Some(faults) = unsafe { read(text) }.and_then(|text| Faults::parse(text).ok()) else { return 1 };
    lock().faults = faults;
    0
}

/// Replaces the settings. Returns 1, or 0 for a text that cannot be parsed.
///
/// # Safety
/// `text` ends with a zero.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn usm_cuda_settings(text: *const c_char) -> u32 {
    // SAFETY: the caller's promise.
    let Some((settings, devices)) = unsafe { read(text) }.and_then(|text| Settings::parse(text).ok()) else {
        return 1;
    };
    let mut state = lock();
    state.settings = settings;
    // The number of devices only grows.
    let devices = devices.max(state.devices.len());
    state.devices.resize_with(devices, Default::default);
    let contexts: Vec<usize> = state.contexts.keys().copied().collect();
    contexts.into_iter().for_each(|context| state.share_managed(context));
    drop(state);
    worker::done();
    0
}

/// The counter that the text names (the README lists them), or all ones for an unknown name.
///
/// # Safety
/// `text` ends with a zero.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn usm_cuda_count(text: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let text = unsafe { read(text) };
    text.and_then(|text| lock().count(text)).unwrap_or(u64::MAX)
}

/// Starts or stops the log of calls. Returns whether it was on.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn usm_cuda_log(on: u32) -> u32 {
    u32::from(core::mem::replace(&mut lock().log, (on != 0).then(String::new)).is_some())
}

/// Copies the calls since the last copy to `text`, which has `room` bytes, with a final zero. Each
/// call is one line and names its streams. Cuts off the rest. Returns the number of bytes that
/// there are.
///
/// # Safety
/// `text` has room for `room` bytes.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn usm_cuda_calls(text: *mut c_char, room: usize) -> usize {
    let calls = lock().log.as_mut().map(core::mem::take).unwrap_or_default();
    for (index, byte) in calls.bytes().take(room.saturating_sub(1)).chain([0]).take(room).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { text.add(index).write(byte as c_char) };
    }
    calls.len()
}
