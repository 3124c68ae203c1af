//! Queues, command lists, appended commands, fences.

use alloc::collections::VecDeque;
use core::ffi::c_void;

use level_zero_sys::*;

use super::{api, at, put, slice, tagged};
use crate::command::{Action, Side};
use crate::queue::wait;
use crate::state::{List, enter, find, handle, number, take};

api! {
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
