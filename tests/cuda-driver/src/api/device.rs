//! The driver and its devices.

use core::ffi::c_char;

use crate::code::{INVALID_DEVICE, INVALID_VALUE};
use crate::export::{functions, put};
use crate::kernel::{MAX_GROUP, MAX_GROUPS, MAX_SIZES, SHARED_MEMORY};

/// The driver's version. This one has memory pools and queries of parameter sizes.
const VERSION: i32 = 12_040;
/// The name shows that this is no GPU.
const NAME: &[u8] = b"usm host-executing test device\0";
/// Attributes from this number on are unknown.
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
            // Maximum threads of a block: in total, then in each direction.
            1 => MAX_GROUP as i32,
            2..=4 => MAX_SIZES[attribute as usize - 2] as i32,
            // Maximum groups of a grid in each direction.
            5..=7 => MAX_GROUPS[attribute as usize - 5] as i32,
            8 => SHARED_MEMORY as i32,
            // Threads of a warp.
            10 => 32,
            // Maximum bytes between the rows of a copy.
            11 => i32::MAX,
            // All memory has one address space.
            41 => 1,
            // A compute capability that no compiler knows, so code for this device is PTX.
            75 => 99,
            // Managed memory, and concurrent host access to it.
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
