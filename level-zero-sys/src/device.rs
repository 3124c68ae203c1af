//! Devices and their limits.

use core::ffi::{c_char, c_void};

use crate::macros::{handle, tagged_default, ze_enum, ze_flags};
use crate::structure::*;

handle!(ze_device_handle_t, "A device or a part of one (sub-device).");

/// Bytes of a device's identifier.
pub const ZE_MAX_DEVICE_UUID_SIZE: usize = 16;
/// Bytes of a name, the final zero included.
pub const ZE_MAX_DEVICE_NAME: usize = 256;
/// Most sub-group sizes that a device can list.
pub const ZE_SUBGROUPSIZE_COUNT: usize = 8;
/// Bytes of the identifier of a native kernel format.
pub const ZE_MAX_NATIVE_KERNEL_UUID_SIZE: usize = 16;

ze_enum! {
    /// The kind of a device.
    ze_device_type_t {
        ZE_DEVICE_TYPE_GPU = 1,
        ZE_DEVICE_TYPE_CPU = 2,
        ZE_DEVICE_TYPE_FPGA = 3,
        ZE_DEVICE_TYPE_MCA = 4,
        ZE_DEVICE_TYPE_VPU = 5,
    }
}

ze_flags! {
    /// Traits of a device.
    ze_device_property_flags_t {
        ZE_DEVICE_PROPERTY_FLAG_INTEGRATED = 1 << 0,
        ZE_DEVICE_PROPERTY_FLAG_SUBDEVICE = 1 << 1,
        ZE_DEVICE_PROPERTY_FLAG_ECC = 1 << 2,
        ZE_DEVICE_PROPERTY_FLAG_ONDEMANDPAGING = 1 << 3,
    }
}

ze_flags! {
    /// Allowed accesses to one kind of memory.
    ze_memory_access_cap_flags_t {
        ZE_MEMORY_ACCESS_CAP_FLAG_RW = 1 << 0,
        ZE_MEMORY_ACCESS_CAP_FLAG_ATOMIC = 1 << 1,
    }
}

ze_flags! {
    /// The abilities of a group's queues.
    ze_command_queue_group_property_flags_t {
        ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE = 1 << 0,
        ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY = 1 << 1,
        ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COOPERATIVE_KERNELS = 1 << 2,
        ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_METRICS = 1 << 3,
    }
}

ze_flags! {
    /// Traits of a memory; none is defined yet.
    ze_device_memory_property_flags_t {
        ZE_DEVICE_MEMORY_PROPERTY_FLAG_TBD = 1 << 0,
    }
}

ze_flags! {
    /// Number formats and atomics that kernels may use.
    ze_device_module_flags_t {
        ZE_DEVICE_MODULE_FLAG_FP16 = 1 << 0,
        ZE_DEVICE_MODULE_FLAG_FP64 = 1 << 1,
        ZE_DEVICE_MODULE_FLAG_INT64_ATOMICS = 1 << 2,
        ZE_DEVICE_MODULE_FLAG_DP4A = 1 << 3,
    }
}

ze_flags! {
    /// The abilities of one device with the memory of another.
    ze_device_p2p_property_flags_t {
        ZE_DEVICE_P2P_PROPERTY_FLAG_ACCESS = 1 << 0,
        ZE_DEVICE_P2P_PROPERTY_FLAG_ATOMICS = 1 << 1,
    }
}

/// Floating-point abilities, a bit set of the specification's `ze_device_fp_flag_t`.
pub type ze_device_fp_flags_t = u32;

/// A device's identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_device_uuid_t {
    pub id: [u8; ZE_MAX_DEVICE_UUID_SIZE],
}

/// Identifier of a native kernel format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ze_native_kernel_uuid_t {
    pub id: [u8; ZE_MAX_NATIVE_KERNEL_UUID_SIZE],
}

/// Answer of `zeDeviceGetProperties`; sizes in bytes, clock in MHz.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_device_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub type_: ze_device_type_t,
    pub vendorId: u32,
    pub deviceId: u32,
    pub flags: ze_device_property_flags_t,
    pub subdeviceId: u32,
    pub coreClockRate: u32,
    pub maxMemAllocSize: u64,
    pub maxHardwareContexts: u32,
    pub maxCommandQueuePriority: u32,
    pub numThreadsPerEU: u32,
    pub physicalEUSimdWidth: u32,
    pub numEUsPerSubslice: u32,
    pub numSubslicesPerSlice: u32,
    pub numSlices: u32,
    pub timerResolution: u64,
    pub timestampValidBits: u32,
    pub kernelTimestampValidBits: u32,
    pub uuid: ze_device_uuid_t,
    pub name: [c_char; ZE_MAX_DEVICE_NAME],
}

tagged_default!(ze_device_properties_t, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES);

/// Answer of `zeDeviceGetComputeProperties`; sizes in work-items, local memory in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_device_compute_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub maxTotalGroupSize: u32,
    pub maxGroupSizeX: u32,
    pub maxGroupSizeY: u32,
    pub maxGroupSizeZ: u32,
    pub maxGroupCountX: u32,
    pub maxGroupCountY: u32,
    pub maxGroupCountZ: u32,
    pub maxSharedLocalMemory: u32,
    pub numSubGroupSizes: u32,
    pub subGroupSizes: [u32; ZE_SUBGROUPSIZE_COUNT],
}

tagged_default!(ze_device_compute_properties_t, ZE_STRUCTURE_TYPE_DEVICE_COMPUTE_PROPERTIES);

/// Answer of `zeDeviceGetModuleProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_device_module_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub spirvVersionSupported: u32,
    pub flags: ze_device_module_flags_t,
    pub fp16flags: ze_device_fp_flags_t,
    pub fp32flags: ze_device_fp_flags_t,
    pub fp64flags: ze_device_fp_flags_t,
    pub maxArgumentsSize: u32,
    pub printfBufferSize: u32,
    pub nativeKernelSupported: ze_native_kernel_uuid_t,
}

tagged_default!(ze_device_module_properties_t, ZE_STRUCTURE_TYPE_DEVICE_MODULE_PROPERTIES);

/// Answer of `zeDeviceGetMemoryProperties`; size in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_device_memory_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub flags: ze_device_memory_property_flags_t,
    pub maxClockRate: u32,
    pub maxBusWidth: u32,
    pub totalSize: u64,
    pub name: [c_char; ZE_MAX_DEVICE_NAME],
}

tagged_default!(ze_device_memory_properties_t, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES);

/// Answer of `zeDeviceGetMemoryAccessProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_device_memory_access_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub hostAllocCapabilities: ze_memory_access_cap_flags_t,
    pub deviceAllocCapabilities: ze_memory_access_cap_flags_t,
    pub sharedSingleDeviceAllocCapabilities: ze_memory_access_cap_flags_t,
    pub sharedCrossDeviceAllocCapabilities: ze_memory_access_cap_flags_t,
    pub sharedSystemAllocCapabilities: ze_memory_access_cap_flags_t,
}

tagged_default!(ze_device_memory_access_properties_t, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_ACCESS_PROPERTIES);

/// Answer of `zeDeviceGetCommandQueueGroupProperties`; pattern size in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_command_queue_group_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub flags: ze_command_queue_group_property_flags_t,
    pub maxMemoryFillPatternSize: usize,
    pub numQueues: u32,
}

tagged_default!(ze_command_queue_group_properties_t, ZE_STRUCTURE_TYPE_COMMAND_QUEUE_GROUP_PROPERTIES);

/// Answer of `zeDeviceGetP2PProperties`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ze_device_p2p_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut c_void,
    pub flags: ze_device_p2p_property_flags_t,
}

tagged_default!(ze_device_p2p_properties_t, ZE_STRUCTURE_TYPE_DEVICE_P2P_PROPERTIES);
