//! Functions of the process by their names.
//!
//! Found without `dlopen`, by which libloading finds the process itself: glibc ends a process that
//! calls it and was forked while another thread opened a library.

#[cfg(unix)]
use std::ffi::{CStr, c_char, c_void};
#[cfg(unix)]
use std::ptr::{self, NonNull};

#[cfg(unix)]
unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_DEFAULT` of `dlfcn.h`: all libraries of the process, in the order of their search.
#[cfg(unix)]
const DEFAULT: *mut c_void = match cfg!(any(target_vendor = "apple", target_os = "freebsd")) {
    true => ptr::without_provenance_mut(-2_isize as usize),
    false => ptr::null_mut(),
};

/// The address of a function.
#[cfg(unix)]
pub(crate) fn find(name: &CStr) -> Option<NonNull<c_void>> {
    // SAFETY: a handle that stands for the process, and a name that ends.
    NonNull::new(unsafe { dlsym(DEFAULT, name.as_ptr()) })
}

/// A function of the running interpreter, by the first of its names that exists. The wheel is the
/// same for all versions, so the name of an older version may be outside of its stable ABI.
///
/// # Safety
/// Under each of the names the function has type `F`, a pointer to a function, in every release
/// that has it.
#[cfg(unix)]
pub(crate) unsafe fn function<F: Copy>(names: &[&CStr]) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let address = names.iter().find_map(|name| find(name))?;
    // SAFETY: of the same size; the caller's promise.
    Some(unsafe { std::mem::transmute_copy(&address) })
}

/// Other systems have no list of all names of a process.
///
/// # Safety
/// None needed.
#[cfg(not(unix))]
pub(crate) unsafe fn function<F: Copy>(_: &[&std::ffi::CStr]) -> Option<F> {
    None
}
