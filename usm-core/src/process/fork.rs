//! A fork: what a child finds.
//!
//! The child has one thread, the one that forked. Locks of ledgers and histories are held over the
//! fork, so the child finds them free and their data whole: host memory keeps working. Runtimes do
//! not: their threads are gone, and their locks may stay locked. So the child of a process with an
//! open runtime refuses every call that would enter one, leaves the runtime's objects as they are,
//! and ends without its exit handlers.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Contexts that live, and libraries that are open or being opened.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// The thread that has come to the end of the process, by an address of its own; 0 for none.
pub(super) static FIRST: AtomicUsize = AtomicUsize::new(0);

pub(super) fn opened() {
    OPEN.fetch_add(1, Ordering::Relaxed);
}

pub(super) fn closed() {
    OPEN.fetch_sub(1, Ordering::Relaxed);
}

/// A library that is being opened. A child that is forked meanwhile does without all runtimes: the
/// loader's locks are in use.
#[derive(Debug)]
pub struct Opening(());

impl Opening {
    /// # Errors
    /// As [`work`](super::work).
    pub fn begin() -> crate::Result<Self> {
        let _inside = super::work()?;
        opened();
        Ok(Self(()))
    }

    /// It stays open.
    pub fn done(self) {
        core::mem::forget(self);
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        closed();
    }
}

#[cfg(all(unix, not(any(loom, miri, usm_valgrind))))]
mod imp {
    use alloc::sync::{Arc, Weak};
    use alloc::vec::Vec;
    use core::ffi::c_int;
    use core::sync::atomic::{AtomicBool, Ordering};

    use super::super::{FORKED, STAGE};
    use super::{FIRST, OPEN};
    use crate::sync::Mutex;

    type Hook = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Hook, parent: Hook, child: Hook) -> c_int;
    }

    /// Locks that are held from before a fork until after it. No thread takes one while it has
    /// another, or calls out.
    pub(crate) trait LockOverFork: Send + Sync {
        fn hold(&self);
        /// # Safety
        /// Held by [`hold`](Self::hold) of this thread, or of the one that this is a copy of.
        unsafe fn let_go(&self);
    }

    impl<T: Send> LockOverFork for Mutex<T> {
        fn hold(&self) {
            core::mem::forget(self.lock());
        }

        unsafe fn let_go(&self) {
            // SAFETY: as the caller promises.
            unsafe { self.force_unlock() };
        }
    }

    struct Locks {
        known: Vec<Weak<dyn LockOverFork>>,
        /// Length of the list at which those that are gone are looked for.
        prune_at: usize,
        /// During a fork.
        held: Vec<Arc<dyn LockOverFork>>,
    }

    static LOCKS: Mutex<Locks> = Mutex::new(Locks { known: Vec::new(), prune_at: 64, held: Vec::new() });

    pub(crate) fn guard<H: LockOverFork + 'static>(held: &Arc<H>) {
        watch();
        let weak: Weak<dyn LockOverFork> = Arc::<H>::downgrade(held);
        let mut locks = LOCKS.lock();
        if locks.known.len() >= locks.prune_at {
            locks.known.retain(|known| known.strong_count() > 0);
            locks.prune_at = 64.max(locks.known.len() * 2);
        }
        locks.known.push(weak);
    }

    /// Puts forks of other threads off until `call` is back. `call` takes no lock of this crate.
    pub(crate) fn put_off<R>(call: impl FnOnce() -> R) -> R {
        watch();
        let _held = LOCKS.lock();
        call()
    }

    unsafe extern "C" fn before() {
        let mut locks = LOCKS.lock();
        locks.held = locks.known.iter().filter_map(Weak::upgrade).collect();
        locks.held.iter().for_each(|held| held.hold());
        core::mem::forget(locks);
    }

    unsafe extern "C" fn parent() {
        // SAFETY: the lock is this thread's, since `before`; nobody else reaches what it guards.
        let held = unsafe { core::mem::take(&mut (*LOCKS.as_mut_ptr()).held) };
        for lock in &held {
            // SAFETY: held by `before`.
            unsafe { lock.let_go() };
        }
        // SAFETY: as above.
        unsafe { LOCKS.force_unlock() };
        drop(held);
    }

    unsafe extern "C" fn child() {
        // SAFETY: the thread is a copy of the one that called `before`.
        unsafe { parent() };
        FIRST.store(0, Ordering::Relaxed);
        if OPEN.load(Ordering::Relaxed) > 0 {
            STAGE.store(FORKED, Ordering::SeqCst);
        }
    }

    pub(super) fn watch() {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
            super::super::system::keep_loaded();
            // SAFETY: functions of this library, which stays in the process, and which take and
            // give back its locks. A failure (no memory) leaves forks unwatched.
            let _ = unsafe { pthread_atfork(Some(before), Some(parent), Some(child)) };
        }
    }
}

#[cfg(not(all(unix, not(any(loom, miri, usm_valgrind)))))]
mod imp {
    pub(crate) fn guard<H>(_: &alloc::sync::Arc<H>) {}

    pub(crate) fn put_off<R>(call: impl FnOnce() -> R) -> R {
        call()
    }

    pub(super) fn watch() {}
}

#[cfg(all(unix, not(any(loom, miri, usm_valgrind))))]
pub(crate) use imp::LockOverFork;
/// From now on forks are watched: to be called before others register handlers for what takes our
/// locks.
pub fn watch_forks() {
    imp::watch();
}

/// From now on forks find this lock free.
pub(crate) use imp::guard;
pub(super) use imp::put_off;
