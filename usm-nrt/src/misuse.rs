//! With the feature `debug`: the misuse of blocks, whether they are tracked or not, ends the
//! process with a message that names the function, the block and its count. In Numba's runtime
//! these are assertions.
//!
//! What was freed and not given out again since is remembered. A block that another runtime makes
//! at such an address would be taken for the freed one: one runtime in a process while one looks
//! for misuse.

use core::ptr::NonNull;
use std::io::Write;

use hashbrown::HashSet;
use spin::Mutex;

use crate::fork;
use crate::meminfo::MemInfo;
use crate::spread::Spread;
use crate::system;

/// Blocks that were freed and not given out again.
pub(crate) static DEAD: Mutex<HashSet<usize, Spread>> = Mutex::new(HashSet::with_hasher(Spread::new()));
/// Around what the standard library does under locks of its own, so that a fork finds those free.
pub(crate) static STANDARD: Mutex<()> = Mutex::new(());

/// A block is given out.
pub(crate) fn born(block: NonNull<u8>) {
    fork::watch();
    DEAD.lock().remove(&block.addr().get());
}

/// A block is about to be freed. Without memory to remember it, its late uses are not seen.
pub(crate) fn died(block: NonNull<u8>, what: &str) {
    let address = block.addr().get();
    let mut dead = DEAD.lock();
    if dead.try_reserve(1).is_ok() && !dead.insert(address) {
        drop(dead);
        refuse(what, address, "after it was freed");
    }
}

/// Refuses a use of a block that was freed.
pub(crate) fn check_block(block: NonNull<u8>, what: &str) {
    let address = block.addr().get();
    let late = DEAD.lock().contains(&address);
    if late {
        refuse(what, address, "after it was freed");
    }
}

/// [`check_block`] of one with a header.
pub(crate) fn check(mi: NonNull<MemInfo>, what: &str) {
    check_block(mi.cast(), what);
    if system::switches().is_tracked() {
        trace(what, mi);
    }
}

/// Refuses to count a block that nobody has a reference to.
pub(crate) fn check_counted(mi: NonNull<MemInfo>, what: &str) {
    check(mi, what);
    // SAFETY: not freed, as far as is known, and its user says that it is alive.
    if unsafe { mi.as_ref() }.refcount() == 0 {
        refuse(what, mi.addr().get(), "with a count of 0");
    }
}

/// Refuses to destroy a block that somebody has a reference to.
pub(crate) fn check_unreferenced(mi: NonNull<MemInfo>, what: &str) {
    check(mi, what);
    // SAFETY: as in `check_counted`.
    let count = unsafe { mi.as_ref() }.refcount();
    if count != 0 {
        refuse(what, mi.addr().get(), &std::format!("with a count of {count}"));
    }
}

#[cold]
fn refuse(what: &str, address: usize, why: &str) -> ! {
    // Not by `eprintln!`, which tests catch: who aborts shows nothing of it.
    let _ = writeln!(std::io::stderr(), "usm-nrt: {what} of block {address:#x} {why}");
    std::process::abort();
}

/// Prints what happens to a block when the environment has `USM_NRT_TRACE` set.
pub(crate) fn trace(what: &str, mi: NonNull<MemInfo>) {
    static WANTED: std::sync::OnceLock<bool> = std::sync::OnceLock::new();
    if *WANTED.get_or_init(|| std::env::var_os("USM_NRT_TRACE").is_some()) {
        let _held = STANDARD.lock();
        let _ = writeln!(std::io::stderr(), "usm-nrt: {what} {:#x}", mi.addr());
    }
}

/// The stack of the calling thread.
pub(crate) fn stack() -> std::backtrace::Backtrace {
    let _held = STANDARD.lock();
    std::backtrace::Backtrace::capture()
}
