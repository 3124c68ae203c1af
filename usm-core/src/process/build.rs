//! Builds of code. For its first build a runtime loads a compiler, whose parts register exit
//! handlers of their own when they are loaded or first used. They would run before the hook of
//! [`exit`](super::exit), and Intel's compiler crashes if a thread is in it then.
//!
//! The C library drops the thread-local values of the exiting thread before it calls any handler.
//! So each thread that has called a runtime waits there for the running first builds, which
//! register the hook again. A thread that merely ends waits too, because it cannot tell an exit
//! from its end. For a thread that exits and never called a runtime there is no such place: a
//! helper thread registers the hook every millisecond while a first build runs, which leaves it a
//! small chance to miss a handler.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::thread;
use std::time::Instant;

use super::{Inside, RUNS, STAGE, exit, fork, work};
use crate::BackendKind;
use crate::error::Result;

/// The kinds of backend that have finished a build, a bit each.
static BUILT: AtomicU32 = AtomicU32::new(0);
/// Running builds whose kind of backend had finished none when they began.
static FIRST: AtomicUsize = AtomicUsize::new(0);

const PAUSE: Duration = Duration::from_millis(1);
/// Registrations during one build: each takes 32 bytes until the process ends.
const REGISTRATIONS: u32 = 5000;

/// While this lives, the thread may call a runtime's compiler.
#[derive(Debug)]
#[must_use = "the runtime may be unloaded as soon as it is dropped"]
pub struct Build {
    kind: u32,
    /// Set at the end of a first build.
    has_ended: Option<Arc<AtomicBool>>,
    _inside: Inside,
}

impl Build {
    /// Call before a build.
    ///
    /// # Errors
    /// As [`work`].
    pub fn begin(backend: BackendKind) -> Result<Self> {
        let (kind, inside) = (1 << backend as u32, work()?);
        let is_first = BUILT.load(Ordering::Acquire) & kind == 0;
        Ok(Self { kind, has_ended: is_first.then(begin_first), _inside: inside })
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        if let Some(flag) = &self.has_ended {
            exit::register();
            flag.store(true, Ordering::Relaxed);
            BUILT.fetch_or(self.kind, Ordering::Release);
            FIRST.fetch_sub(1, Ordering::Release);
        } else if exit::is_sampled_call(&COUNT) {
            exit::register();
        }
    }
}

fn begin_first() -> Arc<AtomicBool> {
    // A fork must find the hook that resets the count in the child.
    fork::delay(|| FIRST.fetch_add(1, Ordering::Relaxed));
    let flag = Arc::new(AtomicBool::new(false));
    let build = Arc::clone(&flag);
    let register = move || {
        for _ in 0..REGISTRATIONS {
            if build.load(Ordering::Relaxed) || STAGE.load(Ordering::Relaxed) != RUNS {
                break;
            }
            exit::register();
            thread::sleep(PAUSE);
        }
    };
    // The build needs no answer of the thread, which ends soon after it.
    let _ = thread::Builder::new().name("usm-build".into()).spawn(register);
    flag
}

/// Waits for the first builds, at most `limit`. For a thread that drops its values.
pub(super) fn wait_for_first(limit: Duration) {
    let begin = Instant::now();
    while FIRST.load(Ordering::Acquire) > 0 && begin.elapsed() < limit {
        thread::sleep(PAUSE);
    }
}

/// For a forked child: the threads that build do not exist there.
#[cfg(all(unix, not(any(loom, miri, usm_valgrind))))]
pub(super) fn forget() {
    FIRST.store(0, Ordering::Relaxed);
}

#[cfg(all(test, unix, not(any(loom, miri, usm_valgrind))))]
mod tests {
    use std::sync::{Barrier, PoisonError};
    use std::thread;

    use super::super::ask;
    use super::super::exit::tests::{ONE_AT_A_TIME, child_that_exits};
    use super::Build;
    use crate::BackendKind;

    #[test]
    fn children_do_not_wait_for_first_builds_of_their_parents_threads() {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let both = Barrier::new(2);
        let status = thread::scope(|scope| {
            scope.spawn(|| {
                let build = Build::begin(BackendKind::Mock).expect("the process runs");
                assert!(build.has_ended.is_some(), "no other test builds for this kind");
                both.wait();
                both.wait();
            });
            // A thread that has called a runtime, as the one that forks in a program.
            drop(ask());
            both.wait();
            let status = child_that_exits();
            both.wait();
            status
        });
        assert_eq!(status, 0);
    }
}
