//! The functions of the driver. What each does is in the specification; how is in the other files.
//!
//! Every body may use the pointers that the caller passed: they are valid as the specification asks, and null was checked.

#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "each body rests on the one contract of its function"
)]
#![allow(clippy::too_many_arguments, reason = "the arguments are the specification's")]

use alloc::collections::VecDeque;
use alloc::ffi::CString;
use alloc::sync::Arc;
use core::ffi::{CStr, c_char, c_void};

use level_zero_sys::*;

use crate::command::{Action, Side};
use crate::device;
use crate::kernel::{Argument, Kernel, MAX_GROUP, Module};
use crate::queue::wait;
use crate::spirv;
use crate::state::{Answer, DRIVER, List, Pool, enter, find, handle, number, take};

/// # Safety
///
/// `pointer` is null or valid for reads and writes while the answer is used.
unsafe fn at<'a, T>(pointer: *mut T) -> Answer<&'a mut T> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or(ZE_RESULT_ERROR_INVALID_NULL_POINTER)
}

/// # Safety
///
/// `pointer` is null or valid for a write.
unsafe fn put<T>(pointer: *mut T, value: T) -> Answer {
    if pointer.is_null() {
        return Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER);
    }
    // SAFETY: the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// # Safety
///
/// `pointer` is null or has `count` elements while the answer is used.
unsafe fn slice<'a, T>(pointer: *mut T, count: u32) -> Answer<&'a [T]> {
    match (pointer.is_null(), count) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(ZE_RESULT_ERROR_INVALID_NULL_POINTER),
        // SAFETY: the caller's promise.
        (false, _) => Ok(unsafe { core::slice::from_raw_parts(pointer, count as usize) }),
    }
}

/// The protocol of listing functions: zero or no array asks for the count, else so many are written.
///
/// # Safety
///
/// `out` is null or valid for reads and writes.
unsafe fn count(out: *mut u32, asks: bool, known: u32) -> Answer<u32> {
    // SAFETY: the caller's promise.
    let out = unsafe { at(out) }?;
    if asks || *out == 0 || *out > known {
        *out = known;
    }
    Ok(if asks { 0 } else { *out })
}

/// # Safety
///
/// As [`count`]; `handles` is null or has as many elements as `out` says.
unsafe fn list(out: *mut u32, handles: *mut *mut c_void, known: &[usize]) -> Answer {
    // SAFETY: the caller's promise.
    let room = unsafe { count(out, handles.is_null(), known.len() as u32) }?;
    for (index, number) in known.iter().enumerate().take(room as usize) {
        // SAFETY: the caller's promise.
        unsafe { put(handles.wrapping_add(index), handle(*number)) }?;
    }
    Ok(())
}

fn is_driver(driver: ze_driver_handle_t) -> Answer {
    if driver.0 as usize == DRIVER { Ok(()) } else { Err(ZE_RESULT_ERROR_INVALID_NULL_HANDLE) }
}

/// Drivers tell structures by their tag alone: a wrong one is the caller's mistake.
fn tagged(found: ze_structure_type_t, expected: ze_structure_type_t) -> Answer {
    if found == expected { Ok(()) } else { Err(ZE_RESULT_ERROR_INVALID_ENUMERATION) }
}

macro_rules! api {
    ($($name:ident($state:ident, $($argument:ident: $type:ty),*) $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> ze_result_t {
            #[allow(unused_variables, reason = "some functions need no state")]
            enter(stringify!($name), |$state| {
                // SAFETY: the page of this file says why.
                #[allow(unused_unsafe, unreachable_code, reason = "some functions touch no pointer, some always refuse")]
                unsafe {
                    $body
                    Ok(ZE_RESULT_SUCCESS)
                }
            })
        }
    )*};
}

api! {
    zeInit(state, flags: ze_init_flags_t) {
        let _ = flags;
    }
    zeDriverGet(state, pCount: *mut u32, phDrivers: *mut ze_driver_handle_t) {
        list(pCount, phDrivers.cast(), &[DRIVER])?;
    }
    zeDriverGetApiVersion(state, hDriver: ze_driver_handle_t, version: *mut ze_api_version_t) {
        is_driver(hDriver)?;
        put(version, ZE_API_VERSION_1_4)?;
    }
    zeDriverGetProperties(state, hDriver: ze_driver_handle_t, pDriverProperties: *mut ze_driver_properties_t) {
        is_driver(hDriver)?;
        let out = at(pDriverProperties)?;
        out.driverVersion = 1;
        out.uuid.id = *b"usm test driver ";
    }
    zeDriverGetIpcProperties(state, hDriver: ze_driver_handle_t, pIpcProperties: *mut ze_driver_ipc_properties_t) {
        is_driver(hDriver)?;
        at(pIpcProperties)?.flags = ZE_IPC_PROPERTY_FLAG_MEMORY;
    }
    zeDriverGetExtensionFunctionAddress(state, hDriver: ze_driver_handle_t, name: *const c_char, ppFunctionAddress: *mut *mut c_void) {
        is_driver(hDriver)?;
        let _ = name;
        put(ppFunctionAddress, core::ptr::null_mut())?;
        return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
    }
    zeDeviceGet(state, hDriver: ze_driver_handle_t, pCount: *mut u32, phDevices: *mut ze_device_handle_t) {
        is_driver(hDriver)?;
        list(pCount, phDevices.cast(), &state.devices)?;
    }
    zeDeviceGetSubDevices(state, hDevice: ze_device_handle_t, pCount: *mut u32, phSubdevices: *mut ze_device_handle_t) {
        state.device(hDevice)?;
        list(pCount, phSubdevices.cast(), &[])?;
    }
    zeDeviceGetProperties(state, hDevice: ze_device_handle_t, pDeviceProperties: *mut ze_device_properties_t) {
        let number = state.device(hDevice)?;
        let index = state.devices.iter().position(|known| *known == number).unwrap_or(0);
        device::properties(index, at(pDeviceProperties)?);
    }
    zeDeviceGetComputeProperties(state, hDevice: ze_device_handle_t, pComputeProperties: *mut ze_device_compute_properties_t) {
        state.device(hDevice)?;
        device::compute(at(pComputeProperties)?);
    }
    zeDeviceGetModuleProperties(state, hDevice: ze_device_handle_t, pModuleProperties: *mut ze_device_module_properties_t) {
        state.device(hDevice)?;
        let out = at(pModuleProperties)?;
        (out.spirvVersionSupported, out.maxArgumentsSize) = (0x0001_0002, 2048);
        out.flags = ZE_DEVICE_MODULE_FLAG_FP64 | ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS;
    }
    zeDeviceGetMemoryProperties(state, hDevice: ze_device_handle_t, pCount: *mut u32, pMemProperties: *mut ze_device_memory_properties_t) {
        state.device(hDevice)?;
        if count(pCount, pMemProperties.is_null(), 1)? > 0 {
            device::memory(at(pMemProperties)?);
        }
    }
    zeDeviceGetMemoryAccessProperties(state, hDevice: ze_device_handle_t, pMemAccessProperties: *mut ze_device_memory_access_properties_t) {
        state.device(hDevice)?;
        device::access(at(pMemAccessProperties)?);
    }
    zeDeviceGetCommandQueueGroupProperties(state, hDevice: ze_device_handle_t, pCount: *mut u32, pCommandQueueGroupProperties: *mut ze_command_queue_group_properties_t) {
        state.device(hDevice)?;
        if count(pCount, pCommandQueueGroupProperties.is_null(), 1)? > 0 {
            device::queue_group(at(pCommandQueueGroupProperties)?);
        }
    }
    zeDeviceCanAccessPeer(state, hDevice: ze_device_handle_t, hPeerDevice: ze_device_handle_t, value: *mut ze_bool_t) {
        state.device(hDevice)?;
        state.device(hPeerDevice)?;
        put(value, 1)?;
    }
    zeDeviceGetP2PProperties(state, hDevice: ze_device_handle_t, hPeerDevice: ze_device_handle_t, pP2PProperties: *mut ze_device_p2p_properties_t) {
        state.device(hDevice)?;
        state.device(hPeerDevice)?;
        at(pP2PProperties)?.flags = ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS | ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS;
    }
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
        // Everything that was submitted and can end ends before the memory goes.
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
        // Handles of this very process only: the address is the same.
        let base = usize::from_ne_bytes(bytes);
        state.context(hContext)?;
        state.allocations.contains_key(&base).then_some(()).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        put(pptr, base as *mut c_void)?;
    }
    zeMemCloseIpcHandle(state, hContext: ze_context_handle_t, ptr: *const c_void) {
        state.context(hContext)?;
        state.allocations.contains_key(&(ptr as usize)).then_some(()).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
    }
    zeCommandQueueCreate(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_command_queue_desc_t, phCommandQueue: *mut ze_command_queue_handle_t) {
        state.context(hContext)?;
        state.device(hDevice)?;
        tagged(at(desc.cast_mut())?.stype, ze_command_queue_desc_t::STYPE)?;
        let number = state.number();
        state.queues.insert(number, VecDeque::new());
        put(phCommandQueue, ze_command_queue_handle_t(handle(number)))?;
    }
    zeCommandQueueDestroy(state, hCommandQueue: ze_command_queue_handle_t) {
        take(&mut state.queues, hCommandQueue.0)?;
    }
    zeCommandQueueExecuteCommandLists(state, hCommandQueue: ze_command_queue_handle_t, numCommandLists: u32, phCommandLists: *mut ze_command_list_handle_t, hFence: ze_fence_handle_t) {
        let lists = slice(phCommandLists, numCommandLists)?;
        state.execute(hCommandQueue, lists, hFence)?;
    }
    zeCommandListCreate(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_command_list_desc_t, phCommandList: *mut ze_command_list_handle_t) {
        state.context(hContext)?;
        state.device(hDevice)?;
        tagged(at(desc.cast_mut())?.stype, ze_command_list_desc_t::STYPE)?;
        let number = state.number();
        state.lists.insert(number, List::default());
        state.owners.insert(number, hContext.0 as usize);
        put(phCommandList, ze_command_list_handle_t(handle(number)))?;
    }
    zeCommandListCreateImmediate(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, altdesc: *const ze_command_queue_desc_t, phCommandList: *mut ze_command_list_handle_t) {
        state.context(hContext)?;
        state.device(hDevice)?;
        let description = at(altdesc.cast_mut())?;
        tagged(description.stype, ze_command_queue_desc_t::STYPE)?;
        let in_order = description.flags.contains(ZE_COMMAND_QUEUE_FLAG_IN_ORDER);
        let number = state.number();
        state.lists.insert(number, List { immediate: true, in_order, ..List::default() });
        state.owners.insert(number, hContext.0 as usize);
        state.queues.insert(number, VecDeque::new());
        put(phCommandList, ze_command_list_handle_t(handle(number)))?;
    }
    zeCommandListDestroy(state, hCommandList: ze_command_list_handle_t) {
        find(&mut state.lists, hCommandList.0)?;
        state.unless(state.queues.get(&(hCommandList.0 as usize)).is_some_and(|queue| !queue.is_empty()))?;
        let list = take(&mut state.lists, hCommandList.0)?;
        if list.immediate {
            state.queues.remove(&(hCommandList.0 as usize));
        }
    }
    zeCommandListClose(state, hCommandList: ze_command_list_handle_t) {
        find(&mut state.lists, hCommandList.0)?.closed = true;
    }
    zeCommandListReset(state, hCommandList: ze_command_list_handle_t) {
        let list = find(&mut state.lists, hCommandList.0)?;
        list.closed = false;
        list.commands.clear();
    }
    zeCommandListAppendMemoryCopy(state, hCommandList: ze_command_list_handle_t, dstptr: *mut c_void, srcptr: *const c_void, size: usize, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t) {
        let action = Action::Copy { to: dstptr as usize, from: srcptr as usize, bytes: size };
        state.append(hCommandList, action, hSignalEvent, slice(phWaitEvents, numWaitEvents)?)?;
    }
    zeCommandListAppendMemoryCopyRegion(state, hCommandList: ze_command_list_handle_t, dstptr: *mut c_void, dstRegion: *const ze_copy_region_t, dstPitch: u32, dstSlicePitch: u32, srcptr: *const c_void, srcRegion: *const ze_copy_region_t, srcPitch: u32, srcSlicePitch: u32, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t) {
        let (to, from) = (at(dstRegion.cast_mut())?, at(srcRegion.cast_mut())?);
        if (to.width, to.height, to.depth) != (from.width, from.height, from.depth) {
            return Err(ZE_RESULT_ERROR_INVALID_SIZE);
        }
        let action = Action::Region {
            to: Side::new(dstptr as usize, to, dstPitch, dstSlicePitch),
            from: Side::new(srcptr as usize, from, srcPitch, srcSlicePitch),
            width: to.width as usize,
            height: to.height as usize,
            depth: (to.depth as usize).max(1),
        };
        state.append(hCommandList, action, hSignalEvent, slice(phWaitEvents, numWaitEvents)?)?;
    }
    zeCommandListAppendMemoryFill(state, hCommandList: ze_command_list_handle_t, ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t) {
        if !pattern_size.is_power_of_two() || pattern_size > 128 || size % pattern_size != 0 {
            return Err(ZE_RESULT_ERROR_INVALID_SIZE);
        }
        let pattern = slice(pattern.cast::<u8>().cast_mut(), pattern_size as u32)?.to_vec();
        let action = Action::Fill { to: ptr as usize, pattern, bytes: size };
        state.append(hCommandList, action, hSignalEvent, slice(phWaitEvents, numWaitEvents)?)?;
    }
    zeCommandListAppendMemoryPrefetch(state, hCommandList: ze_command_list_handle_t, ptr: *const c_void, size: usize) {
        let _ = (ptr, size);
        state.append(hCommandList, Action::Nothing, ze_event_handle_t::NULL, &[])?;
    }
    zeCommandListAppendMemAdvise(state, hCommandList: ze_command_list_handle_t, hDevice: ze_device_handle_t, ptr: *const c_void, size: usize, advice: ze_memory_advice_t) {
        let _ = (ptr, size, advice);
        state.device(hDevice)?;
        state.append(hCommandList, Action::Nothing, ze_event_handle_t::NULL, &[])?;
    }
    zeCommandListAppendBarrier(state, hCommandList: ze_command_list_handle_t, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t) {
        state.append(hCommandList, Action::Barrier, hSignalEvent, slice(phWaitEvents, numWaitEvents)?)?;
    }
    zeCommandListAppendLaunchKernel(state, hCommandList: ze_command_list_handle_t, hKernel: ze_kernel_handle_t, pLaunchFuncArgs: *const ze_group_count_t, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t) {
        let count = at(pLaunchFuncArgs.cast_mut())?;
        let groups = [count.groupCountX, count.groupCountY, count.groupCountZ];
        let action = Action::Launch(find(&mut state.kernels, hKernel.0)?.launch(number(hKernel.0)?, groups)?);
        state.append(hCommandList, action, hSignalEvent, slice(phWaitEvents, numWaitEvents)?)?;
    }
    zeCommandListAppendSignalEvent(state, hCommandList: ze_command_list_handle_t, hEvent: ze_event_handle_t) {
        state.append(hCommandList, Action::Barrier, hEvent, &[])?;
    }
    zeCommandListAppendWaitOnEvents(state, hCommandList: ze_command_list_handle_t, numEvents: u32, phEvents: *mut ze_event_handle_t) {
        let waits = slice(phEvents, numEvents)?;
        state.append(hCommandList, Action::Barrier, ze_event_handle_t::NULL, waits)?;
    }
    zeFenceCreate(state, hCommandQueue: ze_command_queue_handle_t, desc: *const ze_fence_desc_t, phFence: *mut ze_fence_handle_t) {
        find(&mut state.queues, hCommandQueue.0)?;
        tagged(at(desc.cast_mut())?.stype, ze_fence_desc_t::STYPE)?;
        let number = state.number();
        state.fences.insert(number, false);
        put(phFence, ze_fence_handle_t(handle(number)))?;
    }
    zeFenceDestroy(state, hFence: ze_fence_handle_t) {
        take(&mut state.fences, hFence.0)?;
    }
    zeFenceReset(state, hFence: ze_fence_handle_t) {
        *find(&mut state.fences, hFence.0)? = false;
    }
    zeEventPoolCreate(state, hContext: ze_context_handle_t, desc: *const ze_event_pool_desc_t, numDevices: u32, phDevices: *mut ze_device_handle_t, phEventPool: *mut ze_event_pool_handle_t) {
        let _ = (numDevices, phDevices);
        state.context(hContext)?;
        let description = at(desc.cast_mut())?;
        tagged(description.stype, ze_event_pool_desc_t::STYPE)?;
        let number = state.number();
        state.pools.insert(number, Pool { slots: vec![None; description.count as usize] });
        state.owners.insert(number, hContext.0 as usize);
        put(phEventPool, ze_event_pool_handle_t(handle(number)))?;
    }
    zeEventPoolDestroy(state, hEventPool: ze_event_pool_handle_t) {
        let pool = take(&mut state.pools, hEventPool.0)?;
        for event in pool.slots.into_iter().flatten() {
            state.events.remove(&event);
        }
    }
    zeEventCreate(state, hEventPool: ze_event_pool_handle_t, desc: *const ze_event_desc_t, phEvent: *mut ze_event_handle_t) {
        let description = at(desc.cast_mut())?;
        tagged(description.stype, ze_event_desc_t::STYPE)?;
        let number = state.number();
        let pool = find(&mut state.pools, hEventPool.0)?;
        let slot = pool.slots.get_mut(description.index as usize).ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        if slot.is_some() {
            return Err(ZE_RESULT_ERROR_INVALID_ARGUMENT);
        }
        *slot = Some(number);
        state.events.insert(number, false);
        let owner = state.owners.get(&(hEventPool.0 as usize)).copied();
        state.owners.extend(owner.map(|owner| (number, owner)));
        put(phEvent, ze_event_handle_t(handle(number)))?;
    }
    zeEventDestroy(state, hEvent: ze_event_handle_t) {
        let number = number(hEvent.0)?;
        if let Some(last) = state.counters.get(&number).copied() {
            // The driver keeps what its counters still need.
            state.counters.remove(&number);
            if let Some(last) = last.filter(|last| state.events.get(last) == Some(&true)) {
                state.events.remove(&last);
            }
            return Ok(ZE_RESULT_SUCCESS);
        }
        state.unless(state.awaits(number))?;
        take(&mut state.events, hEvent.0)?;
        for slot in state.pools.values_mut().flat_map(|pool| &mut pool.slots) {
            if *slot == Some(hEvent.0 as usize) {
                *slot = None;
            }
        }
    }
    zeEventQueryStatus(state, hEvent: ze_event_handle_t) {
        state.progress();
        if !state.is_signalled(hEvent)? {
            return Ok(ZE_RESULT_NOT_READY);
        }
    }
    zeEventHostSignal(state, hEvent: ze_event_handle_t) {
        *find(&mut state.events, hEvent.0)? = true;
        if !state.lazy {
            state.progress();
        }
    }
    zeEventHostReset(state, hEvent: ze_event_handle_t) {
        let number = number(hEvent.0)?;
        state.unless(state.awaits(number))?;
        *find(&mut state.events, hEvent.0)? = false;
    }
    zeEventCounterBasedCreate(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_event_counter_based_desc_t, phEvent: *mut ze_event_handle_t) {
        state.has_counting()?;
        state.context(hContext)?;
        state.device(hDevice)?;
        tagged(at(desc.cast_mut())?.stype, ze_event_counter_based_desc_t::STYPE)?;
        let number = state.number();
        state.counters.insert(number, None);
        state.owners.insert(number, hContext.0 as usize);
        put(phEvent, ze_event_handle_t(handle(number)))?;
    }
    zeEventQueryKernelTimestamp(state, hEvent: ze_event_handle_t, dstptr: *mut ze_kernel_timestamp_result_t) {
        find(&mut state.events, hEvent.0)?;
        put(dstptr, ze_kernel_timestamp_result_t::default())?;
    }
    zeModuleCreate(state, hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_module_desc_t, phModule: *mut ze_module_handle_t, phBuildLog: *mut ze_module_build_log_handle_t) {
        state.context(hContext)?;
        state.device(hDevice)?;
        let description = at(desc.cast_mut())?;
        tagged(description.stype, ze_module_desc_t::STYPE)?;
        let code = slice(description.pInputModule.cast_mut(), description.inputSize as u32)?;
        let built = match description.format {
            ZE_MODULE_FORMAT_IL_SPIRV => spirv::Module::parse(code),
            format => Err(format!("format {} is not taken", format.0)),
        };
        let said = built.as_ref().err().map_or(String::new(), |reason| format!("error: {reason}"));
        if !phBuildLog.is_null() {
            let number = state.number();
            state.logs.insert(number, CString::new(said).unwrap_or_default());
            put(phBuildLog, ze_module_build_log_handle_t(handle(number)))?;
        }
        let code = Arc::new(built.map_err(|_| ZE_RESULT_ERROR_MODULE_BUILD_FAILURE)?);
        let (number, context) = (state.number(), state.context(hContext)?);
        state.modules.insert(number, Module { code, context });
        put(phModule, ze_module_handle_t(handle(number)))?;
    }
    zeModuleDestroy(state, hModule: ze_module_handle_t) {
        take(&mut state.modules, hModule.0)?;
    }
    zeModuleGetKernelNames(state, hModule: ze_module_handle_t, pCount: *mut u32, pNames: *mut *const c_char) {
        let known = find(&mut state.modules, hModule.0)?.code.entries.len() as u32;
        let room = count(pCount, pNames.is_null(), known)?;
        let module = find(&mut state.modules, hModule.0)?;
        for (index, entry) in module.code.entries.iter().enumerate().take(room as usize) {
            put(pNames.wrapping_add(index), entry.name.as_ptr())?;
        }
    }
    zeModuleGetGlobalPointer(state, hModule: ze_module_handle_t, pGlobalName: *const c_char, pSize: *mut usize, pptr: *mut *mut c_void) {
        find(&mut state.modules, hModule.0)?;
        let _ = (pGlobalName, pSize, pptr);
        return Err(ZE_RESULT_ERROR_INVALID_GLOBAL_NAME);
    }
    zeModuleBuildLogGetString(state, hModuleBuildLog: ze_module_build_log_handle_t, pSize: *mut usize, pBuildLog: *mut c_char) {
        let text = find(&mut state.logs, hModuleBuildLog.0)?.as_bytes_with_nul();
        let size = at(pSize)?;
        if !pBuildLog.is_null() {
            for (index, byte) in text.iter().enumerate().take(*size) {
                put(pBuildLog.wrapping_add(index), *byte as c_char)?;
            }
        }
        *size = text.len();
    }
    zeModuleBuildLogDestroy(state, hModuleBuildLog: ze_module_build_log_handle_t) {
        take(&mut state.logs, hModuleBuildLog.0)?;
    }
    zeKernelCreate(state, hModule: ze_module_handle_t, desc: *const ze_kernel_desc_t, phKernel: *mut ze_kernel_handle_t) {
        let description = at(desc.cast_mut())?;
        tagged(description.stype, ze_kernel_desc_t::STYPE)?;
        let module = find(&mut state.modules, hModule.0)?.clone();
        at(description.pKernelName.cast_mut())?;
        let kernel = Kernel::new(&module, CStr::from_ptr(description.pKernelName));
        let kernel = kernel.ok_or(ZE_RESULT_ERROR_INVALID_KERNEL_NAME)?;
        let number = state.number();
        state.kernels.insert(number, kernel);
        put(phKernel, ze_kernel_handle_t(handle(number)))?;
    }
    zeKernelDestroy(state, hKernel: ze_kernel_handle_t) {
        let number = number(hKernel.0)?;
        let runs = state.queues.values().flatten().any(|command| command.runs(number));
        state.unless(runs)?;
        take(&mut state.kernels, hKernel.0)?;
    }
    zeKernelSetGroupSize(state, hKernel: ze_kernel_handle_t, groupSizeX: u32, groupSizeY: u32, groupSizeZ: u32) {
        let sizes = [groupSizeX, groupSizeY, groupSizeZ];
        let items = sizes.iter().map(|size| u64::from(*size)).product::<u64>();
        if items == 0 || items > u64::from(MAX_GROUP) {
            return Err(ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION);
        }
        find(&mut state.kernels, hKernel.0)?.group = sizes;
    }
    zeKernelSuggestGroupSize(state, hKernel: ze_kernel_handle_t, globalSizeX: u32, globalSizeY: u32, globalSizeZ: u32, groupSizeX: *mut u32, groupSizeY: *mut u32, groupSizeZ: *mut u32) {
        find(&mut state.kernels, hKernel.0)?;
        let _ = (globalSizeY, globalSizeZ);
        let size = (1..=64).rev().find(|size| globalSizeX % *size == 0).unwrap_or(1);
        put(groupSizeX, size)?;
        put(groupSizeY, 1)?;
        put(groupSizeZ, 1)?;
    }
    zeKernelSetArgumentValue(state, hKernel: ze_kernel_handle_t, argIndex: u32, argSize: usize, pArgValue: *const c_void) {
        let argument = if pArgValue.is_null() {
            Argument::Local(argSize)
        } else {
            Argument::Value(slice(pArgValue.cast::<u8>().cast_mut(), argSize as u32)?.to_vec())
        };
        find(&mut state.kernels, hKernel.0)?.set(argIndex as usize, argument)?;
    }
    zeKernelSetIndirectAccess(state, hKernel: ze_kernel_handle_t, flags: ze_kernel_indirect_access_flags_t) {
        find(&mut state.kernels, hKernel.0)?.indirect = flags;
    }
    zeKernelGetProperties(state, hKernel: ze_kernel_handle_t, pKernelProperties: *mut ze_kernel_properties_t) {
        let kernel = find(&mut state.kernels, hKernel.0)?;
        kernel.properties(at(pKernelProperties)?);
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn zeCommandQueueSynchronize(
    hCommandQueue: ze_command_queue_handle_t,
    timeout: u64,
) -> ze_result_t {
    wait("zeCommandQueueSynchronize", timeout, |state| {
        Ok(find(&mut state.queues, hCommandQueue.0)?.is_empty())
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn zeFenceHostSynchronize(
    hFence: ze_fence_handle_t,
    timeout: u64,
) -> ze_result_t {
    wait("zeFenceHostSynchronize", timeout, |state| Ok(*find(&mut state.fences, hFence.0)?))
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn zeEventHostSynchronize(
    hEvent: ze_event_handle_t,
    timeout: u64,
) -> ze_result_t {
    wait("zeEventHostSynchronize", timeout, |state| state.is_signalled(hEvent))
}

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
