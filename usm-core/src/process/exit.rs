//! The end of the process: refuses new work and waits for every context of a runtime before the
//! runtime's library is unloaded.
//!
//! There is one hook for all backends. Handlers run in reverse order of registration, so the hook
//! is registered when a context opens, after the handlers that the runtime's library registered
//! while it was loaded. Libraries register more handlers later, so further contexts and queues
//! register the hook again, and so do [builds](super::build). If a wait times out
//! and the C library passes the exit status to handlers (glibc's `on_exit`), the hook ends the
//! process with that status, because the runtime's own handlers would crash. Elsewhere the other
//! handlers run.
//!
//! A separate thread waits, because the wait may need a lock that another thread holds for any
//! time.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::Cell;
use core::ffi::c_int;
use core::fmt;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use super::{CLOSED, ENDS, FORKED, HERE, RUNS, STAGE, WAITS, fork, system, wait_for_other_threads};
use crate::error::{ErrorKind, Result};
use crate::{BackendKind, DeviceInfo, Name};

/// Blocks until the work of a context has finished, at most the limit. It keeps the context's
/// queues and events, not the context.
pub(crate) type Idle = Arc<dyn Fn(Duration) -> Result<()> + Send + Sync>;

/// A context that the end of the process waits for.
pub(crate) struct Member {
    backend: BackendKind,
    device: Name,
    limit_ms: AtomicU32,
    /// The context was dropped while work was unfinished.
    is_dropped: AtomicBool,
    idle: Idle,
}

impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("dropped", &self.is_dropped).finish_non_exhaustive()
    }
}

static MEMBERS: Mutex<Vec<Arc<Member>>> = Mutex::new(Vec::new());

/// A wait timed out before the C library called its handlers: the process ends as soon as its
/// status is known.
static TIMED_OUT: AtomicBool = AtomicBool::new(false);

/// Minimum time to wait for threads inside a call and for their work, if the limits leave less.
const GRACE: Duration = Duration::from_millis(200);
/// Maximum time to wait for all contexts if a host task called `exit`: its own work cannot finish
/// before the wait returns. Other code inside a call, such as an observer, waits as long as any.
const IN_A_TASK: Duration = Duration::from_secs(1);
/// Maximum time to wait for threads inside a call, if no context has a wait limit.
pub(super) const OF_A_CALL: Duration = Duration::from_secs(30);
/// The pause between two calls of `may_go_on`.
const SLICE: Duration = Duration::from_millis(100);

std::thread_local! {
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

/// Runs a host task of work that the end of the process waits for.
#[cfg(feature = "mock")]
pub(crate) fn run_task(task: impl FnOnce()) {
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            IN_TASK.set(self.0);
        }
    }

    let _before = Before(IN_TASK.replace(true));
    task();
}

/// Runs a few instructions on the list. A child forked meanwhile would find it locked for ever, so
/// that child is one of a process with an open runtime, which does not look at the list.
fn members<R>(call: impl FnOnce(&mut Vec<Arc<Member>>) -> R) -> R {
    fork::opened();
    let result = call(&mut MEMBERS.lock().unwrap_or_else(PoisonError::into_inner));
    fork::closed();
    result
}

/// Registers a context: the end of the process waits for its work by `idle`.
pub(crate) fn watch(info: &DeviceInfo, limit_ms: u32, idle: Idle) -> Arc<Member> {
    fork::opened();
    register_for_object();
    forget(|member| member.is_dropped.load(Ordering::Relaxed));
    let (limit_ms, is_dropped) = (AtomicU32::new(limit_ms), AtomicBool::new(false));
    let member = Arc::new(Member { backend: info.backend, device: info.name, limit_ms, is_dropped, idle });
    members(|all| all.push(Arc::clone(&member)));
    member
}

impl Member {
    pub(crate) fn set_limit_ms(&self, limit_ms: u32) {
        self.limit_ms.store(limit_ms, Ordering::Relaxed);
    }

    fn limit(&self) -> Duration {
        Duration::from_millis(u64::from(self.limit_ms.load(Ordering::Relaxed)))
    }

    /// Marks the context as dropped. The end of the process still waits for its unfinished work.
    pub(crate) fn leave(self: &Arc<Self>) {
        self.is_dropped.store(true, Ordering::Relaxed);
        forget(|member| Arc::ptr_eq(member, self));
    }
}

/// Whether a wait ended before its limit. Failed work counts as ended, because no event reports its
/// end.
fn has_ended(outcome: &Result<()>) -> bool {
    !outcome.is_err_and(|error| matches!(error.kind, ErrorKind::Timeout { .. }))
}

/// Removes those of the chosen members whose work has finished. Calls the runtime without the lock.
fn forget(which: impl Fn(&Arc<Member>) -> bool) {
    let Ok(_inside) = super::ask() else { return };
    let mut finished_members: Vec<_> =
        members(|all| all.iter().filter(|member| which(member)).cloned().collect());
    finished_members.retain(|member| has_ended(&(member.idle)(Duration::ZERO)));
    let is_finished =
        |candidate: &Arc<Member>| finished_members.iter().any(|member| Arc::ptr_eq(candidate, member));
    let removal_count = members(|all| {
        let count = all.len();
        all.retain(|candidate| !is_finished(candidate));
        count - all.len()
    });
    (0..removal_count).for_each(|_| fork::closed());
}

/// The waiting thread's message to the ending one.
struct Answer {
    late_members: Mutex<Option<Vec<Arc<Member>>>>,
    arrival: Condvar,
}

/// Waits for the work of all contexts, each at most its wait limit and at most `most`. Calls
/// `may_go_on` regularly and stops if it returns `false`. Returns the contexts whose work has not
/// finished.
fn wait_for_all(start: Instant, most: Duration, mut may_go_on: impl FnMut() -> bool) -> Vec<Arc<Member>> {
    let all = members(|all| all.clone());
    let Some(limit) = all.iter().map(|member| member.limit().min(most)).max() else { return Vec::new() };
    let answer = Arc::new(Answer { late_members: Mutex::new(None), arrival: Condvar::new() });
    let (to_wait_for, message) = (all.clone(), Arc::clone(&answer));
    let wait = move || {
        super::admit();
        let late_members =
            to_wait_for.into_iter().filter(|member| !wait_for_member(member, start, limit)).collect();
        *message.late_members.lock().unwrap_or_else(PoisonError::into_inner) = Some(late_members);
        message.arrival.notify_one();
    };
    let thread = thread::Builder::new().name("usm-exit".into()).spawn(wait);
    if thread.is_err() {
        return all.into_iter().filter(|member| !wait_for_member(member, start, limit)).collect();
    }
    let mut slot = answer.late_members.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        if let Some(late_members) = slot.take() {
            return late_members;
        }
        let left = (limit + GRACE).saturating_sub(start.elapsed());
        if left.is_zero() || !may_go_on() {
            return all;
        }
        slot = answer.arrival.wait_timeout(slot, left.min(SLICE)).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Whether the context's work ends in time. A panic of a host task does not end the wait.
fn wait_for_member(member: &Member, start: Instant, most: Duration) -> bool {
    loop {
        let left = member.limit().min(most).saturating_sub(start.elapsed());
        match catch_unwind(AssertUnwindSafe(|| (member.idle)(left))) {
            Ok(outcome) => return has_ended(&outcome),
            Err(_) if left.is_zero() => return false,
            Err(_) => {}
        }
    }
}

/// Waits for the work of all contexts, each at most its wait limit. New work is delayed meanwhile,
/// not refused. For an interpreter that ends before the process and whose last calls may need a
/// runtime. Calls `may_go_on` regularly. If some work has not finished or `may_go_on` returned
/// `false`, runtimes accept no more calls, and the process ends as soon as its exit handlers run.
pub fn finish_work(may_go_on: impl FnMut() -> bool) {
    let change = |from, to| STAGE.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok();
    if !change(RUNS, WAITS) {
        return;
    }
    let late_members = wait_for_all(Instant::now(), Duration::MAX, may_go_on);
    if late_members.is_empty() {
        let _ = change(WAITS, RUNS);
    } else if change(WAITS, CLOSED) {
        TIMED_OUT.store(true, Ordering::Relaxed);
        write_warning(&late_members, Duration::MAX);
    }
}

/// The hook. `status` is the exit status, if known.
fn end(status: Option<c_int>) {
    if !is_first() {
        return;
    }
    // A second thread that calls `exit` then runs this hook again, and waits above.
    register();
    if STAGE.load(Ordering::Relaxed) == FORKED {
        return status.map_or((), |status| system::exit_forked_child(status));
    }
    if TIMED_OUT.load(Ordering::Relaxed) {
        return leave(status);
    }
    STAGE.store(ENDS, Ordering::SeqCst);
    let start = Instant::now();
    let limit = members(|all| all.iter().map(|member| member.limit()).max()).unwrap_or(OF_A_CALL);
    let is_inside = super::is_inside();
    let most = if IN_TASK.get() { IN_A_TASK } else { Duration::MAX };
    let mut late_members = wait_for_all(start, most, || true);
    STAGE.store(CLOSED, Ordering::SeqCst);
    let last = start.checked_add(limit.min(most)).unwrap_or(start).max(Instant::now() + GRACE);
    let are_out = wait_for_other_threads(last);
    if late_members.is_empty() && are_out {
        // Calls that were under way may have submitted work after the wait: a dropped queue submits
        // a marker, and memory may be freed in the order of a queue.
        let left = limit.saturating_sub(start.elapsed()).max(GRACE);
        late_members = wait_for_all(Instant::now(), most.min(left), || true);
    }
    if !late_members.is_empty() || !are_out {
        write_warning(&late_members, most);
    }
    if !late_members.is_empty() || !are_out || is_inside {
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

/// Writes one line to standard error without the standard library's lock. The wait was at most
/// `most`.
fn write_warning(late_members: &[Arc<Member>], most: Duration) {
    use std::io::Write;

    let mut text = String::from("usm: the process ends although ");
    if late_members.is_empty() {
        text.push_str("a thread is in a call of a runtime that does not return");
    } else {
        text.push_str("work has not finished within the wait limit:");
    }
    for (index, member) in late_members.iter().take(4).enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let limit = member.limit().min(most).as_millis();
        text.push_str(&format!("{comma} {} \"{}\" ({limit} ms)", member.backend, member.device));
    }
    if late_members.len() > 4 {
        text.push_str(&format!(" and {} more", late_members.len() - 4));
    }
    text.push('\n');
    let _ = system::standard_error(|file| file.write_all(text.as_bytes()));
}

/// Ends the process without the runtimes' handlers, if its status is known.
fn leave(status: Option<c_int>) {
    if let Some(status) = status {
        system::exit_process(status);
    }
}

/// Registers the hook at a new context or queue.
pub(crate) fn register_for_object() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    if is_sampled_call(&COUNT) {
        system::keep_loaded();
        register();
    }
}

/// Counts a call. Whether it is number 1 to 8, 16, 32 and so on.
pub(super) fn is_sampled_call(count: &AtomicUsize) -> bool {
    let count = count.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    count <= 8 || count.is_power_of_two()
}

/// Delays forks: otherwise the C library's lock of its handlers could stay locked in the child,
/// which could then never call `exit`. Nor does a child of a process with an open runtime register
/// anything: a library that its parent was opening may have held that lock.
pub(super) fn register() {
    if !cfg!(any(loom, miri)) && STAGE.load(Ordering::Relaxed) != FORKED {
        fork::delay(|| system::register(end));
    }
}

#[cfg(all(test, unix, not(any(loom, miri, usm_valgrind))))]
pub(super) mod tests {
    use alloc::vec::Vec;
    use core::ffi::c_int;
    use core::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, Mutex, PoisonError};
    use std::thread;

    use super::register;

    /// Held by each test that forks: a child calls the handlers that other tests registered.
    pub(in crate::process) static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    unsafe extern "C" {
        fn fork() -> c_int;
        fn alarm(seconds: u32) -> u32;
        fn waitpid(id: c_int, status: *mut c_int, options: c_int) -> c_int;
    }

    /// Forks a child that only calls `exit`, and returns its status as the C library encodes it.
    pub(in crate::process) fn child_that_exits() -> c_int {
        child(|| 0)
    }

    /// Forks a child that calls `exit` with the result of `act`, and returns its status as the C
    /// library encodes it. `act` takes no lock that other threads may hold.
    pub(in crate::process) fn child(act: impl FnOnce() -> c_int) -> c_int {
        // SAFETY: the child calls nothing but `act`, `alarm` and `exit`.
        match unsafe { fork() } {
            0 => {
                // SAFETY: sets a timer that ends a hanging child. It is shorter than a wait for a
                // first build, and long enough for thousands of handlers on a busy machine.
                unsafe { alarm(20) };
                std::process::exit(act())
            }
            id => {
                let mut status = -1;
                // SAFETY: a child, and space for its status.
                unsafe { waitpid(id, &raw mut status, 0) };
                status
            }
        }
    }

    #[test]
    fn children_do_not_wait_for_calls_of_their_parents_threads() {
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        register();
        let both = Barrier::new(2);
        let status = thread::scope(|scope| {
            scope.spawn(|| {
                let _inside = super::super::ask();
                both.wait();
                both.wait();
            });
            both.wait();
            let status = child_that_exits();
            both.wait();
            status
        });
        assert_eq!(status, 0);
    }

    #[test]
    fn children_exit_although_threads_register_handlers() {
        const CHILDREN: usize = 200;
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = AtomicUsize::new(0);
        let ended = thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    // Several registrations per child, because every child calls all that were
                    // registered before.
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

    #[test]
    #[cfg(feature = "mock")]
    fn children_exit_although_threads_close_contexts() {
        use crate::backend::mock::{Mock, Progress};

        const CHILDREN: usize = 200;
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = core::sync::atomic::AtomicBool::new(true);
        let ended = thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while goes_on.load(Ordering::Relaxed) {
                        drop(Mock::new(Progress::OnWait).context());
                    }
                });
            }
            let ended = (0..CHILDREN).map(|_| child_that_exits()).collect::<Vec<c_int>>();
            goes_on.store(false, Ordering::Relaxed);
            ended
        });
        assert!(ended.iter().all(|status| *status == 0), "{ended:?}");
    }
}
