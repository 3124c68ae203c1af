#![no_main]

#[path = "../../usm-kernel-ir/tests/common/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    target::kernel(data);
});
