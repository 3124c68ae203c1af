//! The readers of the command's input files, and of selectors and sizes.
#![no_main]
#![allow(dead_code, unused_imports, unexpected_cfgs, reason = "the command's own modules, of which the readers are a part")]

#[path = "../../usm-cli/src/error.rs"]
mod error;
#[path = "../../usm-cli/src/input/mod.rs"]
mod input;
#[path = "../../usm-cli/src/output.rs"]
mod output;
#[path = "../../usm-cli/src/shown.rs"]
mod shown;

libfuzzer_sys::fuzz_target!(|data: &[u8]| input::target::check(data));
