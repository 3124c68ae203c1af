//! Contexts, and the current context of a thread.

use crate::code::{INVALID_CONTEXT, INVALID_VALUE};
use crate::context::{Stack, stack};
use crate::export::{functions, put, waiting};

functions! {
    cuDevicePrimaryCtxRetain(context: *mut usize, device: i32) |state| {
        let primary = match state.device(device)?.primary {
            Some(primary) => primary,
            None => state.create_context(device as usize),
        };
        let device = state.device(device)?;
        device.primary = Some(primary);
        device.holders += 1;
        put(context, primary)?;
    }
    cuDevicePrimaryCtxRelease_v2(device: i32) |state| {
        let device = state.device(device)?;
        device.holders = device.holders.checked_sub(1).ok_or(INVALID_CONTEXT)?;
        if device.holders == 0 {
            if let Some(primary) = device.primary.take() {
                state.destroy_context(primary)?;
            }
        }
    }
    cuCtxCreate_v2(context: *mut usize, _flags: u32, device: i32) |state| {
        state.device(device)?;
        let created = state.create_context(device as usize);
        put(context, created)?;
        stack(|stack| stack.push(created))?;
    }
    cuCtxDestroy_v2(context: usize) |state| {
        if state.devices.iter().any(|device| device.primary == Some(context)) {
            return Err(INVALID_CONTEXT);
        }
        state.destroy_context(context)?;
        stack(|stack| {
            if stack.last() == Some(context) {
                stack.pop();
            }
        });
    }
    cuCtxPushCurrent_v2(context: usize) |state| {
        if !state.is_open(context) {
            return Err(INVALID_CONTEXT);
        }
        stack(|stack| stack.push(context))?;
    }
    cuCtxPopCurrent_v2(context: *mut usize) |_| {
        let popped = stack(Stack::pop).ok_or(INVALID_CONTEXT)?;
        // A caller that does not need the context passes null.
        if !context.is_null() {
            put(context, popped)?;
        }
    }
    cuCtxGetCurrent(context: *mut usize) |_| {
        put(context, stack(|stack| stack.last().unwrap_or(0)))?;
    }
    cuCtxSetCurrent(context: usize) |state| {
        if context != 0 && !state.is_open(context) {
            return Err(INVALID_CONTEXT);
        }
        stack(|stack| {
            stack.pop();
            if context == 0 { Ok(()) } else { stack.push(context) }
        })?;
    }
    cuCtxGetDevice(device: *mut i32) |state| {
        let current = state.current()?;
        put(device, i32::try_from(state.context(current)?.device).map_err(|_| INVALID_VALUE)?)?;
    }
}

waiting! {
    cuCtxSynchronize() |state| {
        let current = state.current()?;
        (current, state.last_of_all(current))
    }
}
