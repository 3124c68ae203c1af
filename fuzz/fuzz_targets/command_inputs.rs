//! The command's own readers: control-flow graphs and selectors.
#![no_main]
#![allow(dead_code, unused_imports, unexpected_cfgs, reason = "the command's own modules, of which the readers are a part")]

use usm_plan::{error, shown};

#[path = "../../usm-cli/src/cfg_json.rs"]
mod cfg_json;
#[path = "../../usm-cli/src/output.rs"]
mod output;
#[path = "../../usm-cli/src/target.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::check(data));
