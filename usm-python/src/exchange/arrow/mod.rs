//! Arrow's C data interface, import and export, host and device form: capsules, chunks, memory
//! without a copy.

mod capsule;
mod export;
mod import;

pub(crate) use export::{device_pair, host_pair, schema};
pub(crate) use import::{check_entries, import, import_beyond_dlpack, reason};
