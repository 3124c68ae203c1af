//! Opening a driver.

use core::ffi::{CStr, c_void};
use core::ops::Deref;
use core::ptr::NonNull;
use std::path::Path;

use crate::error::{NO_DEVICE, SUCCESS};
use crate::table::{Code, From, Functions, Names};
use crate::vendor::{Constants, Vendor};
use usm_core::driver::library::{self, File, LibraryCache};
use usm_core::{Error, ErrorKind, Result};

/// An open driver. Its functions are its fields.
pub(super) struct Driver {
    functions: Functions,
    pub(super) vendor: &'static Vendor,
    /// Numbers that depend on the version too.
    pub(super) constants: Constants,
    file: File,
}

impl Deref for Driver {
    type Target = Functions;

    #[inline]
    fn deref(&self) -> &Functions {
        &self.functions
    }
}

impl core::fmt::Debug for Driver {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Driver").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Driver {
    /// The vendor's names of the functions in the table.
    #[inline]
    pub(super) fn names(&self) -> &'static Names {
        &self.vendor.names
    }

    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        self.vendor.error(kind)
    }

    pub(super) fn unsupported(&self, operation: &'static str) -> Error {
        self.error(ErrorKind::Unsupported { operation })
    }

    /// The failure of the call `operation`.
    pub(super) fn native(&self, operation: &'static str, code: Code) -> Error {
        self.vendor.native(operation, code)
    }

    #[inline]
    pub(super) fn check(&self, operation: &'static str, code: Code) -> Result<()> {
        self.vendor.check(operation, code)
    }

    fn is_of_vendor(&self, vendor: &Vendor) -> bool {
        self.vendor.own == vendor.own
    }

    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The address of a function that is not in the table.
    pub(super) fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        self.file.function(name)
    }
}

/// Opens the file that the vendor's variable names, else the driver under its usual names; first
/// one that the process has already loaded.
pub(super) fn open_default(vendor: &'static Vendor) -> Result<&'static Driver> {
    match library::named_by(vendor.variable) {
        Some(path) => library::of_variable(vendor.variable, &path, open(vendor, &path)),
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

/// Other systems go by the names alone.
#[cfg(not(target_os = "linux"))]
fn loaded(_: &Vendor) -> Option<&'static str> {
    None
}

/// Opens and initialises the driver at `path`, once per path and process. Never closed: the driver
/// keeps threads.
pub(super) fn open(vendor: &'static Vendor, path: &Path) -> Result<&'static Driver> {
    static OPENED: LibraryCache<Driver> = LibraryCache::new();
    OPENED.get(|driver| driver.path() == path && driver.is_of_vendor(vendor), || initialised(vendor, path))
}

fn initialised(vendor: &'static Vendor, path: &Path) -> Result<Driver> {
    // SAFETY: loading runs the driver's initialisers, which depend on nothing in this crate.
    let file = unsafe { File::open(vendor.library, path) }.map_err(|kind| vendor.error(kind))?;
    // SAFETY: the signatures are those of `cuda.h` and `hip_runtime_api.h`; a function of CUDA that
    // changed has a new name.
    let functions = unsafe {
        Functions::bind(&From {
            file: &file,
            own: vendor.own,
            names: &vendor.names,
            missing_symbol: &|symbol| {
                vendor.error(ErrorKind::SymbolMissing { library: vendor.library, symbol })
            },
        })
    }?;
    // SAFETY: the driver is open, the flags must be 0.
    match unsafe { (functions.init)(0) } {
        SUCCESS | NO_DEVICE => {}
        code if code == vendor.no_usable_device => {}
        code => return Err(vendor.native(vendor.names.init, code)),
    }
    let mut version = 0;
    // SAFETY: space for the value.
    let code = unsafe { (functions.driver_version)(&raw mut version) };
    vendor.check(vendor.names.driver_version, code)?;
    Ok(Driver { functions, vendor, constants: (vendor.constants)(version), file })
}

#[cfg(test)]
mod tests {
    use super::super::table::{IpcMemory, RowsCopy};
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
            // Every Linux has the C library, and it is no driver.
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
