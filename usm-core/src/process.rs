//! Whether calls may still enter the runtimes, and which threads are in one.
//!
//! Two events end a runtime while a program still has objects of it. At the end of the process its
//! library is unloaded, while other threads may be inside it and work may be in flight; Intel's CPU
//! runtime then crashes. So [`exit`] first waits for all of it. After a fork the runtime's threads
//! do not exist, and its locks may stay locked for ever. So [`fork`] keeps the child out.
//!
//! Every call into a runtime is made between [`work`] or [`ask`] and the drop of its guard. Both
//! cost one load of a number that rarely changes and two plain stores to a cache line of the
//! calling thread.

mod build;
pub(crate) mod exit;
pub(crate) mod fork;
mod fork_once;
#[cfg_attr(not(unix), path = "process/no_system.rs")]
mod system;

use alloc::boxed::Box;
use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicUsize, Ordering, compiler_fence};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use crate::error::{ErrorKind, Result};

pub use build::Build;
pub use exit::finish_work;
pub use fork::{Loading, delay as delay_forks, guard_lock, in_arena, watch_forks};
pub use fork_once::ForkOnce;

/// All calls are allowed.
const RUNS: u8 = 0;
/// An interpreter ends and waits for the work in flight. New work of other threads is delayed, or
/// the wait might never end.
const WAITS: u8 = 1;
/// The process ends: it waits for the work in flight and refuses new work.
const ENDS: u8 = 2;
/// The runtimes are about to be unloaded.
const CLOSED: u8 = 3;
/// This process was forked from one with an open runtime.
const FORKED: u8 = 4;

static STAGE: AtomicU8 = AtomicU8::new(RUNS);

/// The record of one thread. Never freed: a later thread reuses the record of an ended one.
#[derive(Debug)]
#[repr(align(64))]
struct Place {
    /// Nesting depth of the thread's calls. Only the thread writes it.
    depth: AtomicUsize,
    is_taken: AtomicBool,
    /// Set before the place is in the list.
    next: *mut Place,
}

/// Added to the depth of a place that no lease releases: the thread releases it with its last call.
const UNLEASED: usize = 1 << (usize::BITS - 1);

impl Place {
    #[cold]
    fn release(&self) {
        HERE.set(ptr::null());
        self.depth.store(0, Ordering::Relaxed);
        self.is_taken.store(false, Ordering::Release);
    }
}

/// The list of all places. It only grows; its length is the peak number of threads.
static PLACES: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

std::thread_local! {
    static HERE: Cell<*const Place> = const { Cell::new(ptr::null()) };
    /// Its drop releases the place. Separate from [`HERE`], so that reading that needs no check for
    /// a dropped value.
    static LEASE: Lease = const { Lease };
    /// Whether this thread waits for the work of all contexts at the end of the process. It may
    /// call the runtimes until then.
    static ENDS_THE_PROCESS: Cell<bool> = const { Cell::new(false) };
}

/// Lets this thread call runtimes that are closed to others.
fn admit() {
    ENDS_THE_PROCESS.set(true);
}

struct Lease;

impl Drop for Lease {
    /// A thread does not end inside a call, but a call may run `exit`. The thread then keeps its
    /// place, because the place shows that the thread is still inside.
    fn drop(&mut self) {
        if is_inside() {
            return;
        }
        build::wait_for_first(exit::OF_A_CALL);
        // SAFETY: places are never freed.
        if let Some(place) = unsafe { HERE.get().as_ref() } {
            place.release();
        }
    }
}

/// While this lives, the thread may call a runtime.
#[derive(Debug)]
#[must_use = "the runtime may be unloaded as soon as it is dropped"]
pub struct Inside {
    place: &'static Place,
    stays_on_its_thread: PhantomData<*const ()>,
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        let depth = self.place.depth.load(Ordering::Relaxed).wrapping_sub(1);
        self.place.depth.store(depth, Ordering::Release);
        if depth == UNLEASED {
            self.place.release();
        }
    }
}

/// Call before starting anything new: an object, an allocation, an operation.
///
/// # Errors
/// [`ErrorKind::ProcessEnds`], [`ErrorKind::Forked`].
#[inline]
pub fn work() -> Result<Inside> {
    enter(RUNS)
}

/// Call before a query, a wait or a release; these continue while the process waits for its work.
///
/// # Errors
/// As [`work`], later.
#[inline]
pub fn ask() -> Result<Inside> {
    enter(ENDS)
}

/// Whether [`work`] would neither refuse nor delay.
#[inline]
pub(crate) fn runs() -> bool {
    STAGE.load(Ordering::Relaxed) == RUNS
}

/// Whether [`ask`] would refuse. For code that calls no runtime and takes a lock that a forked
/// child may find locked.
#[inline]
pub(crate) fn is_closed() -> bool {
    STAGE.load(Ordering::Relaxed) > ENDS
}

#[inline]
fn enter(last: u8) -> Result<Inside> {
    let own_place = HERE.get();
    // SAFETY: places are never freed.
    let place = unsafe { own_place.as_ref() }.unwrap_or_else(|| claim_place());
    place.depth.store(place.depth.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    // The compiler must not move the load before the store. The processor still may: see
    // `wait_for_other_threads`.
    compiler_fence(Ordering::SeqCst);
    let inside = Inside { place, stays_on_its_thread: PhantomData };
    let stage = STAGE.load(Ordering::Relaxed);
    if stage > last { enter_after_delay(last, inside) } else { Ok(inside) }
}

/// How long new work is delayed while the process [waits](WAITS), in milliseconds.
const DELAY_MS: u32 = 100;

#[cold]
fn enter_after_delay(last: u8, inside: Inside) -> Result<Inside> {
    for _ in 0..DELAY_MS {
        if STAGE.load(Ordering::Relaxed) != WAITS {
            break;
        }
        thread::sleep(Duration::from_millis(1));
    }
    match STAGE.load(Ordering::Relaxed) {
        FORKED => Err(ErrorKind::Forked.into()),
        CLOSED if last == ENDS && ENDS_THE_PROCESS.get() => Ok(inside),
        stage if stage > last.max(WAITS) => Err(ErrorKind::ProcessEnds.into()),
        _ => Ok(inside),
    }
}

#[cold]
fn claim_place() -> &'static Place {
    let free = all_places().find(|place| !place.is_taken.swap(true, Ordering::AcqRel));
    let place = free.unwrap_or_else(|| {
        let mut next = PLACES.load(Ordering::Acquire);
        let new = Place { depth: AtomicUsize::new(0), is_taken: AtomicBool::new(true), next };
        let place = Box::leak(Box::new(new));
        loop {
            place.next = next;
            let raw = ptr::from_mut(place);
            match PLACES.compare_exchange_weak(next, raw, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break place,
                Err(others) => next = others,
            }
        }
    });
    HERE.set(place);
    // A thread that is ending may have dropped the lease.
    if LEASE.try_with(|_| {}).is_err() {
        place.depth.store(UNLEASED, Ordering::Relaxed);
    }
    place
}

/// Whether this thread is inside a call.
fn is_inside() -> bool {
    // SAFETY: places are never freed.
    unsafe { HERE.get().as_ref() }.is_some_and(|place| place.depth.load(Ordering::Relaxed) > 0)
}

fn all_places() -> impl Iterator<Item = &'static Place> {
    // SAFETY: places are never freed.
    let at = |place: *mut Place| unsafe { place.as_ref() };
    core::iter::successors(at(PLACES.load(Ordering::Acquire)), move |place| at(place.next))
}

/// For a forked child: the other threads do not exist there, so none is in a call.
#[cfg(all(unix, not(any(loom, miri, usm_valgrind))))]
fn forget_others() {
    build::forget();
    let own_place = HERE.get();
    for other in all_places().filter(|place| !ptr::eq(*place, own_place)) {
        other.depth.store(0, Ordering::Relaxed);
    }
}

/// Waits until no other thread is in a call that began before the stage changed, at most until
/// `end`. Returns whether that is so.
fn wait_for_other_threads(end: Instant) -> bool {
    let own_place = HERE.get();
    let mut others = all_places().filter(|place| !ptr::eq(*place, own_place)).peekable();
    // Helgrind would report reading the other threads' depths as a race.
    if others.peek().is_none() || cfg!(usm_valgrind) {
        return true;
    }
    // A thread that read the old stage had already stored its depth, and a processor delays a store
    // for less than a microsecond.
    thread::sleep(Duration::from_millis(1));
    for place in others {
        while place.depth.load(Ordering::Acquire) != 0 {
            if Instant::now() >= end {
                return false;
            }
            thread::sleep(Duration::from_micros(200));
        }
    }
    true
}

#[cfg(all(test, not(any(loom, miri))))]
mod tests {
    use core::cell::Cell;
    use std::thread;

    use super::{all_places, is_inside, work};

    /// Enters while the thread's own values are dropped.
    struct Last;

    impl Drop for Last {
        fn drop(&mut self) {
            for _ in 0..2 {
                let outer = work();
                drop(work());
                assert!(outer.is_err() || is_inside());
                drop(outer);
                assert!(!is_inside());
            }
        }
    }

    #[test]
    fn threads_that_end_release_their_places() {
        std::thread_local! {
            static LAST: Cell<Option<Last>> = const { Cell::new(None) };
        }
        const THREADS: usize = 200;
        let before = all_places().count();
        for _ in 0..THREADS {
            let own = || {
                // Before the first call, hence dropped after the thread's lease.
                LAST.set(Some(Last));
                drop(work());
            };
            thread::spawn(own).join().expect("no panic");
        }
        let more = all_places().count() - before;
        assert!(more < THREADS / 4, "{more} places for {THREADS} threads one after another");
    }
}
