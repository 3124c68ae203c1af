//! The driver's own functions, for tests: how it behaves, what goes wrong, what it counted.

use core::ffi::{CStr, c_char};

use crate::fault::Faults;
use crate::state::{Settings, lock};
use crate::worker;

/// # Safety
/// `text` ends with a zero, and outlives the result.
unsafe fn read<'a>(text: *const c_char) -> Option<&'a str> {
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Replaces the faults; 0, or 1 when the text is not understood.
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

/// Replaces the settings; 0, or 1 when the text is not understood.
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
    // Devices come and never go.
    let devices = devices.max(state.devices.len());
    state.devices.resize_with(devices, Default::default);
    let contexts: Vec<usize> = state.contexts.keys().copied().collect();
    contexts.into_iter().for_each(|context| state.share_managed(context));
    drop(state);
    worker::done();
    0
}

/// How many there are of what the text names (see the README); all ones when it is not known.
///
/// # Safety
/// `text` ends with a zero.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn usm_cuda_count(text: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let text = unsafe { read(text) };
    text.and_then(|text| lock().count(text)).unwrap_or(u64::MAX)
}

/// Writes calls down from now on, or no longer; whether it did.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn usm_cuda_log(on: u32) -> u32 {
    u32::from(core::mem::replace(&mut lock().log, (on != 0).then(String::new)).is_some())
}

/// Copies the calls since the last time to `text`, of `room` bytes, with a final zero: one a line,
/// with the streams that it is about. What does not fit is cut off. The bytes that there are.
///
/// # Safety
/// `text` has room for as many bytes as said.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn usm_cuda_calls(text: *mut c_char, room: usize) -> usize {
    let calls = lock().log.as_mut().map(core::mem::take).unwrap_or_default();
    for (index, byte) in calls.bytes().take(room.saturating_sub(1)).chain([0]).take(room).enumerate() {
        // SAFETY: the caller's promise.
        unsafe { text.add(index).write(byte as c_char) };
    }
    calls.len()
}
