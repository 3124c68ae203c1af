//! A fork finds nobody in the middle of the source: the child has only the thread that forks, and locks that others held at that moment
//! would stay locked there.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Threads that are at the source.
static INSIDE: AtomicUsize = AtomicUsize::new(0);
/// A thread forks: the others wait at the door.
static FORKING: AtomicBool = AtomicBool::new(false);

/// Runs `work` at the source, which must not need the interpreter: a thread that forks has that.
#[inline]
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> T {
    loop {
        INSIDE.fetch_add(1, Ordering::SeqCst);
        if !FORKING.load(Ordering::SeqCst) {
            break;
        }
        INSIDE.fetch_sub(1, Ordering::SeqCst);
        while FORKING.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
    let result = work();
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    result
}

/// Has the C library call us before and after each fork.
#[cfg(unix)]
pub(crate) fn prepare() {
    use std::ffi::c_int;
    use std::time::{Duration, Instant};

    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, parent: Handler, child: Handler) -> c_int;
    }
    /// A driver may take long; then the fork goes on as without us.
    const LIMIT: Duration = Duration::from_secs(2);

    unsafe extern "C" fn before() {
        FORKING.store(true, Ordering::SeqCst);
        let start = Instant::now();
        while INSIDE.load(Ordering::SeqCst) != 0 && start.elapsed() < LIMIT {
            std::thread::yield_now();
        }
    }
    unsafe extern "C" fn parent() {
        FORKING.store(false, Ordering::Release);
    }
    unsafe extern "C" fn child() {
        INSIDE.store(0, Ordering::SeqCst);
        FORKING.store(false, Ordering::Release);
    }
    static DONE: AtomicBool = AtomicBool::new(false);
    if !DONE.swap(true, Ordering::Relaxed) {
        // SAFETY: functions of this extension, which is never unloaded and which touch two atomics. Without memory for them forks go on
        // as without.
        let _ = unsafe { pthread_atfork(Some(before), Some(parent), Some(child)) };
    }
}

#[cfg(not(unix))]
pub(crate) fn prepare() {}
