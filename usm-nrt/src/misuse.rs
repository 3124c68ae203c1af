//! Detection of misuse, with the feature `debug`. A misused block, tracked or not, ends the process
//! with a message that names the function, the block and its count. Numba's runtime has assertions
//! for this.
//!
//! The module remembers freed addresses until they are allocated again. It would mistake a block
//! that another runtime allocates at such an address for the freed one. So use one runtime in a
//! process while you look for misuse.

use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, Ordering};
use std::io::Write;

use hashbrown::HashSet;
use spin::Mutex;

use crate::address_hash::Spread;
use crate::fork;
use crate::meminfo::MemInfo;
use crate::system;

/// Addresses that were freed and not allocated again.
pub(crate) static DEAD: Mutex<HashSet<usize, Spread>> = Mutex::new(HashSet::with_hasher(Spread::new()));
/// Held around calls that take locks of the standard library, so that a fork finds those free.
pub(crate) static STANDARD: Mutex<()> = Mutex::new(());

/// Records that a block is allocated.
pub(crate) fn record_new(block: NonNull<u8>) {
    fork::watch();
    DEAD.lock().remove(&block.addr().get());
}

/// Records that a block is about to be freed. Without memory for the record, later uses are not
/// detected.
pub(crate) fn record_free(block: NonNull<u8>, what: &str) {
    let address = block.addr().get();
    let mut dead = DEAD.lock();
    if dead.try_reserve(1).is_ok() && !dead.insert(address) {
        drop(dead);
        refuse(what, address, "after it was freed");
    }
}

/// Refuses a use of a freed block.
pub(crate) fn check_block(block: NonNull<u8>, what: &str) {
    let address = block.addr().get();
    let is_dead = DEAD.lock().contains(&address);
    if is_dead {
        refuse(what, address, "after it was freed");
    }
}

/// [`check_block`] for a block with a header.
pub(crate) fn check(mi: NonNull<MemInfo>, what: &str) {
    check_block(mi.cast(), what);
    if system::switches().is_tracked() {
        trace(what, mi);
    }
}

/// Refuses to count references of a block that has none.
pub(crate) fn check_counted(mi: NonNull<MemInfo>, what: &str) {
    check(mi, what);
    // SAFETY: the block is not known to be freed, and the caller guarantees that it is live.
    if unsafe { mi.as_ref() }.refcount() == 0 {
        refuse(what, mi.addr().get(), "with a count of 0");
    }
}

/// Refuses to destroy a block that has references.
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
    // Not `eprintln!`: tests capture it, and an abort would lose the text.
    let _ = writeln!(std::io::stderr(), "usm-nrt: {what} of block {address:#x} {why}");
    std::process::abort();
}

/// Not yet known: the environment was not read.
const UNREAD: u8 = 2;

/// Prints an event of a block if the environment sets `USM_NRT_TRACE`.
pub(crate) fn trace(what: &str, mi: NonNull<MemInfo>) {
    // No cell with a lock: a forked child could find it locked. All threads read the same.
    static WANTED: AtomicU8 = AtomicU8::new(UNREAD);
    if WANTED.load(Ordering::Relaxed) == UNREAD {
        WANTED.store(u8::from(std::env::var_os("USM_NRT_TRACE").is_some()), Ordering::Relaxed);
    }
    if WANTED.load(Ordering::Relaxed) == 1 {
        let _held = STANDARD.lock();
        let _ = writeln!(std::io::stderr(), "usm-nrt: {what} {:#x}", mi.addr());
    }
}

/// The stack of the calling thread.
pub(crate) fn stack() -> std::backtrace::Backtrace {
    let _held = STANDARD.lock();
    std::backtrace::Backtrace::capture()
}
