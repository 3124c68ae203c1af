//! Vendor libraries: opens them by their usual names, in order, and keeps the system's reason if a
//! file does not open.
//!
//! An error is a small `Copy` value, so it holds the system's message by reference. Each message is
//! kept once for the process, which tries few files.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use std::path::{Path, PathBuf};

use crate::error::{ErrorKind, Result};
use crate::process::fork::{Loading, Opening};
use crate::sync::sleeping::Mutex;

/// Maximum number of kept reasons. Further ones are replaced by [`FULL`].
const LIMIT: usize = 256;
const FULL: &str = "too many files were tried to keep the reason of this one";

/// An opened library file. Dropping it closes the library, so only a library that lacks a function
/// is dropped: a runtime's threads run its code as long as the process lives.
#[derive(Debug)]
pub struct File {
    library: libloading::Library,
    path: PathBuf,
}

impl File {
    /// Opens the file at `path`. Errors name it by its usual `name`.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`] with the system's message; [`ErrorKind::Forked`].
    ///
    /// # Safety
    /// The library's initialisers are sound to run.
    pub unsafe fn open(name: &'static str, path: &Path) -> Result<Self, ErrorKind> {
        let _loading = Loading::begin().map_err(|error| error.kind)?;
        // SAFETY: the caller's promise.
        match unsafe { libloading::Library::new(path) } {
            Ok(library) => Ok(Self { library, path: path.to_owned() }),
            Err(error) => Err(not_found(name, path, &message_of(&error))),
        }
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the library open for the rest of the process.
    pub fn keep_open(self) {
        core::mem::forget(self.library);
    }

    /// The address of a function.
    #[must_use]
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the symbol is used as an address and not called here.
        let address = unsafe { self.library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
        NonNull::new(*address)
    }
}

/// The opened libraries of a runtime, each opened once for the process.
#[derive(Debug)]
pub struct LibraryCache<L: 'static>(Mutex<Vec<&'static L>>);

impl<L: Sync> LibraryCache<L> {
    /// No library.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The first library for which `is` holds, otherwise the result of `open`.
    ///
    /// # Errors
    /// Those of `open`; [`ErrorKind::ProcessEnds`], [`ErrorKind::Forked`].
    pub fn get(&self, is: impl Fn(&L) -> bool, open: impl FnOnce() -> Result<L>) -> Result<&'static L> {
        let opening = Opening::begin()?;
        let mut libraries = self.0.lock();
        if let Some(opened_library) = libraries.iter().find(|candidate| is(candidate)) {
            return Ok(opened_library);
        }
        let library: &'static L = Box::leak(Box::new(open()?));
        libraries.push(library);
        opening.mark_open();
        Ok(library)
    }
}

/// The system's message: that of the error's source, if it has one. The error itself then only says
/// which call failed.
fn message_of(error: &dyn core::error::Error) -> String {
    use alloc::string::ToString;

    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The error for a `library` whose file at `path` did not open, with the system's message `words`.
/// The message names the missing file, which may be a dependency of the library; so the error names
/// the path too.
pub fn not_found(library: &'static str, path: &Path, words: &str) -> ErrorKind {
    let path = path.display();
    let has_path = words.starts_with(&format!("{path}:"));
    let reason = if has_path { words.into() } else { format!("{path}: {words}") };
    ErrorKind::LibraryNotFound { library, reason: intern(reason) }
}

/// The file that the environment variable names. An empty variable names none, like an unset one.
#[must_use]
pub fn named_by(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The result for the file at `path`, which an environment variable names: an error names this file
/// and the variable, and not the library's usual name.
pub fn of_variable<T>(variable: &str, path: &Path, result: Result<T>) -> Result<T> {
    result.map_err(|mut error| {
        let path = path.display();
        let name = || intern(format!("{path} (of {variable})"));
        match &mut error.kind {
            ErrorKind::LibraryNotFound { library, reason } => {
                *library = name();
                *reason = reason.strip_prefix(&format!("{path}: ")).unwrap_or(reason);
            }
            ErrorKind::SymbolMissing { library, .. } | ErrorKind::LibraryVersion { library, .. } => {
                *library = name();
            }
            _ => {}
        }
        error
    })
}

fn intern(reason: String) -> &'static str {
    static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut reasons = KEPT.lock();
    if let Some(entry) = reasons.iter().find(|entry| **entry == reason) {
        return entry;
    }
    if reasons.len() == LIMIT {
        return FULL;
    }
    let reason: &'static str = Box::leak(reason.into_boxed_str());
    reasons.push(reason);
    reason
}

/// The first of `names` under which the process has already loaded a library. A driver may exist in
/// several files, also from other packages, and a second copy would not know the first one's
/// memory.
#[cfg(target_os = "linux")]
pub fn loaded(names: &[&'static str]) -> Option<&'static str> {
    use libloading::os::unix::{Library, RTLD_LAZY};

    /// From `dlfcn.h`; the value differs only on MIPS.
    const RTLD_NOLOAD: i32 = 4;

    // Refused in the child of a process with an open runtime, whose threads may have been in the
    // loader.
    let _opening = Opening::begin().ok()?;
    let is_there = |name: &&&str| {
        // SAFETY: nothing is loaded, so no initialiser runs. If another thread closes the library
        // meanwhile, its name is not found, and it is loaded like any other.
        unsafe { Library::open(Some(**name), RTLD_LAZY | RTLD_NOLOAD) }.is_ok()
    };
    names.iter().find(is_there).copied()
}

/// The result of `open` for the first of `names` that exists, usable or not. If none exists,
/// returns the reason for the first name, because the others are alternative names of the same
/// file. Requires at least one name.
pub fn open_first<T>(names: &[impl AsRef<Path>], open: impl Fn(&Path) -> Result<T>) -> Result<T> {
    let is_missing = |result: &Result<T>| {
        matches!(result, Err(crate::Error { kind: ErrorKind::LibraryNotFound { .. }, .. }))
    };
    let first = open(names[0].as_ref());
    if !is_missing(&first) {
        return first;
    }
    // If a library exists but cannot be used, that is the error to report, not that its other name
    // is missing.
    names[1..].iter().map(|name| open(name.as_ref())).find(|result| !is_missing(result)).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use super::*;

    fn reason(kind: ErrorKind) -> &'static str {
        match kind {
            ErrorKind::LibraryNotFound { reason, .. } => reason,
            other => panic!("{other}"),
        }
    }

    /// A process has one environment for all of its tests, so each value has a process of its own.
    #[test]
    #[cfg(not(any(loom, miri)))]
    fn an_empty_variable_names_no_file() {
        const VARIABLE: &str = "USM_FILE_OF_A_TEST";
        const EXPECTED: &str = "USM_EXPECTED_IN_A_TEST";
        if let Ok(expected) = std::env::var(EXPECTED) {
            assert_eq!(format!("{:?}", named_by(VARIABLE)), expected);
            return;
        }
        assert_eq!(named_by(VARIABLE), None);
        for (value, expected) in [("", "None"), ("/a/libone.so", "Some(\"/a/libone.so\")")] {
            let this = std::env::current_exe().expect("this program");
            let mut again = std::process::Command::new(this);
            again.args(["--exact", "driver::library::tests::an_empty_variable_names_no_file"]);
            let output = again.env(VARIABLE, value).env(EXPECTED, expected).output().expect("a process");
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{value:?}: {said}");
        }
    }

    #[test]
    fn a_file_that_a_variable_names_is_named_in_its_errors() {
        let path = Path::new("/a/libone.so");
        let of = |kind: ErrorKind| {
            of_variable::<()>("USM_ONE_LIBRARY", path, Err(kind.into())).unwrap_err().kind.to_string()
        };
        assert_eq!(
            of(not_found("libone.so.1", path, "/a/libone.so: no such file")),
            "library /a/libone.so (of USM_ONE_LIBRARY) could not be opened: no such file"
        );
        assert_eq!(
            of(ErrorKind::SymbolMissing { library: "libone.so.1", symbol: "first" }),
            "library /a/libone.so (of USM_ONE_LIBRARY) lacks the function first"
        );
        assert_eq!(of(ErrorKind::NoDevice), ErrorKind::NoDevice.to_string());
    }

    #[test]
    fn the_reason_names_the_file_tried_and_the_file_missing_and_is_kept_once() {
        let path = Path::new("/a/libone.so");
        let own = reason(not_found("one", path, "/a/libone.so: no such file"));
        assert_eq!(own, "/a/libone.so: no such file");
        let other = reason(not_found("one", path, "libtwo.so: no such file"));
        assert_eq!(other, "/a/libone.so: libtwo.so: no such file");
        assert!(core::ptr::eq(other, reason(not_found("one", path, "libtwo.so: no such file"))));
    }

    #[test]
    fn the_reason_has_the_source_of_the_error() {
        #[derive(Debug)]
        struct Layer(&'static str, Option<&'static Layer>);

        impl core::fmt::Display for Layer {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.0)
            }
        }

        impl core::error::Error for Layer {
            fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
                self.1.map(|source| source as _)
            }
        }

        static SOURCE: Layer = Layer("module not found", None);
        let path = Path::new("/a/one.dll");
        let one = reason(not_found("one", path, &message_of(&Layer("the call failed", Some(&SOURCE)))));
        assert_eq!(one, "/a/one.dll: module not found");
        assert_eq!(reason(not_found("one", path, &message_of(&SOURCE))), "/a/one.dll: module not found");
    }

    #[test]
    #[cfg(not(any(loom, miri)))]
    fn the_reason_of_a_missing_file_is_the_systems() {
        let path = Path::new("/nowhere/libone.so");
        // SAFETY: there is no such file, so nothing is initialised.
        let words = reason(unsafe { File::open("libone.so.1", path) }.expect_err("no such file"));
        assert!(words.starts_with("/nowhere/libone.so: "), "{words}");
        // The name of the call says nothing to a user.
        assert!(!words.contains("dlopen") && !words.contains("LoadLibrary"), "{words}");
    }

    #[test]
    fn the_first_present_name_is_taken_else_the_first_reason() {
        let missing = |path: &Path| crate::Error::from(not_found("one", path, "no such file"));
        let opened: Result<()> = open_first(&["x", "y"], |path| Err(missing(path)));
        assert_eq!(reason(opened.unwrap_err().kind), "x: no such file");
        let lacks = ErrorKind::SymbolMissing { library: "one", symbol: "f" };
        let opened: Result<()> = open_first(&["x", "y", "z"], |path| {
            Err(if path == Path::new("y") { lacks.into() } else { missing(path) })
        });
        assert_eq!(opened.unwrap_err().kind, lacks);
        let opened =
            open_first(&["x", "y"], |path| if path == Path::new("y") { Ok(1) } else { Err(missing(path)) });
        assert_eq!(opened, Ok(1));
    }
}
