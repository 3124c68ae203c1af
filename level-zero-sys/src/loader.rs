//! Opens the library at run time.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::c_void;
use core::fmt;
use core::mem::ManuallyDrop;
use std::ffi::{OsStr, OsString};

use crate::driver::ze_init_flags_t;
use crate::error::Error;
use crate::table::Functions;

/// Names of the Level Zero loader on this system, tried in order.
pub const LIBRARY_NAMES: &[&str] = if cfg!(windows) {
    &["ze_loader.dll"]
} else if cfg!(target_os = "macos") {
    &["libze_loader.1.dylib", "libze_loader.dylib"]
} else {
    &["libze_loader.so.1", "libze_loader.so"]
};

/// An open and complete Level Zero library, before `zeInit`.
///
/// It stays loaded until the process ends, because drivers start threads and register exit
/// handlers, and a table may be copied.
#[derive(Debug)]
pub struct Library {
    functions: Functions,
    name: OsString,
    _open: ManuallyDrop<libloading::Library>,
}

/// A Level Zero library after a successful `zeInit`.
#[derive(Debug)]
pub struct LevelZero {
    functions: Functions,
    name: OsString,
}

/// The reason why the library cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// None of the names could be opened.
    NotFound {
        /// The names, in the order tried.
        attempts: Vec<OsString>,
        /// The system's message for the first name.
        reason: String,
    },
    /// The library was opened but cannot be used.
    Unusable {
        /// The library.
        library: OsString,
        /// A missing function, or the result of `zeInit`.
        error: Error,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound { attempts, reason } => {
                formatter.write_str("no Level Zero library: tried")?;
                for name in attempts {
                    write!(formatter, " {}", name.to_string_lossy())?;
                }
                write!(formatter, ": {reason}")
            }
            Self::Unusable { library, error } => write!(formatter, "{}: {error}", library.to_string_lossy()),
        }
    }
}

impl core::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::NotFound { .. } => None,
            Self::Unusable { error, .. } => Some(error),
        }
    }
}

impl Library {
    /// Opens the system's Level Zero loader and checks that it has every required function.
    ///
    /// # Errors
    ///
    /// The library is absent or lacks a function. The error names it.
    pub fn open() -> Result<Self, LoadError> {
        // SAFETY: the names are those of the Level Zero loader, and the system's search path is
        // trusted to have no other library of these names.
        unsafe { Self::open_any(LIBRARY_NAMES.iter().map(OsStr::new)) }
    }

    /// [`open`](Self::open) for the library at a path.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    ///
    /// # Safety
    ///
    /// Loading the library and its dependencies is sound, and its exports with Level Zero's names
    /// are Level Zero's functions.
    pub unsafe fn open_at(path: impl AsRef<OsStr>) -> Result<Self, LoadError> {
        // SAFETY: the caller guarantees the library.
        unsafe { Self::open_any(core::iter::once(path.as_ref())) }
    }

    /// # Safety
    ///
    /// As for [`open_at`](Self::open_at), for every name.
    unsafe fn open_any<'a>(names: impl Iterator<Item = &'a OsStr>) -> Result<Self, LoadError> {
        let mut attempts = Vec::new();
        let mut reason = String::new();
        for name in names {
            // SAFETY: the caller guarantees the library.
            match unsafe { libloading::Library::new(name) } {
                Ok(library) => {
                    // SAFETY: as above.
                    return unsafe { Self::fill(name.to_owned(), library) };
                }
                Err(error) if attempts.is_empty() => reason = message_of(&error),
                Err(_) => {}
            }
            attempts.push(name.to_owned());
        }
        Err(LoadError::NotFound { attempts, reason })
    }

    /// # Safety
    ///
    /// As for [`open_at`](Self::open_at).
    unsafe fn fill(name: OsString, library: libloading::Library) -> Result<Self, LoadError> {
        let library = ManuallyDrop::new(library);
        let find = |symbol: &core::ffi::CStr| {
            // SAFETY: the symbol is only used as an address here; `resolve` gives it its type.
            match unsafe { library.get::<*const c_void>(symbol.to_bytes_with_nul()) } {
                Ok(address) => *address,
                Err(_) => core::ptr::null(),
            }
        };
        // SAFETY: the library is never closed, and the caller guarantees its functions.
        let functions = unsafe { Functions::resolve(find) };
        match functions.missing() {
            None => Ok(Self { functions, name, _open: library }),
            Some(missing_symbol) => Err(LoadError::Unusable {
                library: name,
                error: Error::MissingSymbol { name: missing_symbol },
            }),
        }
    }

    /// The name or path under which the library was opened.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Calls `zeInit`, and returns the table only if that succeeds: some loaders crash on any call
    /// after a failed `zeInit`.
    ///
    /// # Errors
    ///
    /// [`Error::Call`] with the result of `zeInit`. `ZE_RESULT_ERROR_UNINITIALIZED` means that no
    /// driver was found.
    pub fn initialize(self, flags: ze_init_flags_t) -> Result<LevelZero, LoadError> {
        // SAFETY: zeInit takes a bit set, any thread may call it, and it is the first call.
        match unsafe { self.functions.zeInit(flags) } {
            Ok(_) => Ok(LevelZero { functions: self.functions, name: self.name }),
            Err(error) => Err(LoadError::Unusable { library: self.name, error }),
        }
    }
}

/// The system's message: that of the error's source, if it has one. The error itself then only says
/// which call failed.
fn message_of(error: &libloading::Error) -> String {
    let source = core::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

impl LevelZero {
    /// The functions, ready to be called.
    #[must_use]
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// The name or path under which the library was opened.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }
}
