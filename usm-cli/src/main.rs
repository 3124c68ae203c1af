//! The program `usm`; the library has all of it.

// In the program alone: a library must not end the process of its host.
mod memory;

use std::process::ExitCode;

fn main() -> ExitCode {
    // SAFETY: the program has only this thread yet.
    unsafe { usm_cli::prepare() };
    usm_cli::run_command(std::env::args_os()).into()
}
