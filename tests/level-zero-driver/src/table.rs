//! The 53 function tables that the loader requests, of which this driver fills 13.
//!
//! An entry is given by its index in the header's table, because later headers only append. For
//! empty entries the loader answers "uninitialised".

use core::ffi::c_void;

use level_zero_sys::{
    ZE_RESULT_ERROR_INVALID_NULL_POINTER, ZE_RESULT_SUCCESS, ze_api_version_t, ze_result_t,
};

use crate::api;

macro_rules! tables {
    ($($getter:ident { $($place:literal $function:ident),* })*) => {$(
        /// Fills one table of the loader.
        ///
        /// # Safety
        ///
        /// `table` is null or the loader's table of header 1.4 or later.
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $getter(_version: ze_api_version_t, table: *mut *const c_void) -> ze_result_t {
            if table.is_null() {
                return ZE_RESULT_ERROR_INVALID_NULL_POINTER;
            }
            $(
                // SAFETY: the table has this entry since header 1.4.
                unsafe { table.wrapping_add($place).write(api::$function as *const c_void) };
            )*
            ZE_RESULT_SUCCESS
        }
    )*};
}

tables! {
    zeGetGlobalProcAddrTable {
        0 zeInit
    }
    zeGetDriverProcAddrTable {
        0 zeDriverGet,
        1 zeDriverGetApiVersion,
        2 zeDriverGetProperties,
        3 zeDriverGetIpcProperties,
        5 zeDriverGetExtensionFunctionAddress
    }
    zeGetDeviceProcAddrTable {
        0 zeDeviceGet,
        1 zeDeviceGetSubDevices,
        2 zeDeviceGetProperties,
        3 zeDeviceGetComputeProperties,
        4 zeDeviceGetModuleProperties,
        5 zeDeviceGetCommandQueueGroupProperties,
        6 zeDeviceGetMemoryProperties,
        7 zeDeviceGetMemoryAccessProperties,
        11 zeDeviceGetP2PProperties,
        12 zeDeviceCanAccessPeer
    }
    zeGetContextProcAddrTable {
        0 zeContextCreate,
        1 zeContextDestroy,
        4 zeContextMakeMemoryResident,
        5 zeContextEvictMemory
    }
    zeGetCommandQueueProcAddrTable {
        0 zeCommandQueueCreate,
        1 zeCommandQueueDestroy,
        2 zeCommandQueueExecuteCommandLists,
        3 zeCommandQueueSynchronize
    }
    zeGetCommandListProcAddrTable {
        0 zeCommandListCreate,
        1 zeCommandListCreateImmediate,
        2 zeCommandListDestroy,
        3 zeCommandListClose,
        4 zeCommandListReset,
        6 zeCommandListAppendBarrier,
        8 zeCommandListAppendMemoryCopy,
        9 zeCommandListAppendMemoryFill,
        10 zeCommandListAppendMemoryCopyRegion,
        16 zeCommandListAppendMemoryPrefetch,
        17 zeCommandListAppendMemAdvise,
        18 zeCommandListAppendSignalEvent,
        19 zeCommandListAppendWaitOnEvents,
        22 zeCommandListAppendLaunchKernel
    }
    zeGetFenceProcAddrTable {
        0 zeFenceCreate,
        1 zeFenceDestroy,
        2 zeFenceHostSynchronize,
        4 zeFenceReset
    }
    zeGetEventPoolProcAddrTable {
        0 zeEventPoolCreate,
        1 zeEventPoolDestroy
    }
    zeGetEventProcAddrTable {
        0 zeEventCreate,
        1 zeEventDestroy,
        2 zeEventHostSignal,
        3 zeEventHostSynchronize,
        4 zeEventQueryStatus,
        5 zeEventHostReset,
        6 zeEventQueryKernelTimestamp
    }
    zeGetModuleProcAddrTable {
        0 zeModuleCreate,
        1 zeModuleDestroy,
        4 zeModuleGetGlobalPointer,
        5 zeModuleGetKernelNames
    }
    zeGetModuleBuildLogProcAddrTable {
        0 zeModuleBuildLogDestroy,
        1 zeModuleBuildLogGetString
    }
    zeGetKernelProcAddrTable {
        0 zeKernelCreate,
        1 zeKernelDestroy,
        3 zeKernelSetGroupSize,
        4 zeKernelSuggestGroupSize,
        6 zeKernelSetArgumentValue,
        7 zeKernelSetIndirectAccess,
        10 zeKernelGetProperties
    }
    zeGetMemProcAddrTable {
        0 zeMemAllocShared,
        1 zeMemAllocDevice,
        2 zeMemAllocHost,
        3 zeMemFree,
        4 zeMemGetAllocProperties,
        5 zeMemGetAddressRange,
        6 zeMemGetIpcHandle,
        7 zeMemOpenIpcHandle,
        8 zeMemCloseIpcHandle,
        9 zeMemFreeExt
    }
    zeGetDeviceExpProcAddrTable {}
    zeGetImageProcAddrTable {}
    zeGetImageExpProcAddrTable {}
    zeGetEventExpProcAddrTable {}
    zeGetKernelExpProcAddrTable {}
    zeGetSamplerProcAddrTable {}
    zeGetPhysicalMemProcAddrTable {}
    zeGetVirtualMemProcAddrTable {}
    zeGetFabricVertexExpProcAddrTable {}
    zeGetFabricEdgeExpProcAddrTable {}
    zetGetDeviceProcAddrTable {}
    zetGetContextProcAddrTable {}
    zetGetCommandListProcAddrTable {}
    zetGetModuleProcAddrTable {}
    zetGetKernelProcAddrTable {}
    zetGetMetricGroupProcAddrTable {}
    zetGetMetricGroupExpProcAddrTable {}
    zetGetMetricProcAddrTable {}
    zetGetMetricStreamerProcAddrTable {}
    zetGetMetricQueryPoolProcAddrTable {}
    zetGetMetricQueryProcAddrTable {}
    zetGetTracerExpProcAddrTable {}
    zetGetDebugProcAddrTable {}
    zesGetDriverProcAddrTable {}
    zesGetDeviceProcAddrTable {}
    zesGetSchedulerProcAddrTable {}
    zesGetPerformanceFactorProcAddrTable {}
    zesGetPowerProcAddrTable {}
    zesGetFrequencyProcAddrTable {}
    zesGetEngineProcAddrTable {}
    zesGetStandbyProcAddrTable {}
    zesGetFirmwareProcAddrTable {}
    zesGetMemoryProcAddrTable {}
    zesGetFabricPortProcAddrTable {}
    zesGetTemperatureProcAddrTable {}
    zesGetPsuProcAddrTable {}
    zesGetFanProcAddrTable {}
    zesGetLedProcAddrTable {}
    zesGetRasProcAddrTable {}
    zesGetDiagnosticsProcAddrTable {}
}
