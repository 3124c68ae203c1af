//! Makes a fork wait until no thread uses shared state. The child has only the forking thread, and
//! locks that other threads held would stay locked there.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The allocator of machine code in a context's memory.
pub(crate) const SOURCE: usize = 0;
/// The turns of blocks of memory.
pub(crate) const TURNS: usize = 1;

/// Activities that a fork waits for.
#[derive(Debug)]
struct Place {
    /// Number of threads inside.
    inside: AtomicUsize,
    /// Whether a thread forks; the others then wait before they enter.
    forking: AtomicBool,
}

static PLACES: [Place; 2] =
    [const { Place { inside: AtomicUsize::new(0), forking: AtomicBool::new(false) } }; 2];

/// While this lives, forks wait. Its thread must not need the interpreter, which the forking thread
/// holds.
#[derive(Debug)]
pub(crate) struct Inside<const PLACE: usize>(PhantomData<*const ()>);

#[inline]
pub(crate) fn enter<const PLACE: usize>() -> Inside<PLACE> {
    let Place { inside, forking } = &PLACES[PLACE];
    loop {
        inside.fetch_add(1, Ordering::SeqCst);
        if !forking.load(Ordering::SeqCst) {
            return Inside(PhantomData);
        }
        inside.fetch_sub(1, Ordering::SeqCst);
        while forking.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

impl<const PLACE: usize> Drop for Inside<PLACE> {
    #[inline]
    fn drop(&mut self) {
        PLACES[PLACE].inside.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Registers fork handlers with the C library. A later place is waited for first: it comes after
/// the locks that are taken inside it.
#[cfg(unix)]
pub(crate) fn prepare<const PLACE: usize>() {
    use std::ffi::c_int;
    use std::time::{Duration, Instant};

    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, parent: Handler, child: Handler) -> c_int;
    }
    /// A driver may be slow; the fork then continues without this protection.
    const LIMIT: Duration = Duration::from_secs(2);

    unsafe extern "C" fn before<const PLACE: usize>() {
        let Place { inside, forking } = &PLACES[PLACE];
        forking.store(true, Ordering::SeqCst);
        let start = Instant::now();
        while inside.load(Ordering::SeqCst) != 0 && start.elapsed() < LIMIT {
            std::thread::yield_now();
        }
    }
    unsafe extern "C" fn parent<const PLACE: usize>() {
        PLACES[PLACE].forking.store(false, Ordering::Release);
    }
    unsafe extern "C" fn child<const PLACE: usize>() {
        PLACES[PLACE].inside.store(0, Ordering::SeqCst);
        PLACES[PLACE].forking.store(false, Ordering::Release);
    }
    static DONE: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    if !DONE[PLACE].swap(true, Ordering::Relaxed) {
        // SAFETY: functions of this extension, which is never unloaded; they access two atomics.
        // Without memory for them forks have no protection.
        let _ = unsafe { pthread_atfork(Some(before::<PLACE>), Some(parent::<PLACE>), Some(child::<PLACE>)) };
    }
}

#[cfg(not(unix))]
pub(crate) fn prepare<const PLACE: usize>() {}
