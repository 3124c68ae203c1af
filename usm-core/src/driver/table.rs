//! Tables of a runtime's functions.

use core::ffi::{CStr, c_void};
use core::ptr::NonNull;

use crate::BackendKind;
use crate::error::{Error, ErrorKind, Result};

/// Declares a table: each function by its field, its symbol and its signature. A missing `needed`
/// function is an error; a missing `optional` one is `None`. If the libraries of two vendors have
/// the functions under different names, each vendor is a column.
#[doc(hidden)]
#[macro_export]
macro_rules! __table {
    (
        $(#[$doc:meta])* $vis:vis $name:ident in $($library:tt of $backend:ident)|+:
        needed { $($(#[$field_doc:meta])* $field:ident = $($symbol:literal)|+ ($($argument:ty),*) $(-> $result:ty)?;)* }
        optional {
            $($(#[$rare_doc:meta])* $rare:ident = $($rare_symbol:literal)|+ ($($rare_argument:ty),*) $(-> $rare_result:ty)?;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        $vis struct $name {
            $($(#[$field_doc])* $vis $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            $($(#[$rare_doc])* $vis $rare: Option<unsafe extern "C" fn($($rare_argument),*) $(-> $rare_result)?>,)*
        }

        impl $name {
            /// The table for the library in this column; 0 if there is only one.
            ///
            /// # Safety
            /// `find` returns functions of a library in which they have the table's signatures.
            $vis unsafe fn bind(
                column: usize,
                find: impl Fn(&core::ffi::CStr) -> Option<core::ptr::NonNull<core::ffi::c_void>>,
            ) -> $crate::Result<Self> {
                const LIBRARIES: &[($crate::BackendKind, &str)] = &[$(($crate::BackendKind::$backend, $library)),+];
                Ok(Self {
                    $($field: {
                        const SYMBOLS: &[&core::ffi::CStr] =
                            &[$($crate::driver::symbol(concat!($symbol, "\0"))),+];
                        let address = $crate::driver::needed(LIBRARIES, SYMBOLS, column, &find)?;
                        // SAFETY: the caller's promise.
                        unsafe {
                            core::mem::transmute::<
                                core::ptr::NonNull<core::ffi::c_void>,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(address)
                        }
                    },)*
                    $($rare: {
                        const SYMBOLS: &[&core::ffi::CStr] =
                            &[$($crate::driver::symbol(concat!($rare_symbol, "\0"))),+];
                        // SAFETY: the caller's promise.
                        SYMBOLS.get(column).and_then(|symbol| find(symbol)).map(|address| unsafe {
                            core::mem::transmute::<
                                core::ptr::NonNull<core::ffi::c_void>,
                                unsafe extern "C" fn($($rare_argument),*) $(-> $rare_result)?,
                            >(address)
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
pub use crate::__table as table;

/// The name of a symbol, checked at compile time.
#[must_use]
pub const fn symbol(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("the name of a symbol ends in its only NUL"),
    }
}

/// Finds a needed function.
///
/// # Errors
/// [`ErrorKind::SymbolMissing`], [`ErrorKind::NoDevice`] if the table has no such column.
pub fn needed(
    libraries: &[(BackendKind, &'static str)],
    symbols: &[&'static CStr],
    column: usize,
    find: &dyn Fn(&CStr) -> Option<NonNull<c_void>>,
) -> Result<NonNull<c_void>> {
    let (Some(&(backend, library)), Some(symbol)) = (libraries.get(column), symbols.get(column)) else {
        return Err(ErrorKind::NoDevice.into());
    };
    find(symbol).ok_or_else(|| {
        let error = ErrorKind::SymbolMissing { library, symbol: symbol.to_str().unwrap_or("") };
        Error::from(error).in_backend(backend)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    table! {
        /// Two vendors' names of the same functions.
        Pair in "libone.so" of OpenCl | "libtwo.so" of Cuda:
        needed { answer = "one_answer" | "two_answer"() -> i32; }
        optional { rare = "one_rare" | "two_rare"() -> i32; }
    }

    /// A library that has only these functions.
    fn library(names: &'static [&'static CStr]) -> impl Fn(&CStr) -> Option<NonNull<c_void>> {
        move |name| names.contains(&name).then(NonNull::dangling)
    }

    #[test]
    fn a_column_has_its_own_names_and_the_first_missing_one_is_named() {
        // SAFETY: the function is never called.
        let bound = unsafe { Pair::bind(1, library(&[c"two_answer"])) }.unwrap();
        assert_eq!(bound.answer as *mut c_void, NonNull::dangling().as_ptr());
        assert!(bound.rare.is_none());
        // SAFETY: the function is never called.
        let bound = unsafe { Pair::bind(0, library(&[c"one_answer", c"one_rare"])) }.unwrap();
        assert!(bound.rare.is_some());
        // SAFETY: the function is never called.
        let error = unsafe { Pair::bind(0, library(&[c"two_answer"])) }.unwrap_err();
        assert_eq!(error.kind, ErrorKind::SymbolMissing { library: "libone.so", symbol: "one_answer" });
        assert_eq!(error.backend, Some(BackendKind::OpenCl));
        // SAFETY: the function is never called.
        let error = unsafe { Pair::bind(2, library(&[c"one_answer"])) }.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NoDevice);
    }
}
