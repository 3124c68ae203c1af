//! Opening the Level Zero loader. The table of its functions is [`level_zero_sys::Functions`].

use alloc::borrow::ToOwned;
use alloc::string::ToString;
use std::path::{Path, PathBuf};

use level_zero_sys::{
    Functions, LIBRARY_NAMES, LevelZero, LoadError, ZE_RESULT_ERROR_UNINITIALIZED, ze_init_flags_t,
};

use crate::error;
use usm_core::driver::library::{self, LibraryCache};
use usm_core::{Error, Result};

/// The environment variable for another file.
pub(super) const VARIABLE: &str = "USM_LEVEL_ZERO_LIBRARY";

/// The opened loader.
#[derive(Debug)]
pub(super) struct Library {
    /// `None` if the loader found no driver: its functions must not be called then.
    level_zero: Option<LevelZero>,
    pub(super) path: PathBuf,
}

impl Library {
    pub(super) fn functions(&self) -> Option<&Functions> {
        self.level_zero.as_ref().map(LevelZero::functions)
    }
}

/// Opens the file that the variable names, else the loader under its usual names.
pub(super) fn open_default() -> Result<&'static Library> {
    match library::named_by(VARIABLE) {
        Some(path) => library::of_variable(VARIABLE, &path, open(&path)),
        None => library::open_first(LIBRARY_NAMES, open),
    }
}

/// Opens and initialises the loader at `path`, once per path and process. Never closed: drivers
/// keep threads.
pub(super) fn open(path: &Path) -> Result<&'static Library> {
    static OPENED: LibraryCache<Library> = LibraryCache::new();
    OPENED.get(
        |library| library.path == path,
        || {
            // SAFETY: loading runs the library's initialisers, which depend on nothing in this
            // crate; the functions of the loader have the signatures of its header, which never
            // changes one.
            let library = unsafe { level_zero_sys::Library::open_at(path) };
            let library = library.map_err(|error| refusal(path, error))?;
            let level_zero = match library.initialize(ze_init_flags_t(0)) {
                Ok(level_zero) => Some(level_zero),
                Err(LoadError::Unusable {
                    error: level_zero_sys::Error::Call { result: ZE_RESULT_ERROR_UNINITIALIZED, .. },
                    ..
                }) => None,
                Err(error) => return Err(refusal(path, error)),
            };
            Ok(Library { level_zero, path: path.to_owned() })
        },
    )
}

fn refusal(path: &Path, error: LoadError) -> Error {
    match error {
        LoadError::Unusable { error, .. } => error::call(error),
        LoadError::NotFound { reason, .. } => error::of(library::not_found(error::LIBRARY, path, &reason)),
        other => error::of(library::not_found(error::LIBRARY, path, &other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use usm_core::ErrorKind;

    #[test]
    fn a_file_that_is_no_library_is_a_typed_error() {
        let path = "/nonexistent/libze_loader.so.1";
        let kind = open(Path::new(path)).unwrap_err().kind;
        assert!(
            matches!(kind, ErrorKind::LibraryNotFound { library: error::LIBRARY, reason } if reason.contains(path)),
            "{kind}"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_library_without_the_functions_names_the_first_missing_one() {
        // Every Linux has the C library, and it is not Level Zero.
        let error = open(Path::new("libc.so.6")).unwrap_err();
        assert_eq!(error.kind, ErrorKind::SymbolMissing { library: error::LIBRARY, symbol: "zeInit" });
    }
}
