//! Opening a driver, and the table of its functions under the names of each vendor.
//!
//! A row has a name of its own beside the symbols. Most functions of HIP have the signature of
//! CUDA's twin; rows where they have not are called through [`adapter`](super::adapter), so that
//! nothing above sees a difference. Constants that differ are in [`vendor`](super::vendor).

use alloc::ffi::CString;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::NonNull;
use std::env;
use std::path::Path;

use crate::error::{NO_DEVICE, SUCCESS};
use crate::pool::{Pools, Properties};
use crate::vendor::{Constants, Vendor};
use usm_core::driver::library::{self, File, Opened};
use usm_core::ipc::NATIVE_BYTES;
use usm_core::{ErrorKind, Result};

/// `CUresult`, `hipError_t`.
pub(super) type Code = i32;
/// Stream, event or pool; context, which in HIP is its device (see [`adapter`](super::adapter)).
pub(super) type Raw = *mut c_void;
/// `CUdevice`, `hipDevice_t`.
pub(super) type DeviceId = i32;
/// `CUdeviceptr`, `hipDeviceptr_t`.
pub(super) type Address = usize;

/// `CUDA_MEMCPY2D`. HIP has a call that takes the numbers themselves.
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
            /// NVIDIA's names, with the version that has the signature of the table.
            pub(super) const CUDA: Self = Self { $($field: $cuda,)* $($apart: $cuda_apart,)* $($may: $cuda_may,)* };
            /// AMD's.
            pub(super) const HIP: Self = Self { $($field: $hip,)* $($apart: $hip_apart,)* $($may: $hip_may,)* };
        }

        /// Functions that NVIDIA alone has, or with another signature.
        pub(super) struct CudaRows {
            $(pub(super) $apart: function!($($cuda_argument),*),)*
            $(pub(super) $cuda_only: function!($($cuda_only_argument),*),)*
        }

        /// Functions that AMD alone has, or with another signature.
        pub(super) struct HipRows {
            $(pub(super) $apart: function!($($hip_argument),*),)*
            $(pub(super) $hip_only: function!($($hip_only_argument),*),)*
        }

        /// Memory in the order of a stream.
        #[derive(Debug)]
        pub(super) struct InOrder {
            $(pub(super) $may: function!($($may_argument),*),)*
        }

        /// The functions that are used, present once the driver is open.
        pub(super) struct Driver {
            $(pub(super) $field: function!($($argument),*),)*
            /// All or none: an older driver may lack them.
            pub(super) in_order: Option<InOrder>,
            pub(super) pools: Pools,
            /// Functions called through [`adapter`](super::adapter).
            pub(super) own: Own,
            pub(super) vendor: &'static Vendor,
            /// Functions that depend on the version too.
            pub(super) constants: Constants,
            file: File,
        }

        impl InOrder {
            /// # Safety
            /// The library's functions have the signatures of the table.
            unsafe fn bind(file: &File, vendor: &'static Vendor) -> Result<Self> {
                Ok(Self {
                    $($may: {
                        // SAFETY: the caller's promise.
                        unsafe { find::<function!($($may_argument),*)>(file, vendor, vendor.names.$may) }?
                    },)*
                })
            }
        }

        impl Driver {
            /// # Safety
            /// The library's functions have the signatures of the table.
            unsafe fn bind(file: File, vendor: &'static Vendor) -> Result<Self> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the caller's promise.
                        unsafe { find::<function!($($argument),*)>(&file, vendor, vendor.names.$field) }?
                    },)*
                    // SAFETY: as above.
                    in_order: unsafe { InOrder::bind(&file, vendor) }.ok(),
                    pools: Pools::new(),
                    own: match vendor.own {
                        Kind::Cuda => Own::Cuda(CudaRows {
                            $($apart: {
                                // SAFETY: as above.
                                unsafe { find::<function!($($cuda_argument),*)>(&file, vendor, $cuda_apart) }?
                            },)*
                            $($cuda_only: {
                                // SAFETY: as above.
                                unsafe { find::<function!($($cuda_only_argument),*)>(&file, vendor, $cuda_symbol) }?
                            },)*
                        }),
                        Kind::Hip => Own::Hip(HipRows {
                            $($apart: {
                                // SAFETY: as above.
                                unsafe { find::<function!($($hip_argument),*)>(&file, vendor, $hip_apart) }?
                            },)*
                            $($hip_only: {
                                // SAFETY: as above.
                                unsafe { find::<function!($($hip_only_argument),*)>(&file, vendor, $hip_symbol) }?
                            },)*
                        }),
                    },
                    vendor,
                    constants: (vendor.constants)(0),
                    file,
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

/// Whose the rows are that not both have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Cuda,
    Hip,
}

pub(super) enum Own {
    Cuda(CudaRows),
    Hip(HipRows),
}

/// # Safety
/// `F` is the type of the function `symbol`, a function pointer.
unsafe fn find<F: Copy>(file: &File, vendor: &Vendor, symbol: &'static str) -> Result<F> {
    let found = CString::new(symbol).ok().and_then(|name| file.function(&name));
    let found =
        found.ok_or_else(|| vendor.error(ErrorKind::SymbolMissing { library: vendor.library, symbol }))?;
    // SAFETY: the caller's promise; function pointers are as wide as others.
    Ok(unsafe { core::mem::transmute_copy::<NonNull<c_void>, F>(&found) })
}

impl core::fmt::Debug for Driver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Driver").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Driver {
    fn is(&self, vendor: &Vendor) -> bool {
        self.vendor.own == vendor.own
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The address of a function that the table does not have.
    pub(super) fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        self.file.function(name)
    }
}

/// Opens the file that the vendor's variable names, else the driver under its usual names: the one
/// that the process has already, where it has one.
pub(super) fn open_usual(vendor: &'static Vendor) -> Result<&'static Driver> {
    match env::var_os(vendor.variable).filter(|named| !named.is_empty()) {
        Some(named) => open(vendor, Path::new(&named)),
        None => match loaded(vendor) {
            Some(name) => open(vendor, Path::new(name)),
            None => library::open_first(vendor.files, |path| open(vendor, path)),
        },
    }
}

#[cfg(target_os = "linux")]
fn loaded(vendor: &Vendor) -> Option<&'static str> {
    library::loaded(vendor.files)
}

/// On other systems only names decide.
#[cfg(not(target_os = "linux"))]
fn loaded(_: &Vendor) -> Option<&'static str> {
    None
}

/// Opens and initialises the driver at `path`, once per path and process. Never closed: it keeps
/// threads.
pub(super) fn open(vendor: &'static Vendor, path: &Path) -> Result<&'static Driver> {
    static OPENED: Opened<Driver> = Opened::new();
    OPENED.get(|driver| driver.path() == path && driver.is(vendor), || initialised(vendor, path))
}

fn initialised(vendor: &'static Vendor, path: &Path) -> Result<Driver> {
    // SAFETY: loading runs the initialisers of the driver, which depend on nothing of ours.
    let file = unsafe { File::open(vendor.library, path) }.map_err(|kind| vendor.error(kind))?;
    // SAFETY: the signatures are those of `cuda.h` and `hip_runtime_api.h`; a function of CUDA that
    // changed has a new name.
    let mut driver = unsafe { Driver::bind(file, vendor) }?;
    // SAFETY: the driver is open, the flags must be 0.
    match unsafe { (driver.init)(0) } {
        SUCCESS | NO_DEVICE => {}
        code if code == vendor.no_usable_device => {}
        code => return Err(vendor.native(vendor.names.init, code)),
    }
    let mut version = 0;
    // SAFETY: room for the answer.
    let code = unsafe { (driver.driver_version)(&raw mut version) };
    vendor.check(vendor.names.driver_version, code)?;
    driver.constants = (vendor.constants)(version);
    Ok(driver)
}

#[cfg(test)]
mod tests {
    use super::super::vendor::{AMD, NVIDIA};
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_a_typed_error() {
        for vendor in [&NVIDIA, &AMD] {
            let path = "/nonexistent/lib.so";
            let error = open(vendor, Path::new(path)).unwrap_err();
            assert_eq!(error.backend, Some(vendor.backend));
            assert!(
                matches!(error.kind, ErrorKind::LibraryNotFound { library, reason } if library == vendor.library && reason.contains(path)),
                "{error}"
            );
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_without_the_functions_names_the_first_missing_one() {
        for (vendor, symbol) in [(&NVIDIA, "cuInit"), (&AMD, "hipInit")] {
            // The C library is there on every Linux, and it is no driver.
            let error = open(vendor, Path::new("libc.so.6")).unwrap_err();
            assert_eq!(error.kind, ErrorKind::SymbolMissing { library: vendor.library, symbol });
        }
    }

    #[test]
    fn structures_are_as_large_as_in_the_headers() {
        assert_eq!((size_of::<RowsCopy>(), core::mem::offset_of!(RowsCopy, width)), (128, 112));
        assert_eq!((size_of::<IpcMemory>(), align_of::<IpcMemory>()), (64, 1));
    }
}
