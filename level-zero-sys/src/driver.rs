//! Initialisation and drivers.

use core::ffi::c_void;

use crate::error::Error;
use crate::macros::{handle, tagged_default, ze_flags};
use crate::structure::*;
use crate::version::ze_api_version_t;

handle!(ze_driver_handle_t, "A driver.");

/// Bytes of a driver's identifier.
pub const ZE_MAX_DRIVER_UUID_SIZE: usize = 16;

ze_flags! {
    /// The drivers that `zeInit` looks for; no bit means all.
    ze_init_flags_t {
        ZE_INIT_FLAG_GPU_ONLY = 1 << 0,
        ZE_INIT_FLAG_VPU_ONLY = 1 << 1,
    }
}

ze_flags! {
    /// The drivers that `zeInitDrivers` looks for.
    ze_init_driver_type_flags_t {
        ZE_INIT_DRIVER_TYPE_FLAG_GPU = 1 << 0,
        ZE_INIT_DRIVER_TYPE_FLAG_NPU = 1 << 1,
    }
}

impl ze_api_version_t {
    /// The version itself if this crate supports it: the same major number, and at least the minor
    /// number of [`MINIMUM`](Self::MINIMUM).
    ///
    /// # Errors
    ///
    /// [`Error::UnsupportedVersion`].
    pub const fn check(self) -> Result<Self, Error> {
        if self.major() == Self::MINIMUM.major() && self.minor() >= Self::MINIMUM.minor() {
            Ok(self)
        } else {
            Err(Error::UnsupportedVersion { version: self })
        }
    }
}

ze_flags! {
    /// Objects that can be shared between processes.
    ze_ipc_property_flags_t {
        ZE_IPC_PROPERTY_FLAG_MEMORY = 1 << 0,
        ZE_IPC_PROPERTY_FLAG_EVENT_POOL = 1 << 1,
    }
}

/// A driver's identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_driver_uuid_t {
    pub id: [u8; ZE_MAX_DRIVER_UUID_SIZE],
}

/// Answer of `zeDriverGetProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_driver_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub uuid: ze_driver_uuid_t,
    pub driverVersion: u32,
}

tagged_default!(ze_driver_properties_t, ZE_STRUCTURE_TYPE_DRIVER_PROPERTIES);

/// Answer of `zeDriverGetIpcProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_driver_ipc_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub flags: ze_ipc_property_flags_t,
}

tagged_default!(ze_driver_ipc_properties_t, ZE_STRUCTURE_TYPE_DRIVER_IPC_PROPERTIES);

/// Argument of `zeInitDrivers`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_init_driver_type_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_init_driver_type_flags_t,
}

tagged_default!(ze_init_driver_type_desc_t, ZE_STRUCTURE_TYPE_INIT_DRIVER_TYPE_DESC);
