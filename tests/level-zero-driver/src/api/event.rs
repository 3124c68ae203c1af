//! Event pools and events.

use level_zero_sys::*;

use super::{api, at, put, tagged};
use crate::queue::wait;
use crate::state::{Pool, enter, find, handle, number, take};

api! {
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
            // Keeps the records that counters still need.
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
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn zeEventHostSynchronize(
    hEvent: ze_event_handle_t,
    timeout: u64,
) -> ze_result_t {
    wait("zeEventHostSynchronize", timeout, |state| state.is_signalled(hEvent))
}
