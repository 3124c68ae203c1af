//! Opening the OpenCL loader, and the tables of its functions and of the USM extension's.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::NonNull;
use std::env;
use std::path::{Path, PathBuf};

use crate::error;
use usm_core::driver::process::Opening;
use usm_core::driver::sync::sleeping::Mutex;
use usm_core::driver::{handle, library};
use usm_core::{ErrorKind, Result};

/// Names of the installable client driver loader, tried in this order.
#[cfg(target_os = "windows")]
const NAMES: [&str; 1] = ["OpenCL.dll"];
#[cfg(target_os = "macos")]
const NAMES: [&str; 1] = ["/System/Library/Frameworks/OpenCL.framework/OpenCL"];
#[cfg(not(any(target_os = "windows", target_os = "macos")))]
const NAMES: [&str; 2] = ["libOpenCL.so.1", "libOpenCL.so"];

/// The environment variable that names another file.
pub(super) const VARIABLE: &str = "USM_OPENCL_LIBRARY";

/// `cl_int`.
pub(super) type Status = i32;
/// Any OpenCL object.
pub(super) type Raw = *mut c_void;
/// `cl_bitfield`, `cl_device_type`, ...
pub(super) type Bits = u64;
/// Called by the runtime with the reason of a context's error.
type Notify = Option<extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>;
type Events = *const Raw;

macro_rules! table {
    (
        core { $($field:ident = $symbol:literal ($($argument:ty),*) -> $result:ty;)* }
        extension { $($usm_field:ident = $usm_symbol:literal ($($usm_argument:ty),*) -> $usm_result:ty;)* }
    ) => {
        /// The functions of the loader that are used, all present once it is open.
        pub(super) struct Library {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
            pub(super) path: PathBuf,
            /// Kept open, and asked for further functions.
            handle: Option<libloading::Library>,
        }

        impl Library {
            /// # Safety
            /// The library's functions have the signatures of the table.
            unsafe fn bind(library: &libloading::Library, path: &Path) -> Result<Self> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the caller's promise.
                        let found = unsafe { library.get(concat!($symbol, "\0").as_bytes()) };
                        *found.map_err(|_| error::of(ErrorKind::SymbolMissing { library: NAMES[0], symbol: $symbol }))?
                    },)*
                    path: path.to_owned(),
                    handle: None,
                })
            }
        }

        /// The functions of `cl_intel_unified_shared_memory`, as one platform gives them.
        #[derive(Clone, Copy, Debug)]
        pub(super) struct Usm {
            $(pub(super) $usm_field: unsafe extern "C" fn($($usm_argument),*) -> $usm_result,)*
        }

        impl Usm {
            /// `None` where the platform lacks the extension: every one of its functions must be there. They belong to
            /// the platform; the loader knows none of them.
            ///
            /// # Safety
            /// `platform` is a platform of `library`.
            pub(super) unsafe fn of_platform(library: &Library, platform: Raw) -> Option<Self> {
                Some(Self {
                    $($usm_field: {
                        let name = concat!($usm_symbol, "\0").as_ptr().cast();
                        // SAFETY: the caller's promise; the name ends in NUL.
                        let address = unsafe { (library.extension_function)(platform, name) };
                        if address.is_null() {
                            return None;
                        }
                        // SAFETY: the function of that name has this signature by the extension's specification.
                        unsafe {
                            core::mem::transmute::<Raw, unsafe extern "C" fn($($usm_argument),*) -> $usm_result>(address)
                        }
                    },)*
                })
            }
        }
    };
}

table! {
    core {
        platforms = "clGetPlatformIDs"(u32, *mut Raw, *mut u32) -> Status;
        platform_info = "clGetPlatformInfo"(Raw, u32, usize, *mut c_void, *mut usize) -> Status;
        extension_function = "clGetExtensionFunctionAddressForPlatform"(Raw, *const c_char) -> Raw;
        devices = "clGetDeviceIDs"(Raw, Bits, u32, *mut Raw, *mut u32) -> Status;
        device_info = "clGetDeviceInfo"(Raw, u32, usize, *mut c_void, *mut usize) -> Status;
        create_context = "clCreateContext"(*const isize, u32, *const Raw, Notify, *mut c_void, *mut Status) -> Raw;
        retain_context = "clRetainContext"(Raw) -> Status;
        release_context = "clReleaseContext"(Raw) -> Status;
        context_info = "clGetContextInfo"(Raw, u32, usize, *mut c_void, *mut usize) -> Status;
        create_queue = "clCreateCommandQueue"(Raw, Raw, Bits, *mut Status) -> Raw;
        retain_queue = "clRetainCommandQueue"(Raw) -> Status;
        release_queue = "clReleaseCommandQueue"(Raw) -> Status;
        queue_info = "clGetCommandQueueInfo"(Raw, u32, usize, *mut c_void, *mut usize) -> Status;
        flush = "clFlush"(Raw) -> Status;
        marker = "clEnqueueMarkerWithWaitList"(Raw, u32, Events, *mut Raw) -> Status;
        event_info = "clGetEventInfo"(Raw, u32, usize, *mut c_void, *mut usize) -> Status;
        wait_for_events = "clWaitForEvents"(u32, Events) -> Status;
        retain_event = "clRetainEvent"(Raw) -> Status;
        release_event = "clReleaseEvent"(Raw) -> Status;
        create_buffer = "clCreateBuffer"(Raw, Bits, usize, *mut c_void, *mut Status) -> Raw;
        retain_buffer = "clRetainMemObject"(Raw) -> Status;
        release_buffer = "clReleaseMemObject"(Raw) -> Status;
        buffer_info = "clGetMemObjectInfo"(Raw, u32, usize, *mut c_void, *mut usize) -> Status;
        write_buffer = "clEnqueueWriteBuffer"
            (Raw, Raw, u32, usize, usize, *const c_void, u32, Events, *mut Raw) -> Status;
        read_buffer = "clEnqueueReadBuffer"
            (Raw, Raw, u32, usize, usize, *mut c_void, u32, Events, *mut Raw) -> Status;
        fill_buffer = "clEnqueueFillBuffer"
            (Raw, Raw, *const c_void, usize, usize, usize, u32, Events, *mut Raw) -> Status;
        copy_buffer = "clEnqueueCopyBuffer"(Raw, Raw, Raw, usize, usize, usize, u32, Events, *mut Raw) -> Status;
    }
    extension {
        allocate_host = "clHostMemAllocINTEL"(Raw, *const Bits, usize, u32, *mut Status) -> *mut c_void;
        allocate_device = "clDeviceMemAllocINTEL"(Raw, Raw, *const Bits, usize, u32, *mut Status) -> *mut c_void;
        allocate_shared = "clSharedMemAllocINTEL"(Raw, Raw, *const Bits, usize, u32, *mut Status) -> *mut c_void;
        free = "clMemFreeINTEL"(Raw, *mut c_void) -> Status;
        alloc_info = "clGetMemAllocInfoINTEL"(Raw, *const c_void, u32, usize, *mut c_void, *mut usize) -> Status;
        copy = "clEnqueueMemcpyINTEL"
            (Raw, u32, *mut c_void, *const c_void, usize, u32, Events, *mut Raw) -> Status;
        fill = "clEnqueueMemFillINTEL"
            (Raw, *mut c_void, *const c_void, usize, usize, u32, Events, *mut Raw) -> Status;
        migrate = "clEnqueueMigrateMemINTEL"(Raw, *const c_void, usize, Bits, u32, Events, *mut Raw) -> Status;
    }
}

impl core::fmt::Debug for Library {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Library").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Library {
    /// The address of a function that the table does not have.
    pub(super) fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        let library = self.handle.as_ref()?;
        // SAFETY: the symbol is taken as an address and not called here.
        let found = unsafe { library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
        NonNull::new(*found)
    }

    /// The address of a function of an extension, as one platform gives it.
    ///
    /// # Safety
    /// `platform` is a platform of this library.
    pub(super) unsafe fn extension(&self, platform: Raw, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the caller's promise; the name ends in NUL.
        NonNull::new(unsafe { (self.extension_function)(platform, name.as_ptr()) })
    }
}

/// Opens the file that [`VARIABLE`] names, else the loader under its usual names.
pub(super) fn open_usual() -> Result<&'static Library> {
    match env::var_os(VARIABLE).filter(|named| !named.is_empty()) {
        Some(named) => open(Path::new(&named)),
        None => library::open_first(&NAMES, open),
    }
}

/// Opens the library at `path`, once per path and process. Never closed: drivers keep threads.
pub(super) fn open(path: &Path) -> Result<&'static Library> {
    static OPENED: Mutex<Vec<&'static Library>> = Mutex::new(Vec::new());
    let opening = Opening::begin()?;
    let mut opened = OPENED.lock();
    if let Some(library) = opened.iter().find(|library| library.path == path) {
        return Ok(library);
    }
    let handle = load(path)
        .or_else(|_| {
            load_companions(path);
            load(path)
        })
        .map_err(|words| error::of(library::not_found(NAMES[0], path, &words)))?;
    // SAFETY: the signatures are those of the OpenCL specification, which never changes one.
    let mut library = unsafe { Library::bind(&handle, path) }?;
    library.handle = Some(handle);
    let library: &'static Library = Box::leak(Box::new(library));
    opened.push(library);
    opening.done();
    Ok(library)
}

fn load(path: &Path) -> Result<libloading::Library, String> {
    // SAFETY: loading runs the initialisers of the library, which depend on nothing of ours.
    unsafe { library::open(path) }
}

/// The loader in Intel's wheel needs compiler libraries that lie beside it, and does not say where. Once they are in the
/// process, it finds them by name.
fn load_companions(path: &Path) {
    let Some(folder) = path.parent().filter(|folder| folder.is_absolute()) else { return };
    for name in ["libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so"] {
        if let Ok(library) = load(&folder.join(name)) {
            core::mem::forget(library);
        }
    }
}

/// An object of the runtime that is released when its last owner is gone.
pub(super) type Handle = handle::Handle<Library>;

impl handle::Counting for Library {
    type Answer = Status;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_library_is_a_typed_error() {
        let path = "/nonexistent/libOpenCL.so";
        let kind = open(Path::new(path)).unwrap_err().kind;
        assert!(
            matches!(kind, ErrorKind::LibraryNotFound { library, reason } if library == NAMES[0] && reason.contains(path)),
            "{kind}"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_without_the_functions_names_the_first_missing_one() {
        // The C library is there on every Linux, and it is not OpenCL.
        let error = open(Path::new("libc.so.6")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::SymbolMissing { library: NAMES[0], symbol: "clGetPlatformIDs" });
    }
}
