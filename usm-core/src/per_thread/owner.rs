//! Numbers of threads, and which of them a fork left behind: the child has only the thread that
//! forked, but the values of the others, some in the middle of an access that never ends.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The number of the thread that claims next. Counted on in a child, so that no thread of a process
/// has the number of one that a fork left behind.
static NEXT: AtomicUsize = AtomicUsize::new(1);
/// In a child: all smaller numbers are of threads of its parent.
static FIRST_HERE: AtomicUsize = AtomicUsize::new(0);
/// In a child: the number of the one thread of its parent that exists here too; 0 for none.
static SURVIVOR: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(0) };
}

/// The number of the calling thread, which is not 0.
pub(super) fn current() -> usize {
    imp::watch();
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

/// Whether a fork left the thread behind: it does not exist in this process.
pub(super) fn is_left_behind(number: usize) -> bool {
    number != 0 && number < FIRST_HERE.load(Ordering::Relaxed) && number != SURVIVOR.load(Ordering::Relaxed)
}

#[cfg(all(unix, not(any(loom, miri))))]
mod imp {
    use core::ffi::c_int;
    use core::sync::atomic::{AtomicBool, Ordering};

    use super::{FIRST_HERE, NEXT, NUMBER, SURVIVOR};

    type Hook = Option<unsafe extern "C" fn()>;
    unsafe extern "C" {
        fn pthread_atfork(before: Hook, parent: Hook, child: Hook) -> c_int;
    }

    unsafe extern "C" fn child() {
        SURVIVOR.store(NUMBER.get(), Ordering::Relaxed);
        FIRST_HERE.store(NEXT.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(super) fn watch() {
        static WATCHED: AtomicBool = AtomicBool::new(false);
        if !WATCHED.load(Ordering::Relaxed) && !WATCHED.swap(true, Ordering::Relaxed) {
            // SAFETY: a function of this library, which the C library forgets when it is unloaded.
            // It only reads and writes atomics and a thread-local value without a destructor. After
            // a failure (no memory) a child waits a little for threads that it does not have.
            let _ = unsafe { pthread_atfork(None, None, Some(child)) };
        }
    }
}

#[cfg(not(all(unix, not(any(loom, miri)))))]
mod imp {
    pub(super) fn watch() {}
}
