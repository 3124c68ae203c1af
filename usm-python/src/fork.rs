//! A fork finds nobody in the middle of what is shared: the child has only the thread that forks,
//! and locks that others held at that moment would stay locked there.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The allocator of machine code that is backed by a context.
pub(crate) const SOURCE: usize = 0;
/// The turns of blocks of memory.
pub(crate) const TURNS: usize = 1;

/// What a fork waits for.
#[derive(Debug)]
struct Place {
    /// Threads that are there.
    inside: AtomicUsize,
    /// A thread forks: the others wait before they enter.
    forking: AtomicBool,
}

static PLACES: [Place; 2] =
    [const { Place { inside: AtomicUsize::new(0), forking: AtomicBool::new(false) } }; 2];

/// While this lives, forks wait. Its thread must not need the interpreter: a thread that forks has
/// that.
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

/// Has the C library call us before and after each fork. What is prepared later is waited for
/// first: a place comes after the locks that are taken in it.
#[cfg(unix)]
pub(crate) fn prepare<const PLACE: usize>() {
    use std::ffi::c_int;
    use std::time::{Duration, Instant};

    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, parent: Handler, child: Handler) -> c_int;
    }
    /// A driver may take long; then the fork goes on as without us.
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
        // SAFETY: functions of this extension, which is never unloaded and which touch two atomics.
        // Without memory for them forks go on as without.
        let _ = unsafe { pthread_atfork(Some(before::<PLACE>), Some(parent::<PLACE>), Some(child::<PLACE>)) };
    }
}

#[cfg(not(unix))]
pub(crate) fn prepare<const PLACE: usize>() {}
