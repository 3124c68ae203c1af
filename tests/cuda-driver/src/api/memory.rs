//! Allocations, and queries of addresses.

use core::ffi::c_void;

use crate::code::{Answer, INVALID_VALUE};
use crate::export::{NO_WAIT, functions, put, waiting};
use crate::memory::{Allocation, Kind, Origin};
use crate::state::State;

/// `CU_MEMHOSTALLOC_PORTABLE`, `_DEVICEMAP` and `_WRITECOMBINED`.
const HOST_FLAGS: u32 = 7;

waiting! {
    cuMemFree_v2(address: usize) |state| {
        let current = state.current()?;
        state.free(address, false)?;
        match state.settings.frees_wait {
            true => (current, state.last_of_all(current)),
            false => NO_WAIT,
        }
    }
}

functions! {
    cuMemAlloc_v2(address: *mut usize, bytes: usize) |state| {
        let context = state.current()?;
        put(address, state.allocate(context, Kind::Device, bytes, Origin::Plain)?)?;
    }
    cuMemHostAlloc(address: *mut usize, bytes: usize, flags: u32) |state| {
        let context = state.current()?;
        if flags & !HOST_FLAGS != 0 {
            return Err(INVALID_VALUE);
        }
        put(address, state.allocate(context, Kind::Host, bytes, Origin::Plain)?)?;
    }
    cuMemAllocManaged(address: *mut usize, bytes: usize, flags: u32) |state| {
        let context = state.current()?;
        // `CU_MEM_ATTACH_GLOBAL` or `_HOST`.
        if !matches!(flags, 1 | 2) {
            return Err(INVALID_VALUE);
        }
        put(address, state.allocate(context, Kind::Managed, bytes, Origin::Plain)?)?;
    }
    cuMemFreeHost(address: usize) |state| {
        state.current()?;
        state.free(address, true)?;
    }
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize) |state| {
        let device = state.current().and_then(|current| Ok(state.context(current)?.device))?;
        let used = state.used(Kind::Device, device);
        put(free, state.settings.memory.saturating_sub(used))?;
        put(total, state.settings.memory)?;
    }
    cuMemGetAddressRange_v2(base: *mut usize, bytes: *mut usize, address: usize) |state| {
        state.current()?;
        let (start, live) = state.lookup(address).ok_or(INVALID_VALUE)?;
        put(base, start)?;
        put(bytes, live.size)?;
    }
    cuPointerGetAttribute(answer: *mut c_void, attribute: i32, address: usize) |state| {
        state.current()?;
        let found = state.lookup(address).ok_or(INVALID_VALUE)?;
        answer_to(state, attribute, answer, address, Some(found))?;
    }
    cuPointerGetAttributes(
        count: u32, attributes: *const i32, answers: *const *mut c_void, address: usize,
    ) |state| {
        state.current()?;
        if attributes.is_null() || answers.is_null() {
            return Err(INVALID_VALUE);
        }
        // For an address unknown to the driver, every answer is zero.
        let found = state.lookup(address);
        for index in 0..count as usize {
            answer_to(state, attributes.add(index).read(), answers.add(index).read(), address, found)?;
        }
    }
}

/// Answers one `CUpointer_attribute` of an address.
///
/// # Safety
/// `answer` is null or has room for the attribute's type.
unsafe fn answer_to(
    state: &State,
    attribute: i32,
    answer: *mut c_void,
    address: usize,
    found: Option<(usize, &Allocation)>,
) -> Answer {
    const HOST: u32 = 1;
    const DEVICE: u32 = 2;
    let kind = found.map(|(_, live)| live.kind);
    let (number, word) = (answer.cast::<u32>(), answer.cast::<usize>());
    // SAFETY: the caller's promise; the attribute determines the type.
    unsafe {
        match attribute {
            // Memory of a pool belongs to no context.
            1 => {
                put(word, found.filter(|(_, live)| live.pool().is_none()).map_or(0, |(_, live)| live.context))
            }
            2 => {
                let memory_type = match kind {
                    None => 0,
                    Some(Kind::Host) => HOST,
                    Some(Kind::Device | Kind::Managed) => DEVICE,
                };
                put(number, state.faults.memory_type.unwrap_or(memory_type))
            }
            3 => put(word, found.map_or(0, |_| address)),
            4 => put(word, if matches!(kind, Some(Kind::Host | Kind::Managed)) { address } else { 0 }),
            7 => put(word, found.map_or(0, |(_, live)| live.id as usize)),
            8 => put(number, u32::from(kind == Some(Kind::Managed))),
            9 => put(number, found.map_or(0, |(_, live)| live.device as u32)),
            11 => put(word, found.map_or(0, |(start, _)| start)),
            17 => put(word, found.and_then(|(_, live)| live.pool()).unwrap_or(0)),
            12 => put(word, found.map_or(0, |(_, live)| live.size)),
            _ => Err(INVALID_VALUE),
        }
    }
}
