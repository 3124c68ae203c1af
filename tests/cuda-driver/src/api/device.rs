//! The driver and its devices.

use core::ffi::c_char;

use crate::code::{INVALID_DEVICE, INVALID_VALUE};
use crate::export::{functions, put};
use crate::kernel::{MAX_GROUP, MAX_GROUPS, MAX_SIZES, SHARED_MEMORY};

/// What the driver says it is: a version with memory pools and sizes of parameters.
const VERSION: i32 = 12_040;
/// Nothing takes it for a GPU.
const NAME: &[u8] = b"usm host-executing test device\0";
/// Attributes below this are known.
const ATTRIBUTES: i32 = 150;

functions! {
    cuInit(flags: u32) |state| {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        state.initialized = true;
    }
    cuDriverGetVersion(version: *mut i32) |_| { put(version, VERSION)?; }
    cuDeviceGetCount(count: *mut i32) |state| { put(count, state.devices.len() as i32)?; }
    cuDeviceGet(device: *mut i32, ordinal: i32) |state| {
        state.device(ordinal)?;
        put(device, ordinal)?;
    }
    cuDeviceGetName(name: *mut c_char, length: i32, device: i32) |state| {
        state.device(device)?;
        let length = usize::try_from(length).ok().filter(|length| *length > 0 && !name.is_null());
        for (index, byte) in NAME.iter().take(length.ok_or(INVALID_VALUE)?).enumerate() {
            name.add(index).write(*byte as c_char);
        }
    }
    cuDeviceTotalMem_v2(bytes: *mut usize, device: i32) |state| {
        state.device(device)?;
        put(bytes, state.settings.memory)?;
    }
    cuDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) |state| {
        state.device(device)?;
        if !(1..ATTRIBUTES).contains(&attribute) {
            return Err(INVALID_VALUE);
        }
        put(value, match attribute {
            // Threads of a block, in all and in each direction.
            1 => MAX_GROUP as i32,
            2..=4 => MAX_SIZES[attribute as usize - 2] as i32,
            // Groups of a grid in each direction.
            5..=7 => MAX_GROUPS[attribute as usize - 5] as i32,
            8 => SHARED_MEMORY as i32,
            // Threads of a warp.
            10 => 32,
            // Bytes between rows of a copy.
            11 => i32::MAX,
            // One address space for all.
            41 => 1,
            // Of a device that no compiler knows: code for it is PTX.
            75 => 99,
            // Managed memory, and whether the host may use it beside the device.
            83 => 1,
            89 => i32::from(state.settings.concurrent),
            // Memory pools.
            115 => 1,
            _ => 0,
        })?;
    }
    cuDeviceGetMemPool | cuDeviceGetDefaultMemPool(pool: *mut usize, device: i32) |state| {
        state.device(device)?;
        put(pool, crate::pool::default_of(device as usize))?;
    }
    cuDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) |state| {
        if state.device(device).is_err() || state.device(peer).is_err() {
            return Err(INVALID_DEVICE);
        }
        put(can, i32::from(device != peer))?;
    }
}
