//! The test driver's own functions: what it counts, and failures on demand.

use std::ffi::{CString, c_char};

use libloading::Library;

/// Whether this process runs on the test driver.
pub(crate) fn is_test_driver() -> bool {
    let path =
        std::env::var_os("ZE_ENABLE_ALT_DRIVERS").or_else(|| std::env::var_os("USM_LEVEL_ZERO_LIBRARY"));
    // SAFETY: the library is open already; this is one more reference to it.
    let Some(Ok(library)) = path.map(|path| unsafe { Library::new(path) }) else { return false };
    // SAFETY: only whether it is there is asked.
    unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> u32>(b"usm_ze_faults\0") }.is_ok()
}

/// The driver, opened once more: the loader has it open already.
fn library() -> Library {
    let path = std::env::var_os("ZE_ENABLE_ALT_DRIVERS")
        .or_else(|| std::env::var_os("USM_LEVEL_ZERO_LIBRARY"))
        .expect("set by the parent");
    // SAFETY: the library is open already; this is one more reference to it.
    unsafe { Library::new(path) }.expect("the driver")
}

/// How many there are of something; see the driver's README.
pub(crate) fn count(what: &str) -> u64 {
    let (library, text) = (library(), CString::new(what).expect("text"));
    // SAFETY: exported by the driver with this signature.
    let function = unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> u64>(b"usm_ze_count\0") };
    // SAFETY: the text ends with a zero.
    let count = unsafe { function.expect("exported")(text.as_ptr()) };
    assert_ne!(count, u64::MAX, "{what} is not known");
    count
}

/// Everything that is there of the objects that a program makes.
pub(crate) fn objects() -> [u64; 6] {
    ["allocations", "contexts", "events", "lists", "pools", "commands"].map(count)
}

/// Failures while `body` runs, and none afterwards.
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
