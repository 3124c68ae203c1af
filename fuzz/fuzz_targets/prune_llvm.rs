#![no_main]

#[path = "../../usm-prune/tests/common/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    target::llvm(data);
});
