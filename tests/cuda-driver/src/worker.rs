//! The threads that run the work of all streams.

use std::sync::Once;
use std::thread;

use crate::code::Answer;
use crate::state::{State, lock};
use crate::sync::Condvar;

/// Number of streams that work at the same time.
const WORKERS: usize = 3;

/// Signals new work.
static WORK: Condvar = Condvar::new();
/// Signals completed work.
static DONE: Condvar = Condvar::new();

/// Wakes a worker. The first call starts the workers.
pub(crate) fn wake() {
    static START: Once = Once::new();
    START.call_once(|| {
        for index in 0..WORKERS {
            let name = format!("usm-cuda-{index}");
            // If the system refuses threads, work never completes.
            let _ = thread::Builder::new().name(name).spawn(work);
        }
    });
    WORK.notify_one();
}

/// Wakes all waiting threads to check again.
pub(crate) fn done() {
    DONE.notify_all();
    WORK.notify_all();
}

fn work() {
    let mut state = lock();
    loop {
        let Some((stream, work)) = state.start() else {
            state = WORK.wait(state);
            continue;
        };
        // Another worker may find more work.
        WORK.notify_one();
        drop(state);
        let code = work.run();
        state = lock();
        state.finish(stream, code);
    }
}

/// Waits inside a call until `done` returns true or an error. While a thread waits, the setting
/// `late` is without effect.
pub(crate) fn wait(done: impl Fn(&mut State) -> Answer<bool>) -> Answer {
    let mut state = lock();
    loop {
        match done(&mut state) {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(code) => return Err(code),
        }
        state.waiting += 1;
        WORK.notify_all();
        state = DONE.wait(state);
        state.waiting -= 1;
    }
}
