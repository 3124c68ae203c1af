//! The threads that do the work of all streams.

use std::sync::Once;
use std::thread;

use crate::code::Answer;
use crate::state::{State, lock};
use crate::sync::Condvar;

/// Streams that work at the same time.
const WORKERS: usize = 3;

/// There may be work.
static WORK: Condvar = Condvar::new();
/// Something is done.
static DONE: Condvar = Condvar::new();

/// Lets a worker look for work. The first call starts them.
pub(crate) fn wake() {
    static START: Once = Once::new();
    START.call_once(|| {
        for index in 0..WORKERS {
            let name = format!("usm-cuda-{index}");
            // A program that may have no threads sees work that never ends.
            let _ = thread::Builder::new().name(name).spawn(work);
        }
    });
    WORK.notify_one();
}

/// What waits for something to be done looks again.
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
        // Others may have something to do beside this.
        WORK.notify_one();
        drop(state);
        let code = work.run();
        state = lock();
        state.finish(stream, code);
    }
}

/// Waits inside of a call until `done` says so or fails. Late work is not late while somebody waits
/// for it.
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
