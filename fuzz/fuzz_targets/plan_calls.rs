//! Calls of the C library that tell a graph from numbers, in any order.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| usm_plan::capi::target::check(data));
