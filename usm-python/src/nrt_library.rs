//! `libusm_nrt`, opened once. It is the one runtime of this process: the extension counts, wraps
//! and frees through its table and never uses the runtime inside the Rust crate, whose counts
//! nobody else would see.

use std::path::PathBuf;
use std::sync::OnceLock;

use libloading::Library;
use pyo3::prelude::*;
use usm_core::AllocKind;
use usm_nrt::api::{API_VERSION, Api, NumbaApi, Status, kind_number};
use usm_nrt::{ExternalAllocator, MemInfo};

use crate::error::Class;

/// The opened library; never closed, because blocks and machine code point into it.
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
/// `DeviceError` when the package was built without the library, or the library is another version.
pub(crate) fn runtime(py: Python<'_>) -> PyResult<&'static Runtime> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let path: PathBuf = py.import("usm.nrt")?.call_method0("get_library")?.extract()?;
    let fresh = open(&path).map_err(|reason| Class::Device.error(format!("{}: {reason}", path.display())))?;
    // A second thread that was faster opened the same file: the table is the same.
    let runtime = RUNTIME.get_or_init(|| fresh);
    // SAFETY: an entry of the library's table, which takes any boolean.
    unsafe { (runtime.api.set_stats)(true) };
    Ok(runtime)
}

fn open(path: &PathBuf) -> Result<Runtime, String> {
    // SAFETY: a library of Rust, without initialisers of its own.
    let library = unsafe { Library::new(path) }.map_err(|error| error.to_string())?;
    let get_api = {
        // SAFETY: the header declares this name with this type.
        let symbol = unsafe { library.get::<unsafe extern "C" fn(u32) -> *const Api>(b"usm_nrt_get_api\0") };
        *symbol.map_err(|error| error.to_string())?
    };
    // SAFETY: takes any number and returns null or a static.
    let api: *const Api = unsafe { get_api(API_VERSION) };
    // SAFETY: null or the static table, whose first two words every version has.
    let Some(head) = (unsafe { api.cast::<[u32; 2]>().as_ref() }) else {
        return Err(format!("its interface is not version {API_VERSION}"));
    };
    let (has, needed) = (head[1] as usize, size_of::<Api>());
    if has < needed {
        return Err(format!("its table has {has} bytes, {needed} are needed: the library is older"));
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

    /// Takes all blocks that name no allocator from `functions`, whose memory is of that kind;
    /// small ones out of slabs.
    pub(crate) fn set_source(&self, functions: &ExternalAllocator, kind: AllocKind) -> PyResult<()> {
        // SAFETY: functions of this extension, which is never unloaded; they are copied.
        check(unsafe { (self.api.set_allocator_of_kind)(functions, kind_number(kind), true) }, 0)
    }

    /// Takes them from the heap.
    pub(crate) fn set_heap(&self) -> PyResult<()> {
        // SAFETY: no functions.
        check(unsafe { (self.api.set_allocator)(std::ptr::null()) }, 0)
    }

    /// Slabs of the source, and blocks of them that are alive.
    pub(crate) fn kept_counts(&self) -> (usize, usize) {
        let (mut slabs, mut live) = (0, 0);
        // SAFETY: room for both.
        unsafe { (self.api.kept_counts)(&raw mut slabs, &raw mut live) };
        (slabs, live)
    }

    /// The place in the order of allocation of a tracked block that is alive; `u64::MAX` for any
    /// other address.
    pub(crate) fn sequence(&self, block: *const MemInfo) -> u64 {
        // SAFETY: the entry looks at the address alone.
        unsafe { (self.api.sequence)(block) }
    }

    /// Blocks that other runtimes destroyed.
    pub(crate) fn foreign_frees(&self) -> usize {
        // SAFETY: an entry without conditions.
        unsafe { (self.api.foreign_frees)() }
    }
}

/// As [`check`], of an entry that takes an alignment.
pub(crate) fn check_aligned(status: Status, size: usize, alignment: usize) -> PyResult<()> {
    match status {
        Status::INVALID_ALIGNMENT => {
            Err(Class::Request.error(format!("alignment {alignment} is not a power of two")))
        }
        other => check(other, size),
    }
}

/// The exception for an entry that refused; `size` is what was asked for.
pub(crate) fn check(status: Status, size: usize) -> PyResult<()> {
    match status {
        Status::OK => Ok(()),
        Status::SIZE_OVERFLOW | Status::OUT_OF_MEMORY => {
            Err(Class::Allocation.error(format!("{size} bytes could not be allocated")))
        }
        Status(code) => Err(Class::Request.error(format!("the runtime refused: status {code}"))),
    }
}
