//! Tables of functions that a runtime is asked for when the first module is built.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use usm_core::{BackendKind, ErrorKind};

use crate::module::BuildError;

/// Declares a table: each function by its field, its symbol and its signature. `needed` ones are errors where the
/// runtime lacks them, `optional` ones are `None`. Where libraries of two vendors have the functions under names of their own, the names are
/// columns, and so are the libraries.
macro_rules! table {
    (
        $(#[$doc:meta])* $name:ident in $($library:literal of $backend:ident)|+:
        needed { $($(#[$field_doc:meta])* $field:ident = $($symbol:literal)|+ ($($argument:ty),*) $(-> $result:ty)?;)* }
        optional {
            $($(#[$rare_doc:meta])* $rare:ident = $($rare_symbol:literal)|+ ($($rare_argument:ty),*) $(-> $rare_result:ty)?;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $name {
            $($(#[$field_doc])* $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $($(#[$rare_doc])* $rare: Option<unsafe extern "C" fn($($rare_argument),*) $(-> $rare_result)?>,)*
        }

        impl $name {
            /// Of the library in that column, 0 where there is one.
            ///
            /// # Safety
            /// `find` gives the functions of a library in which they have the signatures of the table.
            unsafe fn bind(
                column: usize,
                find: impl Fn(&core::ffi::CStr) -> Option<core::ptr::NonNull<core::ffi::c_void>>,
            ) -> Result<Self, $crate::module::BuildError> {
                const LIBRARIES: &[(usm_core::BackendKind, &str)] = &[$((usm_core::BackendKind::$backend, $library)),+];
                Ok(Self {
                    $($field: {
                        const SYMBOLS: &[&core::ffi::CStr] =
                            &[$($crate::backend::table::symbol(concat!($symbol, "\0"))),+];
                        let found = $crate::backend::table::needed(LIBRARIES, SYMBOLS, column, &find)?;
                        // SAFETY: the caller's promise.
                        unsafe {
                            core::mem::transmute::<
                                core::ptr::NonNull<core::ffi::c_void>,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(found)
                        }
                    },)*
                    $($rare: {
                        const SYMBOLS: &[&core::ffi::CStr] =
                            &[$($crate::backend::table::symbol(concat!($rare_symbol, "\0"))),+];
                        // SAFETY: the caller's promise.
                        SYMBOLS.get(column).and_then(|symbol| find(symbol)).map(|found| unsafe {
                            core::mem::transmute::<
                                core::ptr::NonNull<core::ffi::c_void>,
                                unsafe extern "C" fn($($rare_argument),*) $(-> $rare_result)?,
                            >(found)
                        })
                    },)*
                })
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    };
}
pub(super) use table;

/// A symbol's name, checked when the table is compiled.
pub(super) const fn symbol(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("the name of a symbol ends in its only NUL"),
    }
}

/// A function that must be there.
pub(super) fn needed(
    libraries: &[(BackendKind, &'static str)],
    symbols: &[&'static CStr],
    column: usize,
    find: &dyn Fn(&CStr) -> Option<NonNull<c_void>>,
) -> Result<NonNull<c_void>, BuildError> {
    let (Some(&(backend, library)), Some(symbol)) = (libraries.get(column), symbols.get(column)) else {
        return Err(BuildError::Runtime(ErrorKind::NoDevice.into()));
    };
    find(symbol).ok_or_else(|| {
        let missing = ErrorKind::SymbolMissing { library, symbol: symbol.to_str().unwrap_or("") };
        BuildError::Runtime(usm_core::Error::from(missing).in_backend(backend))
    })
}
