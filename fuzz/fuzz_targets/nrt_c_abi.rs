#![no_main]

#[path = "../../usm-nrt/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::c_abi(data));

/// Sizes that no machine has must give null, as without the sanitizer.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const core::ffi::c_char {
    c"allocator_may_return_null=1".as_ptr()
}
