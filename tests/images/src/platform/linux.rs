//! Linux on x86-64: the entry point and two system calls.

use core::arch::asm;
use core::fmt;

const SYS_WRITE: usize = 1;
const SYS_EXIT_GROUP: usize = 231;
const STANDARD_OUTPUT: usize = 1;

/// Standard output, unbuffered.
pub(crate) struct Output;

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let address = rest.as_ptr() as usize;
            // SAFETY: the kernel reads `rest.len()` bytes from the start of `rest`, which is
            // borrowed for the call.
            let written = unsafe { call3(SYS_WRITE, STANDARD_OUTPUT, address, rest.len()) };
            // A negative value is an error number, as a usize beyond every length.
            rest = rest.get(written..).ok_or(fmt::Error)?;
            if written == 0 {
                return Err(fmt::Error);
            }
        }
        Ok(())
    }
}

/// Ends the process: status 0, or 101 as a panic of std would.
pub(crate) fn exit(success: bool) -> ! {
    let status = if success { 0 } else { 101 };
    loop {
        // SAFETY: exit_group takes no pointer and does not return.
        unsafe { call3(SYS_EXIT_GROUP, status, 0, 0) };
    }
}

/// # Safety
///
/// The system call must be sound with these arguments: pointers valid for its reads and writes.
unsafe fn call3(number: usize, first: usize, second: usize, third: usize) -> usize {
    let result;
    // SAFETY: the x86-64 system call convention: result in rax, rcx and r11 clobbered, stack
    // untouched. The caller vouches for the call itself.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}
