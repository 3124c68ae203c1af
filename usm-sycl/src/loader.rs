//! Finding and opening the library, and the table of its functions.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ops::Deref;
use core::ptr::NonNull;
use std::env;
use std::path::{Path, PathBuf};

use crate::error;
use usm_core::driver::library::{self, File, LibraryCache};
use usm_core::driver::{handle, table};
use usm_core::{ErrorKind, Result};

#[cfg(target_os = "windows")]
pub(super) const LIBRARY: &str = "DPCTLSyclInterface.dll";
#[cfg(target_os = "macos")]
pub(super) const LIBRARY: &str = "libDPCTLSyclInterface.dylib";
#[cfg(not(any(target_os = "windows", target_os = "macos")))]
pub(super) const LIBRARY: &str = "libDPCTLSyclInterface.so";

/// The environment variable for another file.
const VARIABLE: &str = "USM_DPCTL_LIBRARY";

/// The oldest compiler generation whose library was verified to have this table's signatures.
const LEAST_VERSION: u32 = 2024;

/// An opaque object of the library: device, context, queue, event, vector.
pub(super) type Raw = *mut c_void;
/// `error_handler_callback` of the C headers.
pub(super) type ErrorHandler = extern "C" fn(c_int);

table! {
    /// The functions that this crate uses, all present once the library is open.
    pub(super) Functions in LIBRARY of Sycl:
    needed {
        dpcpp_version = "DPCTLService_GetDPCPPVersion"() -> *const c_char;
        string_delete = "DPCTLCString_Delete"(*const c_char);

        devices = "DPCTLDeviceMgr_GetDevices"(c_int) -> Raw;
        relative_id = "DPCTLDeviceMgr_GetRelativeId"(Raw) -> i64;
        cached_context = "DPCTLDeviceMgr_GetCachedContext"(Raw) -> Raw;
        device_vector_size = "DPCTLDeviceVector_Size"(Raw) -> usize;
        device_vector_at = "DPCTLDeviceVector_GetAt"(Raw, usize) -> Raw;
        device_vector_delete = "DPCTLDeviceVector_Delete"(Raw);

        device_delete = "DPCTLDevice_Delete"(Raw);
        device_equal = "DPCTLDevice_AreEq"(Raw, Raw) -> bool;
        device_backend = "DPCTLDevice_GetBackend"(Raw) -> c_int;
        device_type = "DPCTLDevice_GetDeviceType"(Raw) -> c_int;
        device_name = "DPCTLDevice_GetName"(Raw) -> *const c_char;
        device_vendor = "DPCTLDevice_GetVendor"(Raw) -> *const c_char;
        device_driver_version = "DPCTLDevice_GetDriverVersion"(Raw) -> *const c_char;
        device_platform = "DPCTLDevice_GetPlatform"(Raw) -> Raw;
        platform_name = "DPCTLPlatform_GetName"(Raw) -> *const c_char;
        platform_delete = "DPCTLPlatform_Delete"(Raw);
        device_has_aspect = "DPCTLDevice_HasAspect"(Raw, c_int) -> bool;
        device_global_mem_size = "DPCTLDevice_GetGlobalMemSize"(Raw) -> u64;
        device_local_mem_size = "DPCTLDevice_GetLocalMemSize"(Raw) -> u64;
        device_max_mem_alloc_size = "DPCTLDevice_GetMaxMemAllocSize"(Raw) -> u64;
        device_max_work_group_size = "DPCTLDevice_GetMaxWorkGroupSize"(Raw) -> usize;

        context_copy = "DPCTLContext_Copy"(Raw) -> Raw;
        context_delete = "DPCTLContext_Delete"(Raw);
        context_equal = "DPCTLContext_AreEq"(Raw, Raw) -> bool;
        context_devices = "DPCTLContext_GetDevices"(Raw) -> Raw;

        queue_create = "DPCTLQueue_Create"(Raw, Raw, Option<ErrorHandler>, c_int) -> Raw;
        queue_copy = "DPCTLQueue_Copy"(Raw) -> Raw;
        queue_delete = "DPCTLQueue_Delete"(Raw);
        queue_context = "DPCTLQueue_GetContext"(Raw) -> Raw;
        queue_device = "DPCTLQueue_GetDevice"(Raw) -> Raw;
        queue_in_order = "DPCTLQueue_IsInOrder"(Raw) -> bool;
        queue_memcpy = "DPCTLQueue_MemcpyWithEvents"(Raw, *mut c_void, *const c_void, usize, *const Raw, usize) -> Raw;
        queue_memset = "DPCTLQueue_Memset"(Raw, *mut c_void, u8, usize) -> Raw;
        queue_fill16 = "DPCTLQueue_Fill16"(Raw, *mut c_void, u16, usize) -> Raw;
        queue_fill32 = "DPCTLQueue_Fill32"(Raw, *mut c_void, u32, usize) -> Raw;
        queue_fill64 = "DPCTLQueue_Fill64"(Raw, *mut c_void, u64, usize) -> Raw;
        queue_fill128 = "DPCTLQueue_Fill128"(Raw, *mut c_void, *mut u64, usize) -> Raw;
        queue_prefetch = "DPCTLQueue_Prefetch"(Raw, *const c_void, usize) -> Raw;
        queue_advise = "DPCTLQueue_MemAdvise"(Raw, *const c_void, usize, c_int) -> Raw;
        queue_barrier = "DPCTLQueue_SubmitBarrier"(Raw) -> Raw;
        queue_barrier_for = "DPCTLQueue_SubmitBarrierForEvents"(Raw, *const Raw, usize) -> Raw;

        event_copy = "DPCTLEvent_Copy"(Raw) -> Raw;
        event_delete = "DPCTLEvent_Delete"(Raw);
        event_wait = "DPCTLEvent_Wait"(Raw);
        event_started = "DPCTLEvent_GetProfilingInfoStart"(Raw) -> usize;
        event_ended = "DPCTLEvent_GetProfilingInfoEnd"(Raw) -> usize;
        event_status = "DPCTLEvent_GetCommandExecutionStatus"(Raw) -> c_int;

        allocate_host = "DPCTLaligned_alloc_host"(usize, usize, Raw) -> *mut c_void;
        allocate_device = "DPCTLaligned_alloc_device"(usize, usize, Raw) -> *mut c_void;
        allocate_shared = "DPCTLaligned_alloc_shared"(usize, usize, Raw) -> *mut c_void;
        /// May throw for a pointer of another context.
        free_with_context = "DPCTLfree_with_context"(*mut c_void, Raw);
        pointer_type = "DPCTLUSM_GetPointerType"(*const c_void, Raw) -> c_int;
        /// Ends the process for a pointer of unknown type.
        pointer_device = "DPCTLUSM_GetPointerDevice"(*const c_void, Raw) -> Raw;
    }
    optional {}
}

/// The opened library. Never closed: see the page of this crate. Leaked, not counted, so that
/// handles stay one pointer wide.
#[derive(Debug)]
pub(super) struct Library {
    functions: Functions,
    pub(super) version: String,
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

    /// The generation of the compiler that built the library.
    #[cfg(all(feature = "kernel", feature = "opencl"))]
    pub(super) fn generation(&self) -> u32 {
        generation(&self.version)
    }

    /// The address of a function that is not in the table.
    pub(super) fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        self.file.function(name)
    }

    /// As [`function`](Self::function), with its type.
    ///
    /// # Safety
    /// `F` is the type of the function of that name.
    pub(super) unsafe fn typed_function<F: Copy>(&self, name: &CStr) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<Raw>(), "a function pointer") };
        let address = self.function(name)?;
        // SAFETY: as large as a pointer, and of this type by the caller's promise.
        Some(unsafe { core::mem::transmute_copy(&address) })
    }

    /// Takes ownership of a string from the library.
    ///
    /// # Safety
    /// `text` is NULL or a string that the library allocated for its caller, and is not used
    /// afterwards.
    pub(super) unsafe fn take_string(&self, text: *const c_char) -> String {
        if text.is_null() {
            return String::new();
        }
        // SAFETY: NUL-terminated by the caller's promise.
        let message = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: we own it by the caller's promise, and delete it once.
        unsafe { (self.string_delete)(text) };
        message
    }
}

/// Opens the library at `path`, once per path and process.
pub(super) fn open(path: &Path) -> Result<&'static Library> {
    static OPENED: LibraryCache<Library> = LibraryCache::new();
    let library_entry = OPENED.get(
        |library| library.path() == path,
        || {
            // SAFETY: loading runs the initialisers of the SYCL runtime, which depend on nothing in
            // this crate.
            let file = unsafe { File::open(LIBRARY, path) }.map_err(error::of)?;
            // SAFETY: the signatures are those of the public C headers, unchanged since
            // `LEAST_VERSION`; the functions that the version check calls, one without arguments
            // and one that frees a string, have never changed.
            let functions = unsafe { Functions::bind(0, |name| file.function(name)) }?;
            // SAFETY: no precondition.
            let version = unsafe { (functions.dpcpp_version)() };
            let mut library = Library { functions, version: String::new(), file };
            // SAFETY: we own the string.
            library.version = unsafe { library.take_string(version) };
            check_version(&library.version)?;
            Ok(library)
        },
    );
    match env::var_os(VARIABLE).is_some_and(|value| Path::new(&value) == path) {
        true => library::of_variable(VARIABLE, path, library_entry),
        false => library_entry,
    }
}

/// The generation of the compiler that built the library; 0 if its version is not readable.
fn generation(version: &str) -> u32 {
    version.split('.').next().and_then(|part| part.trim().parse().ok()).unwrap_or(0)
}

fn check_version(version: &str) -> Result<()> {
    let major = generation(version);
    if major < LEAST_VERSION {
        let kind = ErrorKind::LibraryVersion { library: LIBRARY, found: major, least: LEAST_VERSION };
        return Err(error::of(kind));
    }
    Ok(())
}

/// The file that `USM_DPCTL_LIBRARY` names; if unset, the dpctl package of the active virtual
/// environment (`VIRTUAL_ENV`), then of the Python installations whose `python3` is on `PATH`. Runs
/// and opens nothing.
#[must_use]
pub fn find_library() -> Option<PathBuf> {
    if let Some(value) = env::var_os(VARIABLE) {
        return (!value.is_empty()).then(|| PathBuf::from(value));
    }
    let active = env::var_os("VIRTUAL_ENV").map(PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path)
        .filter(|folder| folder.join("python3").exists())
        .filter_map(|folder| folder.parent().map(Path::to_owned));
    active.into_iter().chain(folders).find_map(|prefix| library_under(&prefix))
}

/// `lib/python3.*/site-packages/dpctl` below an installation's prefix.
fn library_under(prefix: &Path) -> Option<PathBuf> {
    let versions = std::fs::read_dir(prefix.join("lib")).ok()?;
    versions
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
        .map(|entry| entry.path().join("site-packages").join("dpctl").join(LIBRARY))
        .find(|file| file.is_file())
}

/// The OpenCL CPU runtime in the Python environment of the library at `path`, if installed: the
/// value for `OCL_ICD_FILENAMES`.
#[must_use]
pub fn opencl_runtime_beside(path: &Path) -> Option<PathBuf> {
    path.ancestors().map(|folder| folder.join("libintelocl.so")).find(|file| file.is_file())
}

/// Sets `OCL_ICD_FILENAMES` to [`opencl_runtime_beside`] the library at `path`, if it is unset and
/// the runtime exists. Call this before opening the library. Returns whether it set the variable.
///
/// # Safety
/// No other thread reads or writes the environment meanwhile, as for [`std::env::set_var`].
pub unsafe fn use_opencl_runtime_beside(path: &Path) -> bool {
    const RUNTIMES: &str = "OCL_ICD_FILENAMES";
    let opencl_runtime = if env::var_os(RUNTIMES).is_none() { opencl_runtime_beside(path) } else { None };
    if let Some(runtime) = &opencl_runtime {
        // SAFETY: the caller's promise.
        unsafe { env::set_var(RUNTIMES, runtime) };
    }
    opencl_runtime.is_some()
}

/// An object of the library, deleted with its last owner. SYCL's classes are thread safe, and the
/// library keeps no thread state, so any thread may use and delete one.
pub(super) type Handle = handle::Handle<Library>;

impl handle::ReferenceCounting for Library {
    type Answer = ();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_or_unreadable_version_is_refused_with_both_numbers() {
        assert!(check_version("2024.2.0").is_ok());
        assert!(check_version("2026.0.0").is_ok());
        for (text, found) in [("2023.1.0", 2023), ("", 0), ("nightly", 0), ("99999999999.1", 0)] {
            let error = check_version(text).unwrap_err();
            assert_eq!(
                error.kind,
                ErrorKind::LibraryVersion { library: LIBRARY, found, least: LEAST_VERSION }
            );
        }
    }

    #[test]
    fn a_file_that_is_no_library_is_a_typed_error() {
        let text = std::env::current_exe().unwrap().with_extension("d");
        for path in [Path::new("/nonexistent/dpctl.so"), &text] {
            let kind = open(path).unwrap_err().kind;
            let said = path.to_str().unwrap();
            assert!(
                matches!(kind, ErrorKind::LibraryNotFound { library: LIBRARY, reason } if reason.contains(said)),
                "{kind}"
            );
        }
    }
}
