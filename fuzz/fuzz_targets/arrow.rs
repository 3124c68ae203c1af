#![no_main]

#[path = "../../usm-interface/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::arrow(data));
