//! Signals during a wait: they interrupt system calls, but not waits.

use core::ptr;
use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::program::Program;

static CAUGHT: AtomicUsize = AtomicUsize::new(0);
/// Duration of the interruptions, one each millisecond.
const TIME: Duration = Duration::from_millis(150);

extern "C" fn count(_: libc::c_int) {
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

fn interrupt_every(microseconds: libc::suseconds_t) {
    let interval = libc::timeval { tv_sec: 0, tv_usec: microseconds };
    let timer = libc::itimerval { it_interval: interval, it_value: interval };
    // SAFETY: a timer, and no room for the old one.
    assert_eq!(unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) }, 0);
}

/// Waits of every kind succeed, and so does the end of the process, which waits too.
pub(crate) fn while_waiting(mut program: Program) -> ExitCode {
    // SAFETY: zeros are an action without flags, so without `SA_RESTART`, that blocks no signal.
    let mut action: libc::sigaction = unsafe { core::mem::zeroed() };
    action.sa_sigaction = count as *const () as usize;
    // SAFETY: the handler adds to a number.
    assert_eq!(unsafe { libc::sigaction(libc::SIGALRM, &raw const action, ptr::null_mut()) }, 0);
    interrupt_every(1000);
    let start = Instant::now();
    while start.elapsed() < TIME {
        program.submit().expect("work");
        program.lanes.iter().for_each(|lane| lane.queue.wait().expect("the end of a queue's work"));
        program.submit().expect("work");
        let limit = Duration::from_secs(30);
        program.contexts.iter().for_each(|context| context.synchronize(limit).expect("the end of all work"));
        program.submit().expect("work");
        program
            .lanes
            .iter()
            .for_each(|lane| lane.dst.wait_for_uses(usm_core::Access::Write).expect("no user"));
    }
    assert!(CAUGHT.load(Ordering::Relaxed) > 10);
    program.submit().expect("work");
    exit(3)
}
