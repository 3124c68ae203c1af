//! The state of a child after a fork.
//!
//! The child has one thread, the one that forked. Locks of ledgers and histories are held across
//! the fork, so in the child they are free and their data is consistent: host memory keeps working.
//! Runtimes do not: their threads do not exist there, and their locks may stay locked. So the child
//! of a process with an open runtime refuses every call that would enter one, leaves the runtime's
//! objects as they are, and ends without its exit handlers.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::error::ErrorKind;

/// Number of contexts that the end of the process waits for, of uses of their list, and of
/// libraries that are open or being opened.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// The thread that runs the exit handlers, as the address of one of its thread-local values; 0 for
/// none.
pub(super) static FIRST: AtomicUsize = AtomicUsize::new(0);

pub(super) fn opened() {
    OPEN.fetch_add(1, Ordering::Acquire);
}

pub(super) fn closed() {
    OPEN.fetch_sub(1, Ordering::Release);
}

/// Number of threads in the system's loader on behalf of this crate.
static LOADING: AtomicUsize = AtomicUsize::new(0);
/// Whether a thread was in the loader when this process was forked. The loader's lists may be half
/// written then, and it ends a process that it finds so.
static LOADER_IS_LOST: AtomicBool = AtomicBool::new(false);

/// While this lives, the thread may call the system's loader.
#[derive(Debug)]
#[must_use = "a fork must know that the loader is in use"]
pub struct Loading(());

impl Loading {
    /// # Errors
    /// [`ErrorKind::Forked`] in a child that was forked while a thread was in the loader.
    pub fn begin() -> crate::Result<Self> {
        // Without the hook a child would not know.
        imp::watch();
        LOADING.fetch_add(1, Ordering::Acquire);
        let guard = Self(());
        if LOADER_IS_LOST.load(Ordering::Relaxed) { Err(ErrorKind::Forked.into()) } else { Ok(guard) }
    }
}

impl Drop for Loading {
    fn drop(&mut self) {
        LOADING.fetch_sub(1, Ordering::Release);
    }
}

/// A library that is being opened. A child forked meanwhile gets no runtime at all, because the
/// loader's locks are in use.
#[derive(Debug)]
pub struct Opening {
    stays_open: bool,
    _loading: Loading,
}

impl Opening {
    /// # Errors
    /// As [`work`](super::work).
    pub fn begin() -> crate::Result<Self> {
        let _inside = super::work()?;
        let guard = Loading::begin()?;
        opened();
        Ok(Self { stays_open: false, _loading: guard })
    }

    /// Marks the library as open for good.
    pub fn mark_open(mut self) {
        self.stays_open = true;
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if !self.stays_open {
            closed();
        }
    }
}

#[cfg(all(unix, not(any(loom, miri, usm_valgrind))))]
mod imp {
    use alloc::sync::{Arc, Weak};
    use alloc::vec::Vec;
    use core::ffi::c_int;
    use core::sync::atomic::{AtomicBool, Ordering};

    use super::super::{FORKED, STAGE};
    use super::{FIRST, LOADER_IS_LOST, LOADING, OPEN};
    #[cfg(target_os = "linux")]
    use crate::ipc::life::LIVES;
    use crate::sync::Mutex;

    type Hook = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Hook, parent: Hook, child: Hook) -> c_int;
    }

    /// Locks that are held across a fork. A thread that holds one takes no other and calls no
    /// foreign code.
    pub(crate) trait LockAcrossFork: Send + Sync {
        fn hold(&self);
        /// # Safety
        /// This thread holds it by [`hold`](Self::hold), or the thread that it is a copy of does.
        unsafe fn release(&self);
    }

    impl<T: Send> LockAcrossFork for Mutex<T> {
        fn hold(&self) {
            core::mem::forget(self.lock());
        }

        unsafe fn release(&self) {
            // SAFETY: as the caller promises.
            unsafe { self.force_unlock() };
        }
    }

    struct Locks {
        all: Vec<Weak<dyn LockAcrossFork>>,
        /// Length of the list at which dropped locks are removed.
        prune_at: usize,
        /// The locks held during a fork.
        held_locks: Vec<Arc<dyn LockAcrossFork>>,
    }

    static LOCKS: Mutex<Locks> = Mutex::new(Locks { all: Vec::new(), prune_at: 64, held_locks: Vec::new() });

    pub(crate) fn guard<H: LockAcrossFork + 'static>(lock: &Arc<H>) {
        watch();
        let weak: Weak<dyn LockAcrossFork> = Arc::<H>::downgrade(lock);
        let mut locks = LOCKS.lock();
        if locks.all.len() >= locks.prune_at {
            locks.all.retain(|weak| weak.strong_count() > 0);
            locks.prune_at = 64.max(locks.all.len() * 2);
        }
        locks.all.push(weak);
    }

    /// The lock of all arenas in host memory, which no list names because they may be borrowed.
    static ARENAS: Mutex<()> = Mutex::new(());

    /// Runs a few instructions on an arena, one thread at a time, and never during a fork. `call`
    /// takes no other lock that is held across forks, and calls no foreign code.
    pub fn in_arena<R>(call: impl FnOnce() -> R) -> R {
        watch();
        let _held = ARENAS.lock();
        call()
    }

    /// Delays forks of other threads until `call` returns, so that no child finds a lock that
    /// `call` takes. `call` takes no lock of this crate and calls no foreign code.
    pub fn delay<R>(call: impl FnOnce() -> R) -> R {
        watch();
        let _held = LOCKS.lock();
        call()
    }

    unsafe extern "C" fn before() {
        let mut locks = LOCKS.lock();
        locks.held_locks = locks.all.iter().filter_map(Weak::upgrade).collect();
        locks.held_locks.iter().for_each(|lock| lock.hold());
        ARENAS.hold();
        #[cfg(target_os = "linux")]
        LIVES.hold();
        core::mem::forget(locks);
    }

    unsafe extern "C" fn parent() {
        // SAFETY: this thread has held the lock since `before`, so no other code accesses the data.
        let held_locks = unsafe { core::mem::take(&mut (*LOCKS.as_mut_ptr()).held_locks) };
        #[cfg(target_os = "linux")]
        // SAFETY: `before` locked it.
        unsafe {
            LIVES.release();
        }
        // SAFETY: `before` locked it.
        unsafe { ARENAS.release() };
        for lock in &held_locks {
            // SAFETY: as above.
            unsafe { lock.release() };
        }
        // SAFETY: as above.
        unsafe { LOCKS.force_unlock() };
        drop(held_locks);
    }

    unsafe extern "C" fn child() {
        // SAFETY: the thread is a copy of the one that called `before`.
        unsafe { parent() };
        // Memory of the parent does not live here, nor beyond the parent.
        #[cfg(target_os = "linux")]
        drop(core::mem::take(&mut *LIVES.lock()));
        FIRST.store(0, Ordering::Relaxed);
        super::super::forget_others();
        // The threads of the parent that were in the loader do not exist here.
        if LOADING.swap(0, Ordering::Relaxed) > 0 {
            LOADER_IS_LOST.store(true, Ordering::Relaxed);
        }
        if OPEN.load(Ordering::Relaxed) > 0 {
            STAGE.store(FORKED, Ordering::SeqCst);
        }
    }

    pub(super) fn watch() {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
            super::super::system::keep_loaded();
            // SAFETY: the functions belong to this library, which stays loaded, and they only lock
            // and unlock its locks. After a failure (no memory) forks are not watched.
            let _ = unsafe { pthread_atfork(Some(before), Some(parent), Some(child)) };
        }
    }
}

#[cfg(not(all(unix, not(any(loom, miri, usm_valgrind)))))]
mod imp {
    pub(crate) fn guard<H>(_: &alloc::sync::Arc<H>) {}

    /// Runs `call`: without forks there is nothing to hold back.
    pub fn in_arena<R>(call: impl FnOnce() -> R) -> R {
        call()
    }

    /// Runs `call`: without forks there is nothing to delay.
    pub fn delay<R>(call: impl FnOnce() -> R) -> R {
        call()
    }

    pub(super) fn watch() {}
}

#[cfg(all(unix, not(any(loom, miri, usm_valgrind))))]
pub(crate) use imp::LockAcrossFork;

/// Starts watching forks. Call this before other code registers fork handlers that take our locks.
pub fn watch_forks() {
    imp::watch();
}

/// Registers a lock of a pool, which forks then leave free.
pub fn guard_lock<T: Send + 'static>(lock: &alloc::sync::Arc<crate::sync::Mutex<T>>) {
    imp::guard(lock);
}

/// Registers a lock, which forks then leave free.
pub(crate) use imp::guard;
pub use imp::{delay, in_arena};
