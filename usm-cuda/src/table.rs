//! The table of the driver's functions under the names of each vendor, and the types of its calls.
//!
//! Each row has its own name besides the symbols. Most functions of HIP have the signature of
//! CUDA's twin. The others are called through [`adapter`](super::adapter), so that the rest of the
//! crate sees no difference. Different constants are in [`vendor`](super::vendor).

use alloc::ffi::CString;
use core::ffi::{c_char, c_void};
use core::ptr::NonNull;

use usm_core::driver::library::File;
use usm_core::ipc::NATIVE_BYTES;
use usm_core::{Error, Result};

/// `CUresult`, `hipError_t`.
pub(super) type Code = i32;
/// Stream, event or pool; context, which in HIP is its device (see [`adapter`](super::adapter)).
pub(super) type Raw = *mut c_void;
/// `CUdevice`, `hipDevice_t`.
pub(super) type DeviceId = i32;
/// `CUdeviceptr`, `hipDeviceptr_t`.
pub(super) type Address = usize;

/// `CUDA_MEMCPY2D`. HIP's call takes the numbers as parameters.
#[repr(C)]
#[derive(Debug)]
pub(super) struct RowsCopy {
    pub(super) src_x: usize,
    pub(super) src_y: usize,
    pub(super) src_memory_type: u32,
    pub(super) src_host: *const c_void,
    pub(super) src_device: Address,
    pub(super) src_array: Raw,
    pub(super) src_pitch: usize,
    pub(super) dst_x: usize,
    pub(super) dst_y: usize,
    pub(super) dst_memory_type: u32,
    pub(super) dst_host: *mut c_void,
    pub(super) dst_device: Address,
    pub(super) dst_array: Raw,
    pub(super) dst_pitch: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

/// `CUipcMemHandle`, `hipIpcMemHandle_t`: passed by value.
#[repr(C)]
pub(super) struct IpcMemory(pub(super) [u8; NATIVE_BYTES]);

/// `CUmemPoolProps`, `hipMemPoolProps`. Fields that later versions named are zero: no limit, no
/// other usage.
#[repr(C)]
#[derive(Debug)]
pub(super) struct Properties {
    pub(super) allocation_type: i32,
    pub(super) handle_types: i32,
    pub(super) location_type: i32,
    pub(super) location: DeviceId,
    pub(super) security_attributes: *mut c_void,
    pub(super) reserved: [u8; 64],
}

const _: () = assert!(size_of::<Properties>() == 88 || size_of::<usize>() < 8);

/// A function of the driver.
macro_rules! function {
    ($($argument:ty),*) => { unsafe extern "C" fn($($argument),*) -> Code };
}

macro_rules! table {
    (
        same { $($field:ident = $cuda:literal | $hip:literal ($($argument:ty),*);)* }
        differ {
            $($apart:ident = $cuda_apart:literal ($($cuda_argument:ty),*) | $hip_apart:literal ($($hip_argument:ty),*);)*
        }
        cuda { $($cuda_only:ident = $cuda_symbol:literal ($($cuda_only_argument:ty),*);)* }
        hip { $($hip_only:ident = $hip_symbol:literal ($($hip_only_argument:ty),*);)* }
        in_order { $($may:ident = $cuda_may:literal | $hip_may:literal ($($may_argument:ty),*);)* }
    ) => {
        /// One vendor's names for the functions that both have.
        pub(super) struct Names {
            $(pub(super) $field: &'static str,)*
            $(pub(super) $apart: &'static str,)*
            $(pub(super) $may: &'static str,)*
        }

        impl Names {
            /// NVIDIA's names, in the version with the signature of the table.
            pub(super) const CUDA: Self = Self { $($field: $cuda,)* $($apart: $cuda_apart,)* $($may: $cuda_may,)* };
            /// AMD's.
            pub(super) const HIP: Self = Self { $($field: $hip,)* $($apart: $hip_apart,)* $($may: $hip_may,)* };
        }

        /// Functions that only NVIDIA has, or has with another signature.
        pub(super) struct CudaRows {
            $(pub(super) $apart: function!($($cuda_argument),*),)*
            $(pub(super) $cuda_only: function!($($cuda_only_argument),*),)*
        }

        /// Functions that only AMD has, or has with another signature.
        pub(super) struct HipRows {
            $(pub(super) $apart: function!($($hip_argument),*),)*
            $(pub(super) $hip_only: function!($($hip_only_argument),*),)*
        }

        /// Memory in the order of a stream.
        #[derive(Debug)]
        pub(super) struct InOrder {
            $(pub(super) $may: function!($($may_argument),*),)*
        }

        /// The functions that this crate uses, present once the driver is open.
        pub(super) struct Functions {
            $(pub(super) $field: function!($($argument),*),)*
            /// All or none: an older driver may lack them.
            pub(super) in_order: Option<InOrder>,
            /// Functions called through [`adapter`](super::adapter).
            pub(super) own: Own,
        }

        impl InOrder {
            /// # Safety
            /// The library's functions have the signatures of the table.
            unsafe fn bind(from: &From<'_>) -> Result<Self> {
                Ok(Self {
                    $($may: {
                        // SAFETY: the caller's promise.
                        unsafe { find::<function!($($may_argument),*)>(from, from.names.$may) }?
                    },)*
                })
            }
        }

        impl Functions {
            /// # Safety
            /// The library's functions have the signatures of the table.
            pub(super) unsafe fn bind(from: &From<'_>) -> Result<Self> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the caller's promise.
                        unsafe { find::<function!($($argument),*)>(from, from.names.$field) }?
                    },)*
                    // SAFETY: as above.
                    in_order: unsafe { InOrder::bind(from) }.ok(),
                    own: match from.own {
                        Kind::Cuda => Own::Cuda(CudaRows {
                            $($apart: {
                                // SAFETY: as above.
                                unsafe { find::<function!($($cuda_argument),*)>(from, $cuda_apart) }?
                            },)*
                            $($cuda_only: {
                                // SAFETY: as above.
                                unsafe { find::<function!($($cuda_only_argument),*)>(from, $cuda_symbol) }?
                            },)*
                        }),
                        Kind::Hip => Own::Hip(HipRows {
                            $($apart: {
                                // SAFETY: as above.
                                unsafe { find::<function!($($hip_argument),*)>(from, $hip_apart) }?
                            },)*
                            $($hip_only: {
                                // SAFETY: as above.
                                unsafe { find::<function!($($hip_only_argument),*)>(from, $hip_symbol) }?
                            },)*
                        }),
                    },
                })
            }
        }
    };
}

table! {
    same {
        init = "cuInit" | "hipInit" (u32);
        device_count = "cuDeviceGetCount" | "hipGetDeviceCount" (*mut i32);
        device_get = "cuDeviceGet" | "hipDeviceGet" (*mut DeviceId, i32);
        device_name = "cuDeviceGetName" | "hipDeviceGetName" (*mut c_char, i32, DeviceId);
        device_memory = "cuDeviceTotalMem_v2" | "hipDeviceTotalMem" (*mut usize, DeviceId);
        device_attribute = "cuDeviceGetAttribute" | "hipDeviceGetAttribute" (*mut i32, i32, DeviceId);
        driver_version = "cuDriverGetVersion" | "hipDriverGetVersion" (*mut i32);
        context_device = "cuCtxGetDevice" | "hipGetDevice" (*mut DeviceId);

        free_memory = "cuMemGetInfo_v2" | "hipMemGetInfo" (*mut usize, *mut usize);
        allocate_device = "cuMemAlloc_v2" | "hipMalloc" (*mut Address, usize);
        allocate_host = "cuMemHostAlloc" | "hipHostMalloc" (*mut *mut c_void, usize, u32);
        allocate_managed = "cuMemAllocManaged" | "hipMallocManaged" (*mut Address, usize, u32);
        free_device = "cuMemFree_v2" | "hipFree" (Address);
        free_host = "cuMemFreeHost" | "hipHostFree" (*mut c_void);
        pointer_attributes = "cuPointerGetAttributes" | "hipDrvPointerGetAttributes"
            (u32, *const i32, *const *mut c_void, Address);

        create_stream = "cuStreamCreate" | "hipStreamCreateWithFlags" (*mut Raw, u32);
        destroy_stream = "cuStreamDestroy_v2" | "hipStreamDestroy" (Raw);
        query_stream = "cuStreamQuery" | "hipStreamQuery" (Raw);
        stream_wait = "cuStreamWaitEvent" | "hipStreamWaitEvent" (Raw, Raw, u32);
        fill8 = "cuMemsetD8Async" | "hipMemsetD8Async" (Address, u8, usize, Raw);
        fill16 = "cuMemsetD16Async" | "hipMemsetD16Async" (Address, u16, usize, Raw);
        fill32 = "cuMemsetD32Async" | "hipMemsetD32Async" (Address, u32, usize, Raw);
        prefetch = "cuMemPrefetchAsync" | "hipMemPrefetchAsync" (Address, usize, DeviceId, Raw);
        advise = "cuMemAdvise" | "hipMemAdvise" (Address, usize, i32, DeviceId);

        can_access_peer = "cuDeviceCanAccessPeer" | "hipDeviceCanAccessPeer" (*mut i32, DeviceId, DeviceId);
        ipc_export = "cuIpcGetMemHandle" | "hipIpcGetMemHandle" (*mut IpcMemory, Address);
        ipc_open = "cuIpcOpenMemHandle_v2" | "hipIpcOpenMemHandle" (*mut Address, IpcMemory, u32);
        ipc_close = "cuIpcCloseMemHandle" | "hipIpcCloseMemHandle" (Address);

        create_event = "cuEventCreate" | "hipEventCreateWithFlags" (*mut Raw, u32);
        destroy_event = "cuEventDestroy_v2" | "hipEventDestroy" (Raw);
        record_event = "cuEventRecord" | "hipEventRecord" (Raw, Raw);
        query_event = "cuEventQuery" | "hipEventQuery" (Raw);
        elapsed = "cuEventElapsedTime" | "hipEventElapsedTime" (*mut f32, Raw, Raw);
    }
    differ {
        push_context = "cuCtxPushCurrent_v2" (Raw) | "hipSetDevice" (DeviceId);
        copy = "cuMemcpyAsync" (Address, Address, usize, Raw) | "hipMemcpyAsync" (Address, Address, usize, i32, Raw);
        copy_rows = "cuMemcpy2DAsync_v2" (*const RowsCopy, Raw)
            | "hipMemcpy2DAsync" (Address, usize, Address, usize, usize, usize, i32, Raw);
        enable_peer = "cuCtxEnablePeerAccess" (Raw, u32) | "hipDeviceEnablePeerAccess" (DeviceId, u32);
        disable_peer = "cuCtxDisablePeerAccess" (Raw) | "hipDeviceDisablePeerAccess" (DeviceId);
    }
    cuda {
        retain_context = "cuDevicePrimaryCtxRetain" (*mut Raw, DeviceId);
        release_context = "cuDevicePrimaryCtxRelease_v2" (DeviceId);
        current_context = "cuCtxGetCurrent" (*mut Raw);
        pop_context = "cuCtxPopCurrent_v2" (*mut Raw);
        fill32_2d = "cuMemsetD2D32Async" (Address, usize, u32, usize, usize, Raw);
    }
    hip {
        range = "hipMemGetAddressRange" (*mut Address, *mut usize, Address);
    }
    // CUDA 11.2 and HIP 5.2.
    in_order {
        create_pool = "cuMemPoolCreate" | "hipMemPoolCreate" (*mut Raw, *const Properties);
        destroy_pool = "cuMemPoolDestroy" | "hipMemPoolDestroy" (Raw);
        set_pool_attribute = "cuMemPoolSetAttribute" | "hipMemPoolSetAttribute" (Raw, i32, *mut c_void);
        trim_pool = "cuMemPoolTrimTo" | "hipMemPoolTrimTo" (Raw, usize);
        allocate_in_order = "cuMemAllocFromPoolAsync" | "hipMallocFromPoolAsync" (*mut Address, usize, Raw, Raw);
        free_in_order = "cuMemFreeAsync" | "hipFreeAsync" (Address, Raw);
    }
}

/// The vendor of the rows that only one vendor has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cuda,
    Hip,
}

pub(super) enum Own {
    Cuda(CudaRows),
    Hip(HipRows),
}

/// The source of the functions' addresses.
pub(super) struct From<'f> {
    pub(super) file: &'f File,
    pub(super) own: Kind,
    pub(super) names: &'static Names,
    /// The error for a function that the file lacks.
    pub(super) missing_symbol: &'f dyn Fn(&'static str) -> Error,
}

/// # Safety
/// `F` is the type of the function `symbol`, a function pointer.
unsafe fn find<F: Copy>(from: &From<'_>, symbol: &'static str) -> Result<F> {
    let function = CString::new(symbol).ok().and_then(|name| from.file.function(&name));
    let function = function.ok_or_else(|| (from.missing_symbol)(symbol))?;
    // SAFETY: the caller's promise; function pointers are as wide as data pointers.
    Ok(unsafe { core::mem::transmute_copy::<NonNull<c_void>, F>(&function) })
}
