//! The program `usm`; the library contains all of its code.

// Only in the program: a library must not end its host's process.
mod memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: the program has started no other thread.
    unsafe { usm_cli::prepare() };
    usm_cli::run_command(std::env::args_os()).into()
}
