//! Vendor libraries: their usual names tried in order, and what the system says of a file that does
//! not open.
//!
//! An error is a small value that is copied, so it holds the words of the system as a reference.
//! They are kept for the process, each once: the files that a process tries are few.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ffi::{CStr, c_void};
use core::ptr::NonNull;
use std::path::{Path, PathBuf};

use crate::error::{ErrorKind, Result};
use crate::process::fork::Opening;
use crate::sync::sleeping::Mutex;

/// Different reasons that are kept; a program that tries more files than this reads [`FULL`] of the
/// others.
const LIMIT: usize = 256;
const FULL: &str = "too many files were tried to keep the reason of this one";

/// A file of a vendor's, opened. To be kept or forgotten: runtimes have threads that run its code
/// for as long as the process lives.
#[derive(Debug)]
pub struct File {
    library: libloading::Library,
    path: PathBuf,
}

impl File {
    /// Opens the file at `path`, which errors call by its usual `name`.
    ///
    /// # Errors
    /// [`ErrorKind::LibraryNotFound`] with the system's words.
    ///
    /// # Safety
    /// The library's initialisers are sound to run.
    pub unsafe fn open(name: &'static str, path: &Path) -> Result<Self, ErrorKind> {
        // SAFETY: the caller's promise.
        match unsafe { libloading::Library::new(path) } {
            Ok(library) => Ok(Self { library, path: path.to_owned() }),
            Err(error) => Err(not_found(name, path, &words(&error))),
        }
    }

    /// The path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The address of a function.
    #[must_use]
    pub fn function(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the symbol is taken as an address and not called here.
        let found = unsafe { self.library.get::<*mut c_void>(name.to_bytes_with_nul()) }.ok()?;
        NonNull::new(*found)
    }
}

/// The libraries of a runtime that were opened, each once for the process.
#[derive(Debug)]
pub struct Opened<L: 'static>(Mutex<Vec<&'static L>>);

impl<L: Sync> Opened<L> {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// The one that `is` wanted, else what `open` gives.
    ///
    /// # Errors
    /// Those of `open`; [`ErrorKind::ProcessEnds`], [`ErrorKind::Forked`].
    pub fn get(&self, is: impl Fn(&L) -> bool, open: impl FnOnce() -> Result<L>) -> Result<&'static L> {
        let opening = Opening::begin()?;
        let mut opened = self.0.lock();
        if let Some(known) = opened.iter().find(|known| is(known)) {
            return Ok(known);
        }
        let library: &'static L = Box::leak(Box::new(open()?));
        opened.push(library);
        opening.done();
        Ok(library)
    }
}

/// On some systems the reason itself is the source.
fn words(error: &dyn core::error::Error) -> String {
    use alloc::string::ToString;

    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// The error of a `library` whose file at `path` did not open, with the `words` of the system. They
/// name the file that is missing, which may be another one that the library needs; so the path is
/// said too.
pub fn not_found(library: &'static str, path: &Path, words: &str) -> ErrorKind {
    let path = path.display();
    let named = words.starts_with(&format!("{path}:"));
    let reason = if named { words.into() } else { format!("{path}: {words}") };
    ErrorKind::LibraryNotFound { library, reason: keep(reason) }
}

fn keep(reason: String) -> &'static str {
    static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock();
    if let Some(known) = kept.iter().find(|known| **known == reason) {
        return known;
    }
    if kept.len() == LIMIT {
        return FULL;
    }
    let reason: &'static str = Box::leak(reason.into_boxed_str());
    kept.push(reason);
    reason
}

/// The first of `names` under which the process has a library already: of a driver that comes in
/// several files, with other packages too, a second copy would know nothing of the first one's
/// memory.
#[cfg(target_os = "linux")]
pub fn loaded(names: &[&'static str]) -> Option<&'static str> {
    use libloading::os::unix::{Library, RTLD_LAZY};

    /// Of `dlfcn.h`, on all processors but MIPS.
    const RTLD_NOLOAD: i32 = 4;

    let is_there = |name: &&&str| {
        // SAFETY: nothing is loaded, so no initialiser runs; the name of a library that another
        // thread closes meanwhile is no longer found, and then it is loaded as any.
        unsafe { Library::open(Some(**name), RTLD_LAZY | RTLD_NOLOAD) }.is_ok()
    };
    names.iter().find(is_there).copied()
}

/// The result of `open` for the first of `names` that exists, usable or not. If none exists, the
/// reason is the first name's: the others are further names of the same file. There is at least one
/// name.
pub fn open_first<T>(names: &[&'static str], open: impl Fn(&Path) -> Result<T>) -> Result<T> {
    let missing = |opened: &Result<T>| {
        matches!(opened, Err(crate::Error { kind: ErrorKind::LibraryNotFound { .. }, .. }))
    };
    let first = open(Path::new(names[0]));
    if !missing(&first) {
        return first;
    }
    // A library that is there and cannot be used is the news, not that its other name is missing.
    names[1..].iter().map(|name| open(Path::new(name))).find(|opened| !missing(opened)).unwrap_or(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(kind: ErrorKind) -> &'static str {
        match kind {
            ErrorKind::LibraryNotFound { reason, .. } => reason,
            other => panic!("{other}"),
        }
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
        let one = reason(not_found("one", path, &words(&Layer("the call failed", Some(&SOURCE)))));
        assert_eq!(one, "/a/one.dll: the call failed: module not found");
        assert_eq!(reason(not_found("one", path, &words(&SOURCE))), "/a/one.dll: module not found");
    }

    #[test]
    fn the_first_name_that_is_there_decides_and_of_none_the_first_reason() {
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
