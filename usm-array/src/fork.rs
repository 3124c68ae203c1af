//! Makes a fork wait until no thread uses shared state. The child has only the forking thread, and
//! locks that other threads held would stay locked there.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Number of forks on the way from the first process to this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// Whether a thread of an earlier process may hold a turn's lock for ever.
static LOST: AtomicBool = AtomicBool::new(false);

#[inline]
pub fn count() -> usize {
    FORKS.load(Ordering::Relaxed)
}

/// Whether a fork on the way to this process did not wait for all turns. See
/// `TurnLock`.
#[inline]
pub fn lost_threads() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Records of where blocks of an allocator came from.
pub const SOURCE: usize = 0;
/// The turns of blocks of memory.
pub const TURNS: usize = 1;

/// Activities that a fork waits for.
#[derive(Debug)]
struct Place {
    /// Number of threads inside.
    inside: AtomicUsize,
    /// Whether a thread forks; the others then wait before they enter.
    is_forking: AtomicBool,
}

static PLACES: [Place; 2] =
    [const { Place { inside: AtomicUsize::new(0), is_forking: AtomicBool::new(false) } }; 2];

std::thread_local! {
    /// How often the thread is inside of each place. A fork waits for its outermost guard, so the
    /// inner ones must not wait for the fork.
    static DEPTH: [Cell<usize>; 2] = const { [const { Cell::new(0) }; 2] };
}

/// Changes the thread's depth, and returns the one before.
#[inline]
fn nest<const PLACE: usize>(by: isize) -> usize {
    DEPTH.with(|depth| depth[PLACE].replace(depth[PLACE].get().wrapping_add_signed(by)))
}

/// While this lives, forks wait. Its thread must not wait for what a forking thread may hold, such
/// as a lock of an interpreter.
#[derive(Debug)]
pub struct Inside<const PLACE: usize>(PhantomData<*const ()>);

#[inline]
pub fn enter<const PLACE: usize>() -> Inside<PLACE> {
    let Place { inside, is_forking } = &PLACES[PLACE];
    let is_nested = nest::<PLACE>(1) > 0;
    loop {
        inside.fetch_add(1, Ordering::SeqCst);
        if is_nested || !is_forking.load(Ordering::SeqCst) {
            return Inside(PhantomData);
        }
        inside.fetch_sub(1, Ordering::SeqCst);
        while is_forking.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

/// [`enter`], or `None` while a thread forks.
#[inline]
pub fn try_enter<const PLACE: usize>() -> Option<Inside<PLACE>> {
    let Place { inside, is_forking } = &PLACES[PLACE];
    let is_nested = nest::<PLACE>(1) > 0;
    inside.fetch_add(1, Ordering::SeqCst);
    let guard = Inside(PhantomData);
    (is_nested || !is_forking.load(Ordering::SeqCst)).then_some(guard)
}

impl<const PLACE: usize> Drop for Inside<PLACE> {
    #[inline]
    fn drop(&mut self) {
        PLACES[PLACE].inside.fetch_sub(1, Ordering::SeqCst);
        nest::<PLACE>(-1);
    }
}

/// Registers fork handlers with the C library. A later place is waited for first: it comes after
/// the locks that are taken inside it.
#[cfg(unix)]
pub fn prepare<const PLACE: usize>() {
    use std::ffi::c_int;
    use std::time::{Duration, Instant};

    type Handler = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Handler, parent: Handler, child: Handler) -> c_int;
    }
    /// A driver may be slow, or a part of a launch long; the fork then continues, and the child
    /// finds out which turns it can never have.
    const LIMIT: Duration = Duration::from_secs(2);

    unsafe extern "C" fn before<const PLACE: usize>() {
        let Place { inside, is_forking } = &PLACES[PLACE];
        is_forking.store(true, Ordering::SeqCst);
        let start = Instant::now();
        while inside.load(Ordering::SeqCst) != 0 && start.elapsed() < LIMIT {
            std::thread::yield_now();
        }
    }
    unsafe extern "C" fn parent<const PLACE: usize>() {
        PLACES[PLACE].is_forking.store(false, Ordering::Release);
    }
    unsafe extern "C" fn child<const PLACE: usize>() {
        if PLACE == TURNS {
            FORKS.fetch_add(1, Ordering::Relaxed);
            if PLACES[PLACE].inside.load(Ordering::SeqCst) != 0 {
                LOST.store(true, Ordering::Relaxed);
            }
        }
        PLACES[PLACE].inside.store(0, Ordering::SeqCst);
        PLACES[PLACE].is_forking.store(false, Ordering::Release);
    }
    static DONE: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];
    if !DONE[PLACE].swap(true, Ordering::Relaxed) {
        // SAFETY: functions of this library, which the C library forgets when it is unloaded, or
        // never unloads; they access a few atomics. Without memory for them forks have no
        // protection.
        let _ = unsafe { pthread_atfork(Some(before::<PLACE>), Some(parent::<PLACE>), Some(child::<PLACE>)) };
    }
}

#[cfg(not(unix))]
pub fn prepare<const PLACE: usize>() {}
