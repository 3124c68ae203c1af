//! Opening the driver, and the table of its functions.
//!
//! Rows have a name of their own beside the driver's symbol, so that a driver with the same functions under other names
//! (HIP's `hipMemcpyAsync` for `cuMemcpyAsync`) would be another [`Names`], not another table.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::NonNull;
use std::path::{Path, PathBuf};

use super::error;
use crate::backend::library;
use crate::error::{ErrorKind, Result};
use crate::ipc::NATIVE_BYTES;
use crate::sync::sleeping::Mutex;

#[cfg(target_os = "windows")]
const LIBRARIES: [&str; 1] = ["nvcuda.dll"];
#[cfg(not(target_os = "windows"))]
const LIBRARIES: [&str; 2] = ["libcuda.so.1", "libcuda.so"];

/// `CUresult`.
pub(super) type Code = i32;
/// Context, stream or event.
pub(super) type Raw = *mut c_void;
/// `CUdevice`.
pub(super) type DeviceId = i32;
/// `CUdeviceptr`.
pub(super) type Address = usize;

/// `CUDA_MEMCPY2D`.
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

/// `CUipcMemHandle`, passed by value.
#[repr(C)]
pub(super) struct IpcMemory(pub(super) [u8; NATIVE_BYTES]);

macro_rules! table {
    ($($field:ident = $symbol:literal ($($argument:ty),*);)*) => {
        /// What one vendor calls the functions of the table.
        struct Names {
            $($field: &'static str,)*
        }

        /// NVIDIA's names, with the version that has the signature of the table.
        const CUDA: Names = Names { $($field: $symbol,)* };

        /// The functions that are used, all present once the driver is open.
        pub(super) struct Driver {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> Code,)*
            pub(super) path: PathBuf,
            /// Kept open, and asked for further functions.
            handle: Option<libloading::Library>,
        }

        impl Driver {
            /// # Safety
            /// The library's functions have the signatures of the table.
            unsafe fn bind(library: &libloading::Library, path: &Path, names: &Names) -> Result<Self> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the caller's promise.
                        let found = unsafe { library.get(names.$field.as_bytes()) };
                        *found.map_err(|_| {
                            let (library, symbol) = (LIBRARIES[0], names.$field);
                            error::of(ErrorKind::SymbolMissing { library, symbol })
                        })?
                    },)*
                    path: path.to_owned(),
                    handle: None,
                })
            }
        }
    };
}

table! {
    init = "cuInit"(u32);
    device_count = "cuDeviceGetCount"(*mut i32);
    device_get = "cuDeviceGet"(*mut DeviceId, i32);
    device_name = "cuDeviceGetName"(*mut c_char, i32, DeviceId);
    device_memory = "cuDeviceTotalMem_v2"(*mut usize, DeviceId);
    device_attribute = "cuDeviceGetAttribute"(*mut i32, i32, DeviceId);
    driver_version = "cuDriverGetVersion"(*mut i32);

    retain_context = "cuDevicePrimaryCtxRetain"(*mut Raw, DeviceId);
    release_context = "cuDevicePrimaryCtxRelease_v2"(DeviceId);
    push_context = "cuCtxPushCurrent_v2"(Raw);
    pop_context = "cuCtxPopCurrent_v2"(*mut Raw);
    current_context = "cuCtxGetCurrent"(*mut Raw);
    context_device = "cuCtxGetDevice"(*mut DeviceId);

    allocate_device = "cuMemAlloc_v2"(*mut Address, usize);
    allocate_host = "cuMemHostAlloc"(*mut *mut c_void, usize, u32);
    allocate_managed = "cuMemAllocManaged"(*mut Address, usize, u32);
    free_device = "cuMemFree_v2"(Address);
    free_host = "cuMemFreeHost"(*mut c_void);
    pointer_attributes = "cuPointerGetAttributes"(u32, *const i32, *const *mut c_void, Address);

    create_stream = "cuStreamCreate"(*mut Raw, u32);
    destroy_stream = "cuStreamDestroy_v2"(Raw);
    query_stream = "cuStreamQuery"(Raw);
    stream_wait = "cuStreamWaitEvent"(Raw, Raw, u32);
    copy = "cuMemcpyAsync"(Address, Address, usize, Raw);
    copy_rows = "cuMemcpy2DAsync_v2"(*const RowsCopy, Raw);
    fill8 = "cuMemsetD8Async"(Address, u8, usize, Raw);
    fill16 = "cuMemsetD16Async"(Address, u16, usize, Raw);
    fill32 = "cuMemsetD32Async"(Address, u32, usize, Raw);
    fill32_2d = "cuMemsetD2D32Async"(Address, usize, u32, usize, usize, Raw);
    prefetch = "cuMemPrefetchAsync"(Address, usize, DeviceId, Raw);
    advise = "cuMemAdvise"(Address, usize, i32, DeviceId);

    can_access_peer = "cuDeviceCanAccessPeer"(*mut i32, DeviceId, DeviceId);
    enable_peer = "cuCtxEnablePeerAccess"(Raw, u32);
    disable_peer = "cuCtxDisablePeerAccess"(Raw);
    ipc_export = "cuIpcGetMemHandle"(*mut IpcMemory, Address);
    ipc_open = "cuIpcOpenMemHandle_v2"(*mut Address, IpcMemory, u32);
    ipc_close = "cuIpcCloseMemHandle"(Address);

    create_event = "cuEventCreate"(*mut Raw, u32);
    destroy_event = "cuEventDestroy_v2"(Raw);
    record_event = "cuEventRecord"(Raw, Raw);
    query_event = "cuEventQuery"(Raw);
}

impl core::fmt::Debug for Driver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Driver").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Driver {
    /// The address of a function that the table does not have.
    pub(super) fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        let library = self.handle.as_ref()?;
        // SAFETY: the symbol is taken as an address and not called here.
        let found = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
        NonNull::new(*found)
    }
}

/// Opens the driver under its usual names.
pub(super) fn open_usual() -> Result<&'static Driver> {
    library::open_first(&LIBRARIES, open)
}

/// Opens and initialises the driver at `path`, once per path and process. Never closed: it keeps threads.
pub(super) fn open(path: &Path) -> Result<&'static Driver> {
    static OPENED: Mutex<Vec<&'static Driver>> = Mutex::new(Vec::new());
    let mut opened = OPENED.lock();
    if let Some(driver) = opened.iter().find(|driver| driver.path == path) {
        return Ok(driver);
    }
    // SAFETY: loading runs the initialisers of the driver, which depend on nothing of ours.
    let handle = unsafe { library::open(path) }
        .map_err(|words| error::of(library::not_found(LIBRARIES[0], path, &words)))?;
    // SAFETY: the signatures are those of `cuda.h`; a function that changed has a new name.
    let mut driver = unsafe { Driver::bind(&handle, path, &CUDA) }?;
    // SAFETY: the driver is open, the flags must be 0.
    match unsafe { (driver.init)(0) } {
        error::SUCCESS | error::NO_DEVICE => {}
        code => return Err(error::native("cuInit", code)),
    }
    driver.handle = Some(handle);
    let driver: &'static Driver = Box::leak(Box::new(driver));
    opened.push(driver);
    Ok(driver)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_a_typed_error() {
        let path = "/nonexistent/libcuda.so";
        let kind = open(Path::new(path)).unwrap_err().kind;
        assert!(
            matches!(kind, ErrorKind::LibraryNotFound { library, reason } if library == LIBRARIES[0] && reason.contains(path)),
            "{kind}"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_without_the_functions_names_the_first_missing_one() {
        // The C library is there on every Linux, and it is no driver.
        let error = open(Path::new("libc.so.6")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::SymbolMissing { library: LIBRARIES[0], symbol: "cuInit" });
    }
}
