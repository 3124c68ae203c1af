//! Command queues, command lists, fences.

use core::ffi::c_void;

use crate::macros::{handle, tagged_default, ze_enum, ze_flags};
use crate::structure::*;

handle!(ze_command_queue_handle_t, "A command queue.");
handle!(ze_command_list_handle_t, "A command list; an immediate one is its own queue.");
handle!(ze_fence_handle_t, "A fence: signalled when the lists of one submission are done.");

ze_flags! {
    /// Traits of a queue.
    ze_command_queue_flags_t {
        ZE_COMMAND_QUEUE_FLAG_EXPLICIT_ONLY = 1 << 0,
        ZE_COMMAND_QUEUE_FLAG_IN_ORDER = 1 << 1,
        ZE_COMMAND_QUEUE_FLAG_COPY_OFFLOAD_HINT = 1 << 2,
    }
}

ze_enum! {
    /// Whether a submission returns before its work is complete.
    ze_command_queue_mode_t {
        ZE_COMMAND_QUEUE_MODE_DEFAULT = 0,
        ZE_COMMAND_QUEUE_MODE_SYNCHRONOUS = 1,
        ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS = 2,
    }
}

ze_enum! {
    /// Priority of a queue.
    ze_command_queue_priority_t {
        ZE_COMMAND_QUEUE_PRIORITY_NORMAL = 0,
        ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_LOW = 1,
        ZE_COMMAND_QUEUE_PRIORITY_PRIORITY_HIGH = 2,
    }
}

ze_flags! {
    /// Traits of a list.
    ze_command_list_flags_t {
        ZE_COMMAND_LIST_FLAG_RELAXED_ORDERING = 1 << 0,
        ZE_COMMAND_LIST_FLAG_MAXIMIZE_THROUGHPUT = 1 << 1,
        ZE_COMMAND_LIST_FLAG_EXPLICIT_ONLY = 1 << 2,
        ZE_COMMAND_LIST_FLAG_IN_ORDER = 1 << 3,
        ZE_COMMAND_LIST_FLAG_EXP_CLONEABLE = 1 << 4,
        ZE_COMMAND_LIST_FLAG_COPY_OFFLOAD_HINT = 1 << 5,
    }
}

ze_flags! {
    /// Traits of a fence.
    ze_fence_flags_t {
        ZE_FENCE_FLAG_SIGNALED = 1 << 0,
    }
}

/// Argument of `zeCommandQueueCreate` and `zeCommandListCreateImmediate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_command_queue_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub ordinal: u32,
    pub index: u32,
    pub flags: ze_command_queue_flags_t,
    pub mode: ze_command_queue_mode_t,
    pub priority: ze_command_queue_priority_t,
}

tagged_default!(ze_command_queue_desc_t, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_DESC);

/// Argument of `zeCommandListCreate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_command_list_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub commandQueueGroupOrdinal: u32,
    pub flags: ze_command_list_flags_t,
}

tagged_default!(ze_command_list_desc_t, ZE_STRUCTURE_TYPE_COMMAND_LIST_DESC);

/// Argument of `zeFenceCreate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_fence_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_fence_flags_t,
}

tagged_default!(ze_fence_desc_t, ZE_STRUCTURE_TYPE_FENCE_DESC);

/// A box of a copy: origin and width in bytes along X, rows along Y, slices along Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_copy_region_t {
    pub originX: u32,
    pub originY: u32,
    pub originZ: u32,
    pub width: u32,
    pub height: u32,
    pub depth: u32,
}
