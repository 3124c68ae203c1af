#![no_main]

#[path = "../../usm-pool/tests/targets/mod.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|data: &[u8]| targets::proof(data));
