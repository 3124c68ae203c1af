//! `libusm_nrt`, opened once: the only runtime of this process. The extension counts, wraps and
//! frees through its table. It never uses the runtime in the Rust crate, whose counts would be
//! separate.

use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;
use pyo3::prelude::*;
use usm_core::AllocKind;
use usm_nrt::api::{API_VERSION, Api, NumbaApi, Status, kind_number};
use usm_nrt::{ExternalAllocator, MemInfo};

use crate::text::error::Class;

/// The opened library. Never closed, because blocks and machine code point into it.
#[derive(Debug)]
pub(crate) struct Runtime {
    library: Library,
    pub(crate) api: &'static Api,
    pub(crate) numba: &'static NumbaApi,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// The runtime, opened at first need.
///
/// # Errors
/// `DeviceError` if the package was built without the library, or the library has another version.
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let path: PathBuf = py.import("usm.nrt")?.call_method0("get_library")?.extract()?;
    let fresh = open(&path).map_err(|reason| Class::Device.error(format!("{}: {reason}", path.display())))?;
    // A concurrent thread may have opened the same file; the table is the same.
    let runtime = RUNTIME.get_or_init(|| fresh);
    // SAFETY: an entry of the library's table, which takes any boolean.
    unsafe { (runtime.api.set_stats)(true) };
    Ok(runtime)
}

/// The system's message: that of the error's source, if it has one. The error itself then only says
/// which call failed.
pub(crate) fn message_of(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

fn open(path: &PathBuf) -> Result<Runtime, String> {
    let _loading = usm_core::ends::Loading::begin().map_err(|error| error.to_string())?;
    // SAFETY: a Rust library without initialisers.
    let library = unsafe { Library::new(path) }.map_err(|error| message_of(&error))?;
    let get_api = {
        // SAFETY: the header declares this name with this type.
        let symbol = unsafe { library.get::<unsafe extern "C" fn(u32) -> *const Api>(b"usm_nrt_get_api\0") };
        *symbol.map_err(|error| message_of(&error))?
    };
    // SAFETY: takes any number and returns null or a static.
    let api: *const Api = unsafe { get_api(API_VERSION) };
    // SAFETY: null or the static table, whose first two words every version has.
    let Some(head) = (unsafe { api.cast::<[u32; 2]>().as_ref() }) else {
        return Err(format!("its interface is not version {API_VERSION}"));
    };
    let (has, least) = (head[1] as usize, size_of::<Api>());
    if has < least {
        return Err(format!("its table has {has} bytes, {least} are needed: the library is older"));
    }
    // SAFETY: not null, and as large as the type.
    let api = unsafe { &*api };
    // SAFETY: the table's own pointer to a static.
    let numba = unsafe { &*api.numba };
    Ok(Runtime { library, api, numba })
}

impl Runtime {
    /// The address of an exported function.
    pub(crate) fn symbol(&self, name: &str) -> Option<usize> {
        // SAFETY: only the address is taken.
        let symbol = unsafe { self.library.get::<*const ()>(name.as_bytes()) };
        symbol.ok().map(|symbol| *symbol as usize)
    }

    /// Allocates all blocks that name no allocator from `functions`, whose memory has that kind;
    /// small blocks come from slabs.
    pub(crate) fn set_source(&self, functions: &ExternalAllocator, kind: AllocKind) -> PyResult<()> {
        // SAFETY: functions of this extension, which is never unloaded; the library copies them.
        check(unsafe { (self.api.set_allocator_of_kind)(functions, kind_number(kind), true) }, 0)
    }

    /// Allocates blocks from the heap again.
    pub(crate) fn set_heap(&self) -> PyResult<()> {
        // SAFETY: no functions.
        check(unsafe { (self.api.set_allocator)(std::ptr::null()) }, 0)
    }

    /// Numbers of the source's slabs, and of live blocks in them.
    pub(crate) fn kept_counts(&self) -> (usize, usize) {
        let (mut slabs, mut live) = (0, 0);
        // SAFETY: room for both.
        unsafe { (self.api.kept_counts)(&raw mut slabs, &raw mut live) };
        (slabs, live)
    }

    /// The position of a live tracked block in the order of allocation; `u64::MAX` for other
    /// addresses.
    pub(crate) fn sequence(&self, block: *const MemInfo) -> u64 {
        // SAFETY: the entry reads only the address.
        unsafe { (self.api.sequence)(block) }
    }

    /// Number of blocks that other runtimes destroyed.
    pub(crate) fn foreign_frees(&self) -> usize {
        // SAFETY: an entry without preconditions.
        unsafe { (self.api.foreign_frees)() }
    }
}

/// [`check`] for an entry with an alignment.
pub(crate) fn check_aligned(status: Status, size: usize, alignment: usize) -> PyResult<()> {
    match status {
        Status::INVALID_ALIGNMENT => {
            Err(Class::Request.error(format!("alignment {alignment} is not a power of two")))
        }
        other => check(other, size),
    }
}

/// The exception for a refusal by an entry; `size` is the requested number of bytes.
pub(crate) fn check(status: Status, size: usize) -> PyResult<()> {
    match status {
        Status::OK => Ok(()),
        Status::SIZE_OVERFLOW | Status::OUT_OF_MEMORY => {
            Err(Class::Allocation.error(format!("{size} bytes could not be allocated")))
        }
        Status(code) => Err(Class::Request.error(format!("the runtime refused: status {code}"))),
    }
}
