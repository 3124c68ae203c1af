//! Allocations, queries of addresses, and handles for other processes.

use core::ffi::{c_char, c_void};

use level_zero_sys::*;

use super::{api, at, put, tagged};
use crate::state::{enter, handle};

api! {
    zeMemAllocHost(state, hContext: ze_context_handle_t, host_desc: *const ze_host_mem_alloc_desc_t, size: usize, alignment: usize, pptr: *mut *mut c_void) {
        tagged(at(host_desc.cast_mut())?.stype, ze_host_mem_alloc_desc_t::STYPE)?;
        let base = state.allocate(hContext, ZE_MEMORY_TYPE_HOST, None, size, alignment)?;
        put(pptr, base as *mut c_void)?;
    }
    zeMemAllocDevice(state, hContext: ze_context_handle_t, device_desc: *const ze_device_mem_alloc_desc_t, size: usize, alignment: usize, hDevice: ze_device_handle_t, pptr: *mut *mut c_void) {
        tagged(at(device_desc.cast_mut())?.stype, ze_device_mem_alloc_desc_t::STYPE)?;
        let device = Some(state.device(hDevice)?);
        let base = state.allocate(hContext, ZE_MEMORY_TYPE_DEVICE, device, size, alignment)?;
        put(pptr, base as *mut c_void)?;
    }
    zeMemAllocShared(state, hContext: ze_context_handle_t, device_desc: *const ze_device_mem_alloc_desc_t, host_desc: *const ze_host_mem_alloc_desc_t, size: usize, alignment: usize, hDevice: ze_device_handle_t, pptr: *mut *mut c_void) {
        tagged(at(device_desc.cast_mut())?.stype, ze_device_mem_alloc_desc_t::STYPE)?;
        tagged(at(host_desc.cast_mut())?.stype, ze_host_mem_alloc_desc_t::STYPE)?;
        let device = if hDevice.is_null() { None } else { Some(state.device(hDevice)?) };
        let base = state.allocate(hContext, ZE_MEMORY_TYPE_SHARED, device, size, alignment)?;
        put(pptr, base as *mut c_void)?;
    }
    zeMemFree(state, hContext: ze_context_handle_t, ptr: *mut c_void) {
        state.free(hContext, ptr as usize)?;
    }
    zeMemFreeExt(state, hContext: ze_context_handle_t, pMemFreeDesc: *const ze_memory_free_ext_desc_t, ptr: *mut c_void) {
        let policy = at(pMemFreeDesc.cast_mut())?;
        tagged(policy.stype, ze_memory_free_ext_desc_t::STYPE)?;
        // Every submitted command that can complete does so before the memory is freed.
        state.lazy = core::mem::replace(&mut state.lazy, false) && {
            state.progress();
            true
        };
        state.free(hContext, ptr as usize)?;
    }
    zeMemGetAllocProperties(state, hContext: ze_context_handle_t, ptr: *const c_void, pMemAllocProperties: *mut ze_memory_allocation_properties_t, phDevice: *mut ze_device_handle_t) {
        let found = state.lookup(hContext, ptr as usize)?;
        let (kind, id, owner) = match found {
            None => (ZE_MEMORY_TYPE_UNKNOWN, 0, None),
            Some((_, live)) => (state.faults.memory_type.unwrap_or(live.kind), live.id, live.device),
        };
        let owner = owner.filter(|_| !state.faults.null_device);
        let out = at(pMemAllocProperties)?;
        (out.type_, out.id, out.pageSize) = (kind, id, 4096);
        if !phDevice.is_null() {
            put(phDevice, ze_device_handle_t(owner.map_or(core::ptr::null_mut(), handle)))?;
        }
    }
    zeMemGetAddressRange(state, hContext: ze_context_handle_t, ptr: *const c_void, pBase: *mut *mut c_void, pSize: *mut usize) {
        let (base, live) = state.lookup(hContext, ptr as usize)?.ok_or(ZE_RESULT_ERROR_UNKNOWN)?;
        if !pBase.is_null() {
            put(pBase, base as *mut c_void)?;
        }
        if !pSize.is_null() {
            put(pSize, live.size)?;
        }
    }
    zeMemGetIpcHandle(state, hContext: ze_context_handle_t, ptr: *const c_void, pIpcHandle: *mut ze_ipc_mem_handle_t) {
        let (base, _) = state.lookup(hContext, ptr as usize)?.ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        let out = at(pIpcHandle)?;
        for (to, from) in out.data.iter_mut().zip(base.to_ne_bytes()) {
            *to = from as c_char;
        }
    }
    zeMemOpenIpcHandle(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, handle: ze_ipc_mem_handle_t, flags: ze_ipc_memory_flags_t, pptr: *mut *mut c_void) {
        let _ = flags;
        state.device(hDevice)?;
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(handle.data) {
            *to = from as u8;
        }
        // Only handles of this process are supported: the address is the same.
        let base = usize::from_ne_bytes(bytes);
        state.context(hContext)?;
        state.allocations.contains_key(&base).then_some(()).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        put(pptr, base as *mut c_void)?;
    }
    zeMemCloseIpcHandle(state, hContext: ze_context_handle_t, ptr: *const c_void) {
        state.context(hContext)?;
        state.allocations.contains_key(&(ptr as usize)).then_some(()).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    }
}
