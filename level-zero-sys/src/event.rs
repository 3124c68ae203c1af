//! Event pools and events.

use core::ffi::c_void;

use crate::macros::{handle, tagged_default, ze_flags};
use crate::structure::*;

handle!(ze_event_pool_handle_t, "An event pool.");
handle!(ze_event_handle_t, "An event: one slot of a pool.");

ze_flags! {
    /// Traits of a pool.
    ze_event_pool_flags_t {
        ZE_EVENT_POOL_FLAG_HOST_VISIBLE = 1 << 0,
        ZE_EVENT_POOL_FLAG_IPC = 1 << 1,
        ZE_EVENT_POOL_FLAG_KERNEL_TIMESTAMP = 1 << 2,
    }
}

ze_flags! {
    /// How far a signal or a wait makes memory visible.
    ze_event_scope_flags_t {
        ZE_EVENT_SCOPE_FLAG_SUBDEVICE = 1 << 0,
        ZE_EVENT_SCOPE_FLAG_DEVICE = 1 << 1,
        ZE_EVENT_SCOPE_FLAG_HOST = 1 << 2,
    }
}

ze_flags! {
    /// Traits of a counting event.
    ze_event_counter_based_flags_t {
        ZE_EVENT_COUNTER_BASED_FLAG_IMMEDIATE = 1 << 0,
        ZE_EVENT_COUNTER_BASED_FLAG_NON_IMMEDIATE = 1 << 1,
        ZE_EVENT_COUNTER_BASED_FLAG_HOST_VISIBLE = 1 << 2,
        ZE_EVENT_COUNTER_BASED_FLAG_IPC = 1 << 3,
        ZE_EVENT_COUNTER_BASED_FLAG_DEVICE_TIMESTAMP = 1 << 4,
        ZE_EVENT_COUNTER_BASED_FLAG_HOST_TIMESTAMP = 1 << 5,
        ZE_EVENT_COUNTER_BASED_FLAG_GRAPH_EXTERNAL = 1 << 6,
    }
}

/// Argument of `zeEventPoolCreate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_event_pool_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_event_pool_flags_t,
    pub count: u32,
}

tagged_default!(ze_event_pool_desc_t, ZE_STRUCTURE_TYPE_EVENT_POOL_DESC);

/// Argument of `zeEventCreate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_event_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub index: u32,
    pub signal: ze_event_scope_flags_t,
    pub wait: ze_event_scope_flags_t,
}

tagged_default!(ze_event_desc_t, ZE_STRUCTURE_TYPE_EVENT_DESC);

/// Argument of `zeEventCounterBasedCreate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_event_counter_based_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_event_counter_based_flags_t,
    pub signal: ze_event_scope_flags_t,
    pub wait: ze_event_scope_flags_t,
}

tagged_default!(ze_event_counter_based_desc_t, ZE_STRUCTURE_TYPE_EVENT_COUNTER_BASED_DESC);

/// Start and end of a command, in ticks of the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_kernel_timestamp_data_t {
    pub kernelStart: u64,
    pub kernelEnd: u64,
}

/// Answer of `zeEventQueryKernelTimestamp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_kernel_timestamp_result_t {
    pub global: ze_kernel_timestamp_data_t,
    pub context: ze_kernel_timestamp_data_t,
}
