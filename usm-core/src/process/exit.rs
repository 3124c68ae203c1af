//! The end of the process: nothing new is begun, and every context of a runtime is waited for
//! before the runtime's library is taken apart.
//!
//! One hook for all backends, registered when a context opens, hence after what the runtime's
//! library registered while it was loaded: handlers run in the opposite order. Libraries register
//! more as they go, so the hook is registered again with later contexts and queues. Where the C
//! library tells handlers the status of the process (glibc's `on_exit`) a wait that runs out of
//! time ends with it: the runtime's own handlers would fault. Elsewhere the process goes on.
//!
//! The wait is done by a thread of its own: it may need a lock that another thread holds for as
//! long as it likes.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::{ENDS, FORKED, HERE, OVER, RUNS, STAGE, WAITS, fork, others_are_out, system};
use crate::error::{ErrorKind, Result};
use crate::{BackendKind, DeviceInfo, Name};

/// Blocks until the work of a context has finished, at most the limit. It keeps the context's
/// queues and events, not the context.
pub(crate) type Idle = Arc<dyn Fn(Duration) -> Result<()> + Send + Sync>;

/// A context as the end of the process sees it.
pub(crate) struct Member {
    backend: BackendKind,
    device: Name,
    limit_ms: AtomicU32,
    /// The context is gone; work of it was not finished then.
    gone: AtomicBool,
    idle: Idle,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("gone", &self.gone).finish_non_exhaustive()
    }
}

static MEMBERS: Mutex<Vec<Arc<Member>>> = Mutex::new(Vec::new());

/// A wait ran out of time before the C library's handlers were called: the process ends as soon as
/// its status is known.
static GAVE_UP: AtomicBool = AtomicBool::new(false);

/// How long threads are waited for that are in a call, where the wait limits leave less.
const GRACE: Duration = Duration::from_millis(200);
/// How long the work of all contexts is waited for where `exit` is called in a call of a runtime,
/// by a host task.
const FROM_INSIDE: Duration = Duration::from_secs(1);
/// How long threads are waited for that are in a call, where no context has a wait limit.
const OF_A_CALL: Duration = Duration::from_secs(30);
/// The pause of a thread that waits for the end, between two queries.
const SLICE: Duration = Duration::from_millis(100);

fn members() -> std::sync::MutexGuard<'static, Vec<Arc<Member>>> {
    MEMBERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on the end of the process waits for the work of a context by `idle`.
pub(crate) fn watch(info: &DeviceInfo, limit_ms: u32, idle: Idle) -> Arc<Member> {
    fork::opened();
    register_again();
    forget(|member| member.gone.load(Ordering::Relaxed));
    let (limit_ms, gone) = (AtomicU32::new(limit_ms), AtomicBool::new(false));
    let member = Arc::new(Member { backend: info.backend, device: info.name, limit_ms, gone, idle });
    members().push(Arc::clone(&member));
    member
}

impl Member {
    pub(crate) fn set_limit_ms(&self, limit_ms: u32) {
        self.limit_ms.store(limit_ms, Ordering::Relaxed);
    }

    fn limit(&self) -> Duration {
        Duration::from_millis(u64::from(self.limit_ms.load(Ordering::Relaxed)))
    }

    /// The context is gone. Work that goes on is waited for still.
    pub(crate) fn leave(self: &Arc<Self>) {
        fork::closed();
        self.gone.store(true, Ordering::Relaxed);
        forget(|member| Arc::ptr_eq(member, self));
    }
}

/// Whether a wait ended other than by its limit. Failed work is not waited for: nothing tells when
/// it ends.
fn has_ended(waited: &Result<()>) -> bool {
    !waited.is_err_and(|error| matches!(error.kind, ErrorKind::Timeout { .. }))
}

/// Takes those out whose work has finished. The runtime is asked without the lock held.
fn forget(which: impl Fn(&Arc<Member>) -> bool) {
    let Ok(_inside) = super::ask() else { return };
    let mut chosen: Vec<_> = members().iter().filter(|member| which(member)).cloned().collect();
    chosen.retain(|member| has_ended(&(member.idle)(Duration::ZERO)));
    let is_chosen = |known: &Arc<Member>| chosen.iter().any(|member| Arc::ptr_eq(known, member));
    members().retain(|known| !is_chosen(known));
}

/// The waiting thread's message to the ending one.
struct Answer {
    late: Mutex<Option<Vec<Arc<Member>>>>,
    come: Condvar,
}

/// Waits for the work of all contexts, each at most its wait limit and none longer than `most`.
/// Calls `may_go_on` now and then: whether there is time left, as it says. The answer is those
/// whose work has not finished.
fn wait_for_all(start: Instant, most: Duration, mut may_go_on: impl FnMut() -> bool) -> Vec<Arc<Member>> {
    let all = members().clone();
    let Some(limit) = all.iter().map(|member| member.limit().min(most)).max() else { return Vec::new() };
    let answer = Arc::new(Answer { late: Mutex::new(None), come: Condvar::new() });
    let (to_wait_for, told) = (all.clone(), Arc::clone(&answer));
    let wait = move || {
        let late = to_wait_for.into_iter().filter(|member| !finishes(member, start, limit)).collect();
        *told.late.lock().unwrap_or_else(PoisonError::into_inner) = Some(late);
        told.come.notify_one();
    };
    let started = thread::Builder::new().name("usm-exit".into()).spawn(wait);
    if started.is_err() {
        return all.into_iter().filter(|member| !finishes(member, start, limit)).collect();
    }
    let mut late = answer.late.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(late) = late.take() {
            return late;
        }
        let left = (limit + GRACE).saturating_sub(start.elapsed());
        if left.is_zero() || !may_go_on() {
            return all;
        }
        late = answer.come.wait_timeout(late, left.min(SLICE)).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// A host task that panics meanwhile ends the wait for nothing else.
fn finishes(member: &Member, start: Instant, most: Duration) -> bool {
    loop {
        let left = member.limit().min(most).saturating_sub(start.elapsed());
        match catch_unwind(AssertUnwindSafe(|| (member.idle)(left))) {
            Ok(waited) => return has_ended(&waited),
            Err(_) if left.is_zero() => return false,
            Err(_) => {}
        }
    }
}

/// Waits for the work of all contexts, each at most its wait limit, while what others begin is put
/// off and not refused: for an interpreter that ends before the process does, and whose own last
/// calls may need a runtime. `may_go_on` is called now and then. Where something has not finished,
/// or `may_go_on` said no, nothing enters a runtime any more, and the process ends as soon as it
/// comes to its exit handlers.
pub fn finish_work(may_go_on: impl FnMut() -> bool) {
    let change = |from, to| STAGE.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    if !change(RUNS, WAITS) {
        return;
    }
    let late = wait_for_all(Instant::now(), Duration::MAX, may_go_on);
    if late.is_empty() {
        let _ = change(WAITS, RUNS);
    } else if change(WAITS, OVER) {
        GAVE_UP.store(true, Ordering::Relaxed);
        complain(&late);
    }
}

/// The hook. `status` is that of the process, where it is known.
fn end(status: Option<c_int>) {
    if !is_first() {
        return;
    }
    // Another thread that calls `exit` meanwhile finds this again, and waits above.
    register();
    if STAGE.load(Ordering::Relaxed) == FORKED {
        return status.map_or((), |status| system::leave_child(status));
    }
    if GAVE_UP.load(Ordering::Relaxed) {
        return leave(status);
    }
    STAGE.store(ENDS, Ordering::SeqCst);
    let start = Instant::now();
    let limit = members().iter().map(|member| member.limit()).max().unwrap_or(OF_A_CALL);
    // A host task that calls `exit` is a part of the work, which does not finish before this
    // returns.
    let is_inside = super::is_inside();
    let most = if is_inside { FROM_INSIDE } else { Duration::MAX };
    let late = wait_for_all(start, most, || true);
    STAGE.store(OVER, Ordering::SeqCst);
    let last = start.checked_add(limit.min(most)).unwrap_or(start).max(Instant::now() + GRACE);
    let are_out = others_are_out(last);
    if !late.is_empty() || !are_out {
        complain(&late);
    }
    if !late.is_empty() || !are_out || is_inside {
        leave(status);
    }
}

/// Whether this is the first call at the end of the process. Further calls of the same thread
/// return `false`; calls of other threads never return, because the first one ends the process.
fn is_first() -> bool {
    let me = HERE.with(core::ptr::from_ref).addr();
    match fork::FIRST.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => true,
        Err(first) if first == me => false,
        Err(_) => loop {
            thread::sleep(Duration::from_secs(3600));
        },
    }
}

/// One line on standard error, past the lock of the standard library's.
fn complain(late: &[Arc<Member>]) {
    use std::io::Write;

    let mut text = String::from("usm: the process ends although ");
    if late.is_empty() {
        text.push_str("a thread is in a call of a runtime that does not return");
    } else {
        text.push_str("work has not finished within the wait limit:");
    }
    for (index, member) in late.iter().take(4).enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let limit = member.limit().as_millis();
        text.push_str(&format!("{comma} {} \"{}\" ({limit} ms)", member.backend, member.device));
    }
    if late.len() > 4 {
        text.push_str(&format!(" and {} more", late.len() - 4));
    }
    text.push('\n');
    let _ = system::standard_error(|file| file.write_all(text.as_bytes()));
}

/// Ends the process without the handlers of the runtimes, where its status is known.
fn leave(status: Option<c_int>) {
    if let Some(status) = status {
        system::leave(status);
    }
}

/// Registers the hook with the contexts and queues number 1 to 8, 16, 32 and so on.
pub(crate) fn register_again() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    if count <= 8 || count.is_power_of_two() {
        if count == 1 {
            system::keep_loaded();
        }
        register();
    }
}

/// Puts forks off: the C library's lock of its handlers would stay locked in the child,
/// which could then never call `exit`.
pub(super) fn register() {
    if !cfg!(any(loom, miri)) {
        fork::put_off(|| system::register(end));
    }
}

#[cfg(all(test, unix, not(any(loom, miri, usm_valgrind))))]
mod tests {
    use alloc::vec::Vec;
    use core::ffi::c_int;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::register;

    unsafe extern "C" {
        fn fork() -> c_int;
        fn alarm(seconds: u32) -> u32;
        fn waitpid(id: c_int, status: *mut c_int, options: c_int) -> c_int;
    }

    /// A child that only calls `exit`; its status by the C library's number.
    fn child_that_exits() -> c_int {
        // SAFETY: the child calls nothing but `alarm` and `exit`.
        match unsafe { fork() } {
            0 => {
                // SAFETY: sets a timer, which ends a child that hangs.
                unsafe { alarm(5) };
                std::process::exit(0)
            }
            id => {
                let mut status = -1;
                // SAFETY: a child, and room for its status.
                unsafe { waitpid(id, &raw mut status, 0) };
                status
            }
        }
    }

    #[test]
    fn children_exit_although_threads_register_handlers() {
        const CHILDREN: usize = 200;
        let begun = AtomicUsize::new(0);
        let ended = thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    // Some for each child: every child calls all that were registered before.
                    for child in 0..CHILDREN {
                        while begun.load(Ordering::Relaxed) < child {
                            thread::yield_now();
                        }
                        (0..100).for_each(|_| register());
                    }
                });
            }
            let next = |_| {
                begun.fetch_add(1, Ordering::Relaxed);
                child_that_exits()
            };
            (0..CHILDREN).map(next).collect::<Vec<c_int>>()
        });
        assert!(ended.iter().all(|status| *status == 0), "{ended:?}");
    }
}
