#![no_main]

#[path = "../../usm-nrt/tests/containers_target/mod.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::containers(data));
