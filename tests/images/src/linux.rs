//! The story as a Linux program without a C library: raw system calls only.

#![no_std]
#![no_main]

mod memory;
mod platform;
mod story;

#[cfg(feature = "alloc")]
mod heap;

use core::arch::global_asm;

use platform::linux as machine;

// The kernel enters with the stack pointer 16-byte aligned; the call leaves it as a function
// expects it.
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "call {main}",
    "ud2",
    main = sym main,
);

extern "C" fn main() -> ! {
    machine::exit(story::tell(&mut machine::Output))
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    platform::report_panic(info, &mut machine::Output);
    machine::exit(false)
}
