//! The threads that help with one piece of work.
//!
//! Rayon's scopes wait for every job, also for one that no thread has begun, and in a forked child
//! for ever. Here a job that begins after the work does nothing, and a child waits for nobody.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::any::Any;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, Ordering};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(super) struct Crew {
    state: Mutex<State>,
    signal: Condvar,
    /// Whether the calling thread wants to be alone: a hint, which the state confirms.
    stops: AtomicBool,
    /// The process that the other threads are in.
    process: u32,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the work has ended, so that no job begins.
    has_ended: bool,
    /// Threads that run parts now.
    worker_count: usize,
    /// Threads inside the work, waiting ones too.
    inside: usize,
    stops: bool,
    panic: Option<Box<dyn Any + Send>>,
}

/// The work of the other threads, which lives until [`Leave`] is dropped.
struct Help(*const (dyn Fn() + Sync));

// SAFETY: a shared reference to something `Sync`, as far as it is used.
unsafe impl Send for Help {}

/// Ends the work: waits until no other thread is inside.
struct Leave<'c>(&'c Crew);

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        // The lock may be that of a thread that is not in this child.
        if self.0.is_forked() {
            return;
        }
        let mut state = self.0.lock();
        state.has_ended = true;
        while state.inside > 0 {
            state = self.0.signal.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Crew {
    pub(super) fn new() -> Self {
        let (state, signal, stops) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        Self { state, signal, stops, process: std::process::id() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Runs `own` on this thread and `help` on up to so many others, and returns when none of them
    /// is inside any more. A panic of another thread goes on here.
    pub(super) fn work_with(
        crew: &Arc<Self>,
        others: u64,
        spawn: impl Fn(Box<dyn FnOnce() + Send>),
        own: impl FnOnce(),
        help: &(dyn Fn() + Sync),
    ) {
        let leave = Leave(crew);
        for _ in 0..others {
            // SAFETY: only the lifetime changes; `Leave` waits for each use.
            let help = Help(unsafe {
                core::mem::transmute::<*const (dyn Fn() + Sync), *const (dyn Fn() + Sync + 'static)>(help)
            });
            let crew = Arc::clone(crew);
            spawn(Box::new(move || crew.help(&help)));
        }
        own();
        drop(leave);
        let panic = if crew.is_forked() { None } else { crew.lock().panic.take() };
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    fn help(&self, help: &Help) {
        {
            let mut state = self.lock();
            if state.has_ended {
                return;
            }
            state.inside += 1;
            state.worker_count += 1;
        }
        // SAFETY: this thread is inside, and the work did not end before, so `Leave` waits for it.
        let help = unsafe { &*help.0 };
        let ran = catch_unwind(AssertUnwindSafe(help));
        let mut state = self.lock();
        state.inside -= 1;
        state.worker_count -= 1;
        if let Err(panic) = ran {
            state.panic.get_or_insert(panic);
        }
        // Under the lock: as soon as it is released, the calling thread may free the rest.
        self.signal.notify_all();
    }

    /// For other threads: waits while the calling thread wants to be alone.
    pub(super) fn wait_if_asked(&self) {
        if !self.stops.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.lock();
        state.worker_count -= 1;
        self.signal.notify_all();
        while state.stops {
            state = self.signal.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.worker_count += 1;
    }

    /// For the calling thread: runs `work` while no other one runs parts.
    pub(super) fn stop_during<R>(&self, work: impl FnOnce() -> R) -> R {
        if self.is_forked() {
            return work();
        }
        self.stops.store(true, Ordering::Relaxed);
        let mut state = self.lock();
        state.stops = true;
        while state.worker_count > 0 {
            state = self.signal.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let resume = Resume(self);
        let result = work();
        drop(resume);
        result
    }
}

/// Lets the other threads go on.
struct Resume<'c>(&'c Crew);

impl Drop for Resume<'_> {
    fn drop(&mut self) {
        self.0.stops.store(false, Ordering::Relaxed);
        if self.0.is_forked() {
            return;
        }
        self.0.lock().stops = false;
        self.0.signal.notify_all();
    }
}
