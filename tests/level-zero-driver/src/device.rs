//! The properties of the devices.

use core::ffi::c_char;

use level_zero_sys::*;

use crate::kernel::{LOCAL_MEMORY, MAX_GROUP};

/// Maximum bytes of one allocation.
pub(crate) const MAX_ALLOC: u64 = 1 << 30;
/// Maximum bytes of all allocations.
pub(crate) const MEMORY: u64 = 2 << 30;

/// Writes a name and its final zero.
fn text(field: &mut [c_char], value: &str) {
    for (to, from) in field.iter_mut().zip(value.bytes().chain([0])) {
        *to = from as c_char;
    }
}

/// The properties of device `index`. Keeps the caller's chain.
pub(crate) fn properties(index: usize, out: &mut ze_device_properties_t) {
    let chain = out.pNext;
    *out = ze_device_properties_t {
        pNext: chain,
        type_: ZE_DEVICE_TYPE_GPU,
        vendorId: 0x8086,
        flags: ZE_DEVICE_PROPERTY_FLAG_INTEGRATED,
        coreClockRate: 1000,
        maxMemAllocSize: MAX_ALLOC,
        maxHardwareContexts: 1,
        numThreadsPerEU: 1,
        physicalEUSimdWidth: 8,
        numEUsPerSubslice: 1,
        numSubslicesPerSlice: 1,
        numSlices: 1,
        timerResolution: 1,
        timestampValidBits: 64,
        kernelTimestampValidBits: 64,
        ..Default::default()
    };
    out.uuid.id[0] = index as u8 + 1;
    text(&mut out.name, "usm test device");
}

/// Limits of work-groups.
pub(crate) fn compute(out: &mut ze_device_compute_properties_t) {
    let chain = out.pNext;
    *out = ze_device_compute_properties_t {
        pNext: chain,
        maxTotalGroupSize: MAX_GROUP,
        maxGroupSizeX: MAX_GROUP,
        maxGroupSizeY: MAX_GROUP,
        maxGroupSizeZ: 64,
        maxGroupCountX: u32::MAX,
        maxGroupCountY: u32::MAX,
        maxGroupCountZ: u32::MAX,
        maxSharedLocalMemory: LOCAL_MEMORY,
        numSubGroupSizes: 1,
        ..Default::default()
    };
    out.subGroupSizes[0] = 8;
}

/// The device's only memory.
pub(crate) fn memory(out: &mut ze_device_memory_properties_t) {
    let chain = out.pNext;
    *out = ze_device_memory_properties_t { pNext: chain, totalSize: MEMORY, ..Default::default() };
    text(&mut out.name, "host memory");
}

/// Every kind of memory allows every access, except system memory.
pub(crate) fn access(out: &mut ze_device_memory_access_properties_t) {
    let chain = out.pNext;
    let all = ze_memory_access_cap_flags_t(15);
    *out = ze_device_memory_access_properties_t {
        pNext: chain,
        hostAllocCapabilities: all,
        deviceAllocCapabilities: all,
        sharedSingleDeviceAllocCapabilities: all,
        sharedCrossDeviceAllocCapabilities: all,
        ..Default::default()
    };
}

/// The only queue group: compute and copy.
pub(crate) fn queue_group(out: &mut ze_command_queue_group_properties_t) {
    let chain = out.pNext;
    *out = ze_command_queue_group_properties_t {
        pNext: chain,
        flags: ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE | ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COPY,
        maxMemoryFillPatternSize: 128,
        numQueues: 1,
        ..Default::default()
    };
}
