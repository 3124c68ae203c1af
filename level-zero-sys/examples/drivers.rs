//! The Level Zero drivers of this machine, or why there are none:
//! `cargo run -p level-zero-sys --example drivers`.

use level_zero_sys::{Library, ze_init_flags_t};

fn main() {
    let level_zero = match Library::open().and_then(|library| library.initialize(ze_init_flags_t(0))) {
        Ok(level_zero) => level_zero,
        // The library or function that is missing, by name.
        Err(reason) => return println!("no Level Zero here: {reason}"),
    };
    let mut count = 0;
    // SAFETY: zeInit succeeded; a null array asks for the count only.
    let answer = unsafe { level_zero.functions().zeDriverGet(&mut count, core::ptr::null_mut()) };
    match answer {
        Ok(_) => println!("drivers: {count}"),
        Err(error) => println!("the drivers cannot be listed: {error}"),
    }
}
