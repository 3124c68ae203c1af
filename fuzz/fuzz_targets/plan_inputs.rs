//! The readers of models and tables, and of sizes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| usm_plan::target::check(data));
