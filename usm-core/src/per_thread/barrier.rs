//! A memory barrier in every thread of the process, paid by the calling thread: Linux's
//! `membarrier`, Windows's `FlushProcessWriteBuffers`.

/// Registers the process for the barrier. False if the system has none; [`in_all_threads`] then
/// fails.
pub fn prepare() -> bool {
    imp::call(imp::REGISTER)
}

/// Makes every other thread pass a full barrier before it returns. False if the system cannot.
pub fn in_all_threads() -> bool {
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    imp::call(imp::BARRIER)
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod imp {
    use core::ffi::{c_int, c_long};

    /// `MEMBARRIER_CMD_PRIVATE_EXPEDITED`, of `linux/membarrier.h`.
    pub(super) const BARRIER: c_int = 1 << 3;
    /// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED`.
    pub(super) const REGISTER: c_int = 1 << 4;
    /// `SYS_membarrier`.
    const NUMBER: c_long = if cfg!(target_arch = "x86_64") { 324 } else { 283 };

    unsafe extern "C" {
        fn syscall(number: c_long, ...) -> c_long;
    }

    pub(super) fn call(command: c_int) -> bool {
        // SAFETY: the call takes a command, flags and a processor, which these commands ignore. It
        // touches no memory.
        unsafe { syscall(NUMBER, command, 0 as c_int, 0 as c_int) == 0 }
    }
}

#[cfg(all(windows, not(miri)))]
mod imp {
    /// Windows has one call, which needs no registration.
    pub(super) const BARRIER: i32 = 0;
    pub(super) const REGISTER: i32 = 1;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn FlushProcessWriteBuffers();
    }

    pub(super) fn call(command: i32) -> bool {
        if command == BARRIER {
            // SAFETY: the call takes nothing and touches no memory.
            unsafe { FlushProcessWriteBuffers() };
        }
        true
    }
}

#[cfg(not(any(
    all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)),
    all(windows, not(miri))
)))]
mod imp {
    pub(super) const BARRIER: i32 = 0;
    pub(super) const REGISTER: i32 = 0;

    pub(super) fn call(_: i32) -> bool {
        false
    }
}
