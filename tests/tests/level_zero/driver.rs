//! The test driver's own functions: counters and planned faults.

use std::ffi::{CString, c_char};

use libloading::Library;

/// Whether this process runs on the test driver.
pub(crate) fn is_test_driver() -> bool {
    let path =
        std::env::var_os("ZE_ENABLE_ALT_DRIVERS").or_else(|| std::env::var_os("USM_LEVEL_ZERO_LIBRARY"));
    // SAFETY: the library is already open; this adds a reference.
    let Some(Ok(library)) = path.map(|path| unsafe { Library::new(path) }) else { return false };
    // SAFETY: only the presence of the function is checked.
    unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> u32>(b"usm_ze_faults\0") }.is_ok()
}

/// The driver with one more reference; the loader opened it before.
fn library() -> Library {
    let path = std::env::var_os("ZE_ENABLE_ALT_DRIVERS")
        .or_else(|| std::env::var_os("USM_LEVEL_ZERO_LIBRARY"))
        .expect("set by the parent");
    // SAFETY: the library is already open; this adds a reference.
    unsafe { Library::new(path) }.expect("the driver")
}

/// The value of a counter; see the driver's README.
pub(crate) fn count(what: &str) -> u64 {
    let (library, text) = (library(), CString::new(what).expect("text"));
    // SAFETY: exported by the driver with this signature.
    let function = unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> u64>(b"usm_ze_count\0") };
    // SAFETY: the text ends with a zero.
    let count = unsafe { function.expect("exported")(text.as_ptr()) };
    assert_ne!(count, u64::MAX, "unknown counter {what}");
    count
}

/// The numbers of all objects that a program can make.
pub(crate) fn objects() -> [u64; 6] {
    ["allocations", "contexts", "events", "lists", "pools", "commands"].map(count)
}

/// Plans the faults while `body` runs.
pub(crate) fn failing<T>(faults: &str, body: impl FnOnce() -> T) -> T {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            set("");
        }
    }
    let _restore = Restore;
    set(faults);
    body()
}

fn set(faults: &str) {
    let (library, text) = (library(), CString::new(faults).expect("text"));
    // SAFETY: exported by the driver with this signature.
    let function = unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> u32>(b"usm_ze_faults\0") };
    // SAFETY: the text ends with a zero.
    let answer = unsafe { function.expect("exported")(text.as_ptr()) };
    assert_eq!(answer, 0, "{faults} is not understood");
}
