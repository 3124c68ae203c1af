//! Client requests to the valgrind tool that runs the program.

/// Makes a request. Does nothing under other tools, without valgrind, and on machines without an
/// implementation here.
pub(super) fn request(request: [usize; 6]) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instructions by which `valgrind/valgrind.h` makes a request of a program on this
    // machine: `rdi` is turned by 128 bits in all and so is as before, `rbx` is exchanged with
    // itself, and the request, which valgrind reads and which names memory that it does not
    // touch, outlives them.
    unsafe {
        core::arch::asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0_usize => _,
            options(nostack),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = request;
}
