//! Contexts.

use core::ffi::c_void;

use level_zero_sys::*;

use super::{api, at, is_driver, put, tagged};
use crate::state::{enter, handle};

api! {
    zeContextCreate(state, hDriver: ze_driver_handle_t, desc: *const ze_context_desc_t, phContext: *mut ze_context_handle_t) {
        is_driver(hDriver)?;
        tagged(at(desc.cast_mut())?.stype, ze_context_desc_t::STYPE)?;
        let number = state.number();
        state.contexts.insert(number);
        put(phContext, ze_context_handle_t(handle(number)))?;
    }
    zeContextDestroy(state, hContext: ze_context_handle_t) {
        let number = state.context(hContext)?;
        state.unless(state.allocations.values().any(|live| live.context == number))?;
        state.contexts.remove(&number);
    }
    zeContextMakeMemoryResident(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, ptr: *mut c_void, size: usize) {
        state.context(hContext)?;
        state.device(hDevice)?;
        let _ = (ptr, size);
    }
    zeContextEvictMemory(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, ptr: *mut c_void, size: usize) {
        state.context(hContext)?;
        state.device(hDevice)?;
        let _ = (ptr, size);
    }
}
