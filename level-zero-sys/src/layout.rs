//! The layout of every structure on 64-bit targets, checked when this crate is compiled.
//!
//! The numbers come from the C header. The tests take them again if a header is installed.

/// Name, size and field offsets of a structure, all in bytes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub name: &'static str,
    pub size: usize,
    pub fields: &'static [(&'static str, usize)],
}

macro_rules! layouts {
    ($($structure:ident $size:literal { $($field:ident $offset:literal),* })*) => {
        #[cfg(target_pointer_width = "64")]
        const _: () = {
            $(
                assert!(size_of::<crate::$structure>() == $size, stringify!($structure));
                $(
                    assert!(
                        core::mem::offset_of!(crate::$structure, $field) == $offset,
                        concat!(stringify!($structure), ".", stringify!($field)),
                    );
                )*
            )*
        };

        #[doc(hidden)]
        pub const LAYOUTS: &[Layout] = &[$(
            Layout {
                name: stringify!($structure),
                size: $size,
                fields: &[$((stringify!($field), $offset)),*],
            },
        )*];
    };
}

layouts! {
    ze_driver_uuid_t 16 { id 0 }
    ze_driver_properties_t 40 { stype 0, pNext 8, uuid 16, driverVersion 32 }
    ze_driver_ipc_properties_t 24 { stype 0, pNext 8, flags 16 }
    ze_init_driver_type_desc_t 24 { stype 0, pNext 8, flags 16 }
    ze_device_uuid_t 16 { id 0 }
    ze_native_kernel_uuid_t 16 { id 0 }
    ze_device_properties_t 368 {
        stype 0, pNext 8, type_ 16, vendorId 20, deviceId 24, flags 28, subdeviceId 32,
        coreClockRate 36, maxMemAllocSize 40, maxHardwareContexts 48, maxCommandQueuePriority 52,
        numThreadsPerEU 56, physicalEUSimdWidth 60, numEUsPerSubslice 64, numSubslicesPerSlice 68,
        numSlices 72, timerResolution 80, timestampValidBits 88, kernelTimestampValidBits 92, uuid
        96, name 112
    }
    ze_device_compute_properties_t 88 {
        stype 0, pNext 8, maxTotalGroupSize 16, maxGroupSizeX 20, maxGroupSizeY 24, maxGroupSizeZ
        28, maxGroupCountX 32, maxGroupCountY 36, maxGroupCountZ 40, maxSharedLocalMemory 44,
        numSubGroupSizes 48, subGroupSizes 52
    }
    ze_device_module_properties_t 64 {
        stype 0, pNext 8, spirvVersionSupported 16, flags 20, fp16flags 24, fp32flags 28, fp64flags
        32, maxArgumentsSize 36, printfBufferSize 40, nativeKernelSupported 44
    }
    ze_device_memory_properties_t 296 {
        stype 0, pNext 8, flags 16, maxClockRate 20, maxBusWidth 24, totalSize 32, name 40
    }
    ze_device_memory_access_properties_t 40 {
        stype 0, pNext 8, hostAllocCapabilities 16, deviceAllocCapabilities 20,
        sharedSingleDeviceAllocCapabilities 24, sharedCrossDeviceAllocCapabilities 28,
        sharedSystemAllocCapabilities 32
    }
    ze_command_queue_group_properties_t 40 {
        stype 0, pNext 8, flags 16, maxMemoryFillPatternSize 24, numQueues 32
    }
    ze_device_p2p_properties_t 24 { stype 0, pNext 8, flags 16 }
    ze_context_desc_t 24 { stype 0, pNext 8, flags 16 }
    ze_device_mem_alloc_desc_t 24 { stype 0, pNext 8, flags 16, ordinal 20 }
    ze_host_mem_alloc_desc_t 24 { stype 0, pNext 8, flags 16 }
    ze_relaxed_allocation_limits_exp_desc_t 24 { stype 0, pNext 8, flags 16 }
    ze_memory_allocation_properties_t 40 { stype 0, pNext 8, type_ 16, id 24, pageSize 32 }
    ze_driver_memory_free_ext_properties_t 24 { stype 0, pNext 8, freePolicies 16 }
    ze_memory_free_ext_desc_t 24 { stype 0, pNext 8, freePolicy 16 }
    ze_ipc_mem_handle_t 64 { data 0 }
    ze_external_memory_export_desc_t 24 { stype 0, pNext 8, flags 16 }
    ze_external_memory_export_fd_t 24 { stype 0, pNext 8, flags 16, fd 20 }
    ze_external_memory_import_fd_t 24 { stype 0, pNext 8, flags 16, fd 20 }
    ze_command_queue_desc_t 40 {
        stype 0, pNext 8, ordinal 16, index 20, flags 24, mode 28, priority 32
    }
    ze_command_list_desc_t 24 { stype 0, pNext 8, commandQueueGroupOrdinal 16, flags 20 }
    ze_fence_desc_t 24 { stype 0, pNext 8, flags 16 }
    ze_copy_region_t 24 { originX 0, originY 4, originZ 8, width 12, height 16, depth 20 }
    ze_event_pool_desc_t 24 { stype 0, pNext 8, flags 16, count 20 }
    ze_event_desc_t 32 { stype 0, pNext 8, index 16, signal 20, wait 24 }
    ze_event_counter_based_desc_t 32 { stype 0, pNext 8, flags 16, signal 20, wait 24 }
    ze_kernel_timestamp_data_t 16 { kernelStart 0, kernelEnd 8 }
    ze_kernel_timestamp_result_t 32 { global 0, context 16 }
    ze_module_constants_t 24 { numConstants 0, pConstantIds 8, pConstantValues 16 }
    ze_module_desc_t 56 {
        stype 0, pNext 8, format 16, inputSize 24, pInputModule 32, pBuildFlags 40, pConstants 48
    }
    ze_kernel_desc_t 32 { stype 0, pNext 8, flags 16, pKernelName 24 }
    ze_kernel_uuid_t 32 { kid 0, mid 16 }
    ze_kernel_properties_t 96 {
        stype 0, pNext 8, numKernelArgs 16, requiredGroupSizeX 20, requiredGroupSizeY 24,
        requiredGroupSizeZ 28, requiredNumSubGroups 32, requiredSubgroupSize 36, maxSubgroupSize 40,
        maxNumSubgroups 44, localMemSize 48, privateMemSize 52, spillMemSize 56, uuid 60
    }
    ze_kernel_preferred_group_size_properties_t 24 { stype 0, pNext 8, preferredMultiple 16 }
    ze_group_count_t 12 { groupCountX 0, groupCountY 4, groupCountZ 8 }
    ze_group_size_t 12 { groupSizeX 0, groupSizeY 4, groupSizeZ 8 }
}
