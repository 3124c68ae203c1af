//! Opening the OpenCL loader, and the tables of its functions and of the USM extension's.

use core::ffi::{CStr, c_char, c_void};
use core::ops::Deref;
use core::ptr::NonNull;
use std::path::Path;

use crate::error::{self, Status};
use usm_core::driver::library::{self, File, LibraryCache};
use usm_core::driver::{handle, table};
use usm_core::{ErrorKind, Result};

/// File names of the installable client driver loader, tried in this order.
#[cfg(target_os = "windows")]
const NAMES: [&str; 1] = ["OpenCL.dll"];
#[cfg(target_os = "macos")]
const NAMES: [&str; 1] = ["/System/Library/Frameworks/OpenCL.framework/OpenCL"];
#[cfg(not(any(target_os = "windows", target_os = "macos")))]
const NAMES: [&str; 2] = ["libOpenCL.so.1", "libOpenCL.so"];

/// The library's name in errors.
const LIBRARY: &str = NAMES[0];

/// The environment variable for another file.
pub(super) const VARIABLE: &str = "USM_OPENCL_LIBRARY";

/// Any OpenCL object.
pub(super) type Raw = *mut c_void;
/// `cl_bitfield`, `cl_device_type`, ...
pub(super) type Bits = u64;
/// The runtime's callback for errors of a context.
type Notify = Option<extern "C" fn(*const c_char, *const c_void, usize, *mut c_void)>;
type Events = *const Raw;

table! {
    /// The functions of the loader that this crate uses.
    pub(super) Functions in LIBRARY of OpenCl:
    needed {
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
        event_times = "clGetEventProfilingInfo"(Raw, u32, usize, *mut c_void, *mut usize) -> Status;
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
    optional {}
}

table! {
    /// The functions of `cl_intel_unified_shared_memory` of one platform.
    pub(super) Usm in "the platform's cl_intel_unified_shared_memory" of OpenCl:
    needed {
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
    optional {}
}

/// The opened loader. Never closed: drivers keep threads.
#[derive(Debug)]
pub(super) struct Library {
    functions: Functions,
    file: File,
}

impl Deref for Library {
    type Target = Functions;

    #[inline]
    fn deref(&self) -> &Functions {
        &self.functions
    }
}

impl Library {
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The address of a function that is not in the table.
    pub(super) fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        self.file.function(name)
    }

    /// The address of an extension's function on one platform.
    ///
    /// # Safety
    /// `platform` is a platform of this library.
    pub(super) unsafe fn extension(&self, platform: Raw, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the caller's promise; the name ends in NUL.
        NonNull::new(unsafe { (self.extension_function)(platform, name.as_ptr()) })
    }

    /// The functions of the USM extension. They belong to a platform; the loader knows none of
    /// them. `None` if the platform lacks one of them.
    ///
    /// # Safety
    /// `platform` is a platform of this library.
    pub(super) unsafe fn usm(&self, platform: Raw) -> Option<Usm> {
        // SAFETY: the caller's promise.
        let find = |name: &CStr| unsafe { self.extension(platform, name) };
        // SAFETY: functions of these names have these signatures by the extension's specification.
        unsafe { Usm::bind(0, find) }.ok()
    }
}

/// Opens the file that [`VARIABLE`] names, else the loader under its usual names.
pub(super) fn open_default() -> Result<&'static Library> {
    match library::named_by(VARIABLE) {
        Some(path) => library::of_variable(VARIABLE, &path, open(&path)),
        None => library::open_first(&NAMES, open),
    }
}

/// Opens the library at `path`, once per path and process. Never closed: drivers keep threads.
pub(super) fn open(path: &Path) -> Result<&'static Library> {
    static OPENED: LibraryCache<Library> = LibraryCache::new();
    OPENED.get(
        |library| library.path() == path,
        || {
            let file = load(path).or_else(|_| {
                load_companions(path);
                load(path)
            });
            let file = file.map_err(error::of)?;
            // SAFETY: the signatures are those of the OpenCL specification, which never changes
            // one.
            let functions = unsafe { Functions::bind(0, |name| file.function(name)) }?;
            Ok(Library { functions, file })
        },
    )
}

fn load(path: &Path) -> Result<File, ErrorKind> {
    // SAFETY: loading runs the library's initialisers, which depend on nothing in this crate.
    unsafe { File::open(LIBRARY, path) }
}

/// The loader in Intel's wheel needs the compiler libraries beside it but has no path to them. Once
/// they are loaded, it finds them by name.
fn load_companions(path: &Path) {
    let Some(folder) = path.parent().filter(|folder| folder.is_absolute()) else { return };
    for name in ["libintlc.so.5", "libimf.so", "libirng.so", "libsvml.so"] {
        if let Ok(library) = load(&folder.join(name)) {
            library.keep_open();
        }
    }
}

/// An object of the runtime, released with its last owner. Any thread may use and release one; only
/// `clSetKernelArg` is no call for several threads, and it is not made on these.
pub(super) type Handle = handle::Handle<Library>;

impl handle::ReferenceCounting for Library {
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
            matches!(kind, ErrorKind::LibraryNotFound { library, reason } if library == LIBRARY && reason.contains(path)),
            "{kind}"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_without_the_functions_names_the_first_missing_one() {
        // Every Linux has the C library, and it is not OpenCL.
        let error = open(Path::new("libc.so.6")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::SymbolMissing { library: LIBRARY, symbol: "clGetPlatformIDs" });
    }
}
