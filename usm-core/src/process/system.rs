//! The functions of a Unix C library that the end of a process needs: an exit handler, standard
//! error without the standard library's lock, and an exit that calls no further handlers.

use alloc::boxed::Box;
use core::ffi::{c_char, c_int, c_void};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;
use std::fs::File;
use std::os::fd::FromRawFd;
use std::sync::{OnceLock, mpsc};
use std::{io, thread};

/// `Dl_info` of `dlfcn.h`.
#[repr(C)]
struct SymbolInfo {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    fn atexit(handler: extern "C" fn()) -> c_int;
    fn _exit(status: c_int) -> !;
    fn fflush(stream: *mut c_void) -> c_int;
    fn dladdr(address: *const c_void, info: *mut SymbolInfo) -> c_int;
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
extern "C" fn hook(status: c_int, _: *mut c_void) {
    run(Some(status));
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
extern "C" fn hook() {
    run(None);
}

/// The function that the handlers call; set by the first registration.
static AT_EXIT: OnceLock<fn(Option<c_int>)> = OnceLock::new();

fn run(status: Option<c_int>) {
    if let Some(at_exit) = AT_EXIT.get() {
        at_exit(status);
    }
}

/// Makes the C library call `at_exit` when the process ends, with the exit status if the C library
/// passes it. After a failure (no memory) the process ends as it would without this crate.
pub(super) fn register(at_exit: fn(Option<c_int>)) {
    AT_EXIT.get_or_init(|| at_exit);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a function of this library, which `keep_loaded` keeps loaded; it needs no argument.
    let _ = unsafe { on_exit(hook, ptr::null_mut()) };
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    // SAFETY: as above.
    let _ = unsafe { atexit(hook) };
}

/// Keeps the library or program with this code loaded: the C library will call its functions.
///
/// Asks the loader once: a child that was forked while another thread was in the loader must not
/// enter it.
pub(super) fn keep_loaded() {
    static IS_KEPT: AtomicBool = AtomicBool::new(false);
    if IS_KEPT.swap(true, Ordering::Relaxed) {
        return;
    }
    const RTLD_LAZY: c_int = 1;
    const RTLD_NOLOAD: c_int = if cfg!(target_os = "linux") { 4 } else { 0x10 };
    const RTLD_NODELETE: c_int = if cfg!(target_os = "linux") { 0x1000 } else { 0x80 };
    let mut info = MaybeUninit::<SymbolInfo>::uninit();
    // SAFETY: the function takes any address; there is space for the answer.
    if unsafe { dladdr(hook as *const c_void, info.as_mut_ptr()) } != 0 {
        // SAFETY: the call succeeded, so it has written the answer.
        let info = unsafe { info.assume_init() };
        // SAFETY: the file with this name is already loaded, so no initialiser runs; for a program
        // without a name nothing is found.
        let _ = unsafe { dlopen(info.file, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) };
    }
}

pub(super) fn standard_error(write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    // SAFETY: the number of standard error, which is not closed here; if no file is open under it,
    // writing fails.
    let mut file = ManuallyDrop::new(unsafe { File::from_raw_fd(2) });
    write(&mut file)
}

/// Ends a child of a fork. The C library made the locks of its streams anew, so flushing needs no
/// other thread. A new thread could wait for ever, for a lock of the loader that a thread of the
/// parent held.
pub(super) fn exit_forked_child(status: c_int) -> ! {
    // SAFETY: a null stream means all streams.
    let _ = unsafe { fflush(ptr::null_mut()) };
    // SAFETY: ends the process, so no code runs afterwards.
    unsafe { _exit(status) }
}

/// Flushes the streams of the C library, unless one of them is locked, and ends the process.
pub(super) fn exit_process(status: c_int) -> ! {
    let (sender, receiver) = mpsc::channel();
    let flush = move || {
        // SAFETY: a null stream means all streams.
        let _ = unsafe { fflush(ptr::null_mut()) };
        let _ = sender.send(());
    };
    if thread::Builder::new().spawn(Box::new(flush)).is_ok() {
        let _ = receiver.recv_timeout(Duration::from_millis(500));
    }
    // SAFETY: ends the process, so no code runs afterwards.
    unsafe { _exit(status) }
}
