//! Other systems need no handler: those of a Windows library run when all other threads have ended.

use core::ffi::c_int;
use std::io;

pub(super) fn register(_: fn(Option<c_int>)) {}

pub(super) fn keep_loaded() {}

pub(super) fn standard_error(write: impl FnOnce(&mut io::Stderr) -> io::Result<()>) -> io::Result<()> {
    write(&mut io::stderr())
}

pub(super) fn exit_process(_: c_int) {}

pub(super) fn exit_forked_child(_: c_int) {}
