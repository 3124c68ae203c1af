//! The function table: one optional entry for each function, filled by name. No library is linked.

use core::ffi::{CStr, c_char, c_void};

use crate::device::*;
use crate::driver::*;
use crate::error::Error;
use crate::event::*;
use crate::memory::*;
use crate::module::*;
use crate::queue::*;
use crate::result::*;
use crate::version::ze_api_version_t;

/// A truth value: zero is false.
pub type ze_bool_t = u8;

/// Converts the result of a function into a `Result`.
trait Answer {
    fn check(self, function: &'static str) -> Result<Self, Error>
    where
        Self: Sized;
}

impl Answer for ze_result_t {
    fn check(self, function: &'static str) -> Result<Self, Error> {
        if self.is_success() { Ok(self) } else { Err(Error::Call { function, result: self }) }
    }
}

impl Answer for ze_context_handle_t {
    fn check(self, _function: &'static str) -> Result<Self, Error> {
        Ok(self)
    }
}

/// The return type of a function: a result code unless another one is given.
macro_rules! answer {
    () => {
        ze_result_t
    };
    ($type:ty) => {
        $type
    };
}

macro_rules! functions {
    (
        required { $(fn $required:ident($($ra:ident: $rt:ty),* $(,)?);)* }
        optional { $(fn $optional:ident($($oa:ident: $ot:ty),* $(,)?) $(-> $or:ty)?;)* }
    ) => {
        /// The functions of a Level Zero library.
        ///
        /// The fields are the entries as found. The methods of the same names call them. A missing
        /// entry is [`Error::MissingSymbol`], a failure code is [`Error::Call`], and a success code
        /// ("not ready" is one) is the value. All methods are unsafe for the same reason: the
        /// arguments must follow the specification, and `zeInit` must have succeeded before any
        /// other call.
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct Functions {
            $(pub $required: Option<unsafe extern "C" fn($($ra: $rt),*) -> ze_result_t>,)*
            $(pub $optional: Option<unsafe extern "C" fn($($oa: $ot),*) -> answer!($($or)?)>,)*
        }

        #[allow(clippy::too_many_arguments, reason = "the arguments are the specification's")]
        impl Functions {
            /// Functions of header 1.4: a library without one of them is not usable.
            pub const REQUIRED: &'static [&'static str] = &[$(stringify!($required)),*];
            /// Functions of later headers, absent from older libraries.
            pub const OPTIONAL: &'static [&'static str] = &[$(stringify!($optional)),*];
            /// A table without functions.
            pub const EMPTY: Self = Self { $($required: None,)* $($optional: None,)* };

            /// Fills the table by name; `find` returns null for a missing function.
            ///
            /// # Safety
            ///
            /// `find` returns null, or the address of the Level Zero function of that name. The
            /// function stays callable while the table or a copy of it is used.
            pub unsafe fn resolve(mut find: impl FnMut(&CStr) -> *const c_void) -> Self {
                let mut table = Self::EMPTY;
                $(
                    let address = find(name(concat!(stringify!($required), "\0")));
                    // SAFETY: null becomes None; the caller guarantees that every other address has
                    // this signature.
                    table.$required = unsafe { core::mem::transmute::<*const c_void, Option<unsafe extern "C" fn($($ra: $rt),*) -> ze_result_t>>(address) };
                )*
                $(
                    let address = find(name(concat!(stringify!($optional), "\0")));
                    // SAFETY: as above.
                    table.$optional = unsafe { core::mem::transmute::<*const c_void, Option<unsafe extern "C" fn($($oa: $ot),*) -> answer!($($or)?)>>(address) };
                )*
                table
            }

            /// The first required function that the table lacks.
            #[must_use]
            pub fn missing(&self) -> Option<&'static str> {
                $(if self.$required.is_none() { return Some(stringify!($required)); })*
                None
            }

            $(
                #[doc = concat!("Calls `", stringify!($required), "`.")]
                ///
                /// # Errors
                ///
                /// The function is missing, or answered a failure code.
                ///
                /// # Safety
                ///
                /// The arguments follow the function's specification.
                pub unsafe fn $required(&self, $($ra: $rt),*) -> Result<ze_result_t, Error> {
                    let function = self.$required.ok_or(Error::MissingSymbol { name: stringify!($required) })?;
                    // SAFETY: the caller guarantees the arguments, `resolve` the signature.
                    unsafe { function($($ra),*) }.check(stringify!($required))
                }
            )*
            $(
                #[doc = concat!("Calls `", stringify!($optional), "`, of a header later than 1.4.")]
                ///
                /// # Errors
                ///
                /// The function is missing, or answered a failure code.
                ///
                /// # Safety
                ///
                /// The arguments follow the function's specification.
                pub unsafe fn $optional(&self, $($oa: $ot),*) -> Result<answer!($($or)?), Error> {
                    let function = self.$optional.ok_or(Error::MissingSymbol { name: stringify!($optional) })?;
                    // SAFETY: as above.
                    unsafe { function($($oa),*) }.check(stringify!($optional))
                }
            )*
        }
    };
}

/// A name with its final zero as a C string.
fn name(text: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(text.as_bytes()).unwrap_or_default()
}

functions! {
    required {
        fn zeInit(flags: ze_init_flags_t);
        fn zeDriverGet(pCount: *mut u32, phDrivers: *mut ze_driver_handle_t);
        fn zeDriverGetApiVersion(hDriver: ze_driver_handle_t, version: *mut ze_api_version_t);
        fn zeDriverGetProperties(hDriver: ze_driver_handle_t, pDriverProperties: *mut ze_driver_properties_t);
        fn zeDriverGetIpcProperties(hDriver: ze_driver_handle_t, pIpcProperties: *mut ze_driver_ipc_properties_t);
        fn zeDriverGetExtensionFunctionAddress(hDriver: ze_driver_handle_t, name: *const c_char, ppFunctionAddress: *mut *mut c_void);
        fn zeDeviceGet(hDriver: ze_driver_handle_t, pCount: *mut u32, phDevices: *mut ze_device_handle_t);
        fn zeDeviceGetSubDevices(hDevice: ze_device_handle_t, pCount: *mut u32, phSubdevices: *mut ze_device_handle_t);
        fn zeDeviceGetProperties(hDevice: ze_device_handle_t, pDeviceProperties: *mut ze_device_properties_t);
        fn zeDeviceGetComputeProperties(hDevice: ze_device_handle_t, pComputeProperties: *mut ze_device_compute_properties_t);
        fn zeDeviceGetModuleProperties(hDevice: ze_device_handle_t, pModuleProperties: *mut ze_device_module_properties_t);
        fn zeDeviceGetMemoryProperties(hDevice: ze_device_handle_t, pCount: *mut u32, pMemProperties: *mut ze_device_memory_properties_t);
        fn zeDeviceGetMemoryAccessProperties(hDevice: ze_device_handle_t, pMemAccessProperties: *mut ze_device_memory_access_properties_t);
        fn zeDeviceGetCommandQueueGroupProperties(hDevice: ze_device_handle_t, pCount: *mut u32, pCommandQueueGroupProperties: *mut ze_command_queue_group_properties_t);
        fn zeDeviceCanAccessPeer(hDevice: ze_device_handle_t, hPeerDevice: ze_device_handle_t, value: *mut ze_bool_t);
        fn zeDeviceGetP2PProperties(hDevice: ze_device_handle_t, hPeerDevice: ze_device_handle_t, pP2PProperties: *mut ze_device_p2p_properties_t);
        fn zeContextCreate(hDriver: ze_driver_handle_t, desc: *const ze_context_desc_t, phContext: *mut ze_context_handle_t);
        fn zeContextDestroy(hContext: ze_context_handle_t);
        fn zeContextMakeMemoryResident(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, ptr: *mut c_void, size: usize);
        fn zeContextEvictMemory(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, ptr: *mut c_void, size: usize);
        fn zeMemAllocHost(hContext: ze_context_handle_t, host_desc: *const ze_host_mem_alloc_desc_t, size: usize, alignment: usize, pptr: *mut *mut c_void);
        fn zeMemAllocDevice(hContext: ze_context_handle_t, device_desc: *const ze_device_mem_alloc_desc_t, size: usize, alignment: usize, hDevice: ze_device_handle_t, pptr: *mut *mut c_void);
        fn zeMemAllocShared(hContext: ze_context_handle_t, device_desc: *const ze_device_mem_alloc_desc_t, host_desc: *const ze_host_mem_alloc_desc_t, size: usize, alignment: usize, hDevice: ze_device_handle_t, pptr: *mut *mut c_void);
        fn zeMemFree(hContext: ze_context_handle_t, ptr: *mut c_void);
        fn zeMemFreeExt(hContext: ze_context_handle_t, pMemFreeDesc: *const ze_memory_free_ext_desc_t, ptr: *mut c_void);
        fn zeMemGetAllocProperties(hContext: ze_context_handle_t, ptr: *const c_void, pMemAllocProperties: *mut ze_memory_allocation_properties_t, phDevice: *mut ze_device_handle_t);
        fn zeMemGetAddressRange(hContext: ze_context_handle_t, ptr: *const c_void, pBase: *mut *mut c_void, pSize: *mut usize);
        fn zeMemGetIpcHandle(hContext: ze_context_handle_t, ptr: *const c_void, pIpcHandle: *mut ze_ipc_mem_handle_t);
        fn zeMemOpenIpcHandle(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, handle: ze_ipc_mem_handle_t, flags: ze_ipc_memory_flags_t, pptr: *mut *mut c_void);
        fn zeMemCloseIpcHandle(hContext: ze_context_handle_t, ptr: *const c_void);
        fn zeCommandQueueCreate(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_command_queue_desc_t, phCommandQueue: *mut ze_command_queue_handle_t);
        fn zeCommandQueueDestroy(hCommandQueue: ze_command_queue_handle_t);
        fn zeCommandQueueExecuteCommandLists(hCommandQueue: ze_command_queue_handle_t, numCommandLists: u32, phCommandLists: *mut ze_command_list_handle_t, hFence: ze_fence_handle_t);
        fn zeCommandQueueSynchronize(hCommandQueue: ze_command_queue_handle_t, timeout: u64);
        fn zeCommandListCreate(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_command_list_desc_t, phCommandList: *mut ze_command_list_handle_t);
        fn zeCommandListCreateImmediate(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, altdesc: *const ze_command_queue_desc_t, phCommandList: *mut ze_command_list_handle_t);
        fn zeCommandListDestroy(hCommandList: ze_command_list_handle_t);
        fn zeCommandListClose(hCommandList: ze_command_list_handle_t);
        fn zeCommandListReset(hCommandList: ze_command_list_handle_t);
        fn zeCommandListAppendMemoryCopy(hCommandList: ze_command_list_handle_t, dstptr: *mut c_void, srcptr: *const c_void, size: usize, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t);
        fn zeCommandListAppendMemoryCopyRegion(hCommandList: ze_command_list_handle_t, dstptr: *mut c_void, dstRegion: *const ze_copy_region_t, dstPitch: u32, dstSlicePitch: u32, srcptr: *const c_void, srcRegion: *const ze_copy_region_t, srcPitch: u32, srcSlicePitch: u32, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t);
        fn zeCommandListAppendMemoryFill(hCommandList: ze_command_list_handle_t, ptr: *mut c_void, pattern: *const c_void, pattern_size: usize, size: usize, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t);
        fn zeCommandListAppendMemoryPrefetch(hCommandList: ze_command_list_handle_t, ptr: *const c_void, size: usize);
        fn zeCommandListAppendMemAdvise(hCommandList: ze_command_list_handle_t, hDevice: ze_device_handle_t, ptr: *const c_void, size: usize, advice: ze_memory_advice_t);
        fn zeCommandListAppendBarrier(hCommandList: ze_command_list_handle_t, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t);
        fn zeCommandListAppendLaunchKernel(hCommandList: ze_command_list_handle_t, hKernel: ze_kernel_handle_t, pLaunchFuncArgs: *const ze_group_count_t, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t);
        fn zeCommandListAppendSignalEvent(hCommandList: ze_command_list_handle_t, hEvent: ze_event_handle_t);
        fn zeCommandListAppendWaitOnEvents(hCommandList: ze_command_list_handle_t, numEvents: u32, phEvents: *mut ze_event_handle_t);
        fn zeFenceCreate(hCommandQueue: ze_command_queue_handle_t, desc: *const ze_fence_desc_t, phFence: *mut ze_fence_handle_t);
        fn zeFenceDestroy(hFence: ze_fence_handle_t);
        fn zeFenceHostSynchronize(hFence: ze_fence_handle_t, timeout: u64);
        fn zeFenceReset(hFence: ze_fence_handle_t);
        fn zeEventPoolCreate(hContext: ze_context_handle_t, desc: *const ze_event_pool_desc_t, numDevices: u32, phDevices: *mut ze_device_handle_t, phEventPool: *mut ze_event_pool_handle_t);
        fn zeEventPoolDestroy(hEventPool: ze_event_pool_handle_t);
        fn zeEventCreate(hEventPool: ze_event_pool_handle_t, desc: *const ze_event_desc_t, phEvent: *mut ze_event_handle_t);
        fn zeEventDestroy(hEvent: ze_event_handle_t);
        fn zeEventQueryStatus(hEvent: ze_event_handle_t);
        fn zeEventHostSynchronize(hEvent: ze_event_handle_t, timeout: u64);
        fn zeEventHostSignal(hEvent: ze_event_handle_t);
        fn zeEventHostReset(hEvent: ze_event_handle_t);
        fn zeEventQueryKernelTimestamp(hEvent: ze_event_handle_t, dstptr: *mut ze_kernel_timestamp_result_t);
        fn zeModuleCreate(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_module_desc_t, phModule: *mut ze_module_handle_t, phBuildLog: *mut ze_module_build_log_handle_t);
        fn zeModuleDestroy(hModule: ze_module_handle_t);
        fn zeModuleGetKernelNames(hModule: ze_module_handle_t, pCount: *mut u32, pNames: *mut *const c_char);
        fn zeModuleGetGlobalPointer(hModule: ze_module_handle_t, pGlobalName: *const c_char, pSize: *mut usize, pptr: *mut *mut c_void);
        fn zeModuleBuildLogGetString(hModuleBuildLog: ze_module_build_log_handle_t, pSize: *mut usize, pBuildLog: *mut c_char);
        fn zeModuleBuildLogDestroy(hModuleBuildLog: ze_module_build_log_handle_t);
        fn zeKernelCreate(hModule: ze_module_handle_t, desc: *const ze_kernel_desc_t, phKernel: *mut ze_kernel_handle_t);
        fn zeKernelDestroy(hKernel: ze_kernel_handle_t);
        fn zeKernelSetGroupSize(hKernel: ze_kernel_handle_t, groupSizeX: u32, groupSizeY: u32, groupSizeZ: u32);
        fn zeKernelSuggestGroupSize(hKernel: ze_kernel_handle_t, globalSizeX: u32, globalSizeY: u32, globalSizeZ: u32, groupSizeX: *mut u32, groupSizeY: *mut u32, groupSizeZ: *mut u32);
        fn zeKernelSetArgumentValue(hKernel: ze_kernel_handle_t, argIndex: u32, argSize: usize, pArgValue: *const c_void);
        fn zeKernelSetIndirectAccess(hKernel: ze_kernel_handle_t, flags: ze_kernel_indirect_access_flags_t);
        fn zeKernelGetProperties(hKernel: ze_kernel_handle_t, pKernelProperties: *mut ze_kernel_properties_t);
    }
    optional {
        fn zeInitDrivers(pCount: *mut u32, phDrivers: *mut ze_driver_handle_t, desc: *mut ze_init_driver_type_desc_t);
        fn zeMemPutIpcHandle(hContext: ze_context_handle_t, handle: ze_ipc_mem_handle_t);
        fn zeMemSetAtomicAccessAttributeExp(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, ptr: *const c_void, size: usize, attr: ze_memory_atomic_attr_exp_flags_t);
        fn zeCommandListHostSynchronize(hCommandList: ze_command_list_handle_t, timeout: u64);
        fn zeCommandListAppendLaunchKernelWithArguments(hCommandList: ze_command_list_handle_t, hKernel: ze_kernel_handle_t, groupCounts: ze_group_count_t, groupSizes: ze_group_size_t, pArguments: *mut *mut c_void, pNext: *const c_void, hSignalEvent: ze_event_handle_t, numWaitEvents: u32, phWaitEvents: *mut ze_event_handle_t);
        fn zeEventCounterBasedCreate(hContext: ze_context_handle_t, hDevice: ze_device_handle_t, desc: *const ze_event_counter_based_desc_t, phEvent: *mut ze_event_handle_t);
        fn zeDriverGetDefaultContext(hDriver: ze_driver_handle_t) -> ze_context_handle_t;
    }
}

impl Functions {
    /// Queries a driver's version and refuses an unsupported one; see [`ze_api_version_t::check`].
    ///
    /// # Errors
    ///
    /// The query failed, or the version is not supported.
    ///
    /// # Safety
    ///
    /// `zeInit` succeeded, and `driver` came from `zeDriverGet`.
    pub unsafe fn check_driver(&self, driver: ze_driver_handle_t) -> Result<ze_api_version_t, Error> {
        let mut version = ze_api_version_t(0);
        // SAFETY: the caller guarantees the driver; `version` is writable during the call.
        unsafe { self.zeDriverGetApiVersion(driver, &raw mut version) }?;
        version.check()
    }
}
