//! Contexts and memory.

use core::ffi::{c_char, c_void};

use crate::macros::{handle, tagged_default, ze_enum, ze_flags};
use crate::structure::*;

handle!(ze_context_handle_t, "A context: the scope of every allocation.");

/// Bytes of a handle for another process.
pub const ZE_MAX_IPC_HANDLE_SIZE: usize = 64;

ze_flags! {
    /// Traits of a context; none is defined yet.
    ze_context_flags_t {
        ZE_CONTEXT_FLAG_TBD = 1 << 0,
    }
}

ze_flags! {
    /// Hints for device and shared memory.
    ze_device_mem_alloc_flags_t {
        ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_CACHED = 1 << 0,
        ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_UNCACHED = 1 << 1,
        ZE_DEVICE_MEM_ALLOC_FLAG_BIAS_INITIAL_PLACEMENT = 1 << 2,
    }
}

ze_flags! {
    /// Hints for host and shared memory.
    ze_host_mem_alloc_flags_t {
        ZE_HOST_MEM_ALLOC_FLAG_BIAS_CACHED = 1 << 0,
        ZE_HOST_MEM_ALLOC_FLAG_BIAS_UNCACHED = 1 << 1,
        ZE_HOST_MEM_ALLOC_FLAG_BIAS_WRITE_COMBINED = 1 << 2,
        ZE_HOST_MEM_ALLOC_FLAG_BIAS_INITIAL_PLACEMENT = 1 << 3,
    }
}

ze_enum! {
    /// Kind of the memory behind a pointer. Later headers may add kinds.
    ze_memory_type_t {
        ZE_MEMORY_TYPE_UNKNOWN = 0,
        ZE_MEMORY_TYPE_HOST = 1,
        ZE_MEMORY_TYPE_DEVICE = 2,
        ZE_MEMORY_TYPE_SHARED = 3,
        ZE_MEMORY_TYPE_HOST_IMPORTED = 4,
    }
}

ze_flags! {
    /// Hints for memory of another process.
    ze_ipc_memory_flags_t {
        ZE_IPC_MEMORY_FLAG_BIAS_CACHED = 1 << 0,
        ZE_IPC_MEMORY_FLAG_BIAS_UNCACHED = 1 << 1,
    }
}

ze_flags! {
    /// The time at which `zeMemFreeExt` frees.
    ze_driver_memory_free_policy_ext_flags_t {
        ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_BLOCKING_FREE = 1 << 0,
        ZE_DRIVER_MEMORY_FREE_POLICY_EXT_FLAG_DEFER_FREE = 1 << 1,
    }
}

ze_flags! {
    /// The limits that an allocation may exceed.
    ze_relaxed_allocation_limits_exp_flags_t {
        ZE_RELAXED_ALLOCATION_LIMITS_EXP_FLAG_MAX_SIZE = 1 << 0,
    }
}

ze_flags! {
    /// Kinds of operating system handles.
    ze_external_memory_type_flags_t {
        ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_FD = 1 << 0,
        ZE_EXTERNAL_MEMORY_TYPE_FLAG_DMA_BUF = 1 << 1,
        ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_WIN32 = 1 << 2,
        ZE_EXTERNAL_MEMORY_TYPE_FLAG_OPAQUE_WIN32_KMT = 1 << 3,
        ZE_EXTERNAL_MEMORY_TYPE_FLAG_D3D11_TEXTURE = 1 << 4,
        ZE_EXTERNAL_MEMORY_TYPE_FLAG_D3D11_TEXTURE_KMT = 1 << 5,
        ZE_EXTERNAL_MEMORY_TYPE_FLAG_D3D12_HEAP = 1 << 6,
        ZE_EXTERNAL_MEMORY_TYPE_FLAG_D3D12_RESOURCE = 1 << 7,
    }
}

ze_flags! {
    /// The atomics that may be used on a range.
    ze_memory_atomic_attr_exp_flags_t {
        ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_ATOMICS = 1 << 0,
        ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_HOST_ATOMICS = 1 << 1,
        ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_HOST_ATOMICS = 1 << 2,
        ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_DEVICE_ATOMICS = 1 << 3,
        ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_DEVICE_ATOMICS = 1 << 4,
        ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_NO_SYSTEM_ATOMICS = 1 << 5,
        ZE_MEMORY_ATOMIC_ATTR_EXP_FLAG_SYSTEM_ATOMICS = 1 << 6,
    }
}

ze_enum! {
    /// Hints of `zeCommandListAppendMemAdvise`.
    ze_memory_advice_t {
        ZE_MEMORY_ADVICE_SET_READ_MOSTLY = 0,
        ZE_MEMORY_ADVICE_CLEAR_READ_MOSTLY = 1,
        ZE_MEMORY_ADVICE_SET_PREFERRED_LOCATION = 2,
        ZE_MEMORY_ADVICE_CLEAR_PREFERRED_LOCATION = 3,
        ZE_MEMORY_ADVICE_SET_NON_ATOMIC_MOSTLY = 4,
        ZE_MEMORY_ADVICE_CLEAR_NON_ATOMIC_MOSTLY = 5,
        ZE_MEMORY_ADVICE_BIAS_CACHED = 6,
        ZE_MEMORY_ADVICE_BIAS_UNCACHED = 7,
        ZE_MEMORY_ADVICE_SET_SYSTEM_MEMORY_PREFERRED_LOCATION = 8,
        ZE_MEMORY_ADVICE_CLEAR_SYSTEM_MEMORY_PREFERRED_LOCATION = 9,
    }
}

/// Argument of `zeContextCreate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_context_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_context_flags_t,
}

tagged_default!(ze_context_desc_t, ZE_STRUCTURE_TYPE_CONTEXT_DESC);

/// Argument of `zeMemAllocDevice` and `zeMemAllocShared`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_device_mem_alloc_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_device_mem_alloc_flags_t,
    pub ordinal: u32,
}

tagged_default!(ze_device_mem_alloc_desc_t, ZE_STRUCTURE_TYPE_DEVICE_MEM_ALLOC_DESC);

/// Argument of `zeMemAllocHost` and `zeMemAllocShared`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_host_mem_alloc_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_host_mem_alloc_flags_t,
}

tagged_default!(ze_host_mem_alloc_desc_t, ZE_STRUCTURE_TYPE_HOST_MEM_ALLOC_DESC);

/// Chained to an allocation above `maxMemAllocSize`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_relaxed_allocation_limits_exp_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_relaxed_allocation_limits_exp_flags_t,
}

tagged_default!(
    ze_relaxed_allocation_limits_exp_desc_t,
    ZE_STRUCTURE_TYPE_RELAXED_ALLOCATION_LIMITS_EXP_DESC
);

/// Answer of `zeMemGetAllocProperties`; page size in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_memory_allocation_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub type_: ze_memory_type_t,
    pub id: u64,
    pub pageSize: u64,
}

tagged_default!(ze_memory_allocation_properties_t, ZE_STRUCTURE_TYPE_MEMORY_ALLOCATION_PROPERTIES);

/// Chained to the query of a driver's properties: the abilities of `zeMemFreeExt`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_driver_memory_free_ext_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub freePolicies: ze_driver_memory_free_policy_ext_flags_t,
}

tagged_default!(ze_driver_memory_free_ext_properties_t, ZE_STRUCTURE_TYPE_DRIVER_MEMORY_FREE_EXT_PROPERTIES);

/// Argument of `zeMemFreeExt`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_memory_free_ext_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub freePolicy: ze_driver_memory_free_policy_ext_flags_t,
}

tagged_default!(ze_memory_free_ext_desc_t, ZE_STRUCTURE_TYPE_MEMORY_FREE_EXT_DESC);

/// Handle of an allocation for another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct ze_ipc_mem_handle_t {
    pub data: [c_char; ZE_MAX_IPC_HANDLE_SIZE],
}

/// Chained to an allocation that will be exported.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_external_memory_export_desc_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_external_memory_type_flags_t,
}

tagged_default!(ze_external_memory_export_desc_t, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_DESC);

/// Chained to a property query: the file descriptor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_external_memory_export_fd_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_external_memory_type_flags_t,
    pub fd: i32,
}

tagged_default!(ze_external_memory_export_fd_t, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_EXPORT_FD);

/// Chained to an allocation made from a file descriptor.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_external_memory_import_fd_t {
    pub stype: ze_structure_type_t,
    pub pNext: *const c_void,
    pub flags: ze_external_memory_type_flags_t,
    pub fd: i32,
}

tagged_default!(ze_external_memory_import_fd_t, ZE_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMPORT_FD);
