//! Keeps host views and launches apart on memory that host and device must not touch at the same
//! time.

#[cfg(feature = "alloc")]
use alloc::{sync::Arc, vec::Vec};
use core::fmt;
use core::time::Duration;

use crate::backend::{Backend, ContextOps};
use crate::deadline::Deadline;
use crate::error::{Error, ErrorKind, Result};
use crate::sync::Mutex;
#[cfg(feature = "alloc")]
use crate::sync::take_out;

#[derive(Debug)]
struct State {
    /// Live views. A forgotten view stays counted: launches are then refused for ever, which is
    /// sound.
    views: usize,
    /// Submissions between their check and their return.
    submissions: usize,
}

/// Blocks until the work of a context is complete, at most the limit. It keeps the context's queues
/// and events alive, not the context.
#[cfg(feature = "alloc")]
type Idle = Arc<dyn Fn(Duration) -> Result<()> + Send + Sync>;

#[cfg(feature = "alloc")]
struct Member {
    context: u64,
    /// The context was dropped while work was pending.
    is_dropped: bool,
    idle: Idle,
}

/// One gate for each device. All contexts that share the device's ledger pass it. It is used only
/// if a kind of memory lacks concurrent access.
pub(crate) struct Gate {
    state: Mutex<State>,
    /// The lock is never held over a call of a driver.
    #[cfg(feature = "alloc")]
    members: Mutex<Vec<Member>>,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.lock().fmt(f)
    }
}

impl Gate {
    pub(crate) const fn new() -> Self {
        Self {
            state: Mutex::new(State { views: 0, submissions: 0 }),
            #[cfg(feature = "alloc")]
            members: Mutex::new(Vec::new()),
        }
    }

    /// Adds a context: a view of any context waits for its work from now on.
    #[cfg(any(feature = "driver", feature = "mock"))]
    pub(crate) fn join(&self, context: u64, idle: Idle) {
        self.members.lock().push(Member { context, is_dropped: false, idle });
    }

    /// Marks a dropped context, whose queues are dropped too. Views still wait for its pending
    /// work.
    #[cfg(feature = "alloc")]
    pub(crate) fn leave(&self, context: u64) {
        if let Some(member) = self.members.lock().iter_mut().find(|member| member.context == context) {
            member.is_dropped = true;
        }
        // The outcome does not matter: this only asks which of the dropped contexts are idle.
        let _ = self.wait_for(|member| member.context == context, &mut Deadline::after(Duration::ZERO));
    }

    /// Waits for the work of some contexts and returns the first failure after all waits. Forgets
    /// dropped contexts that are idle.
    ///
    /// A dropped context whose work failed stays, and the device refuses views for the life of the
    /// process. Nothing tells when that work ends. The failure of a queue's last event may come
    /// before the end of work beside it. The end of a context stops no work where the runtime
    /// counts references (OpenCL, SYCL), where the process shares the context (CUDA's primary
    /// context, HIP) or where it is adopted. A host access to the memory meanwhile would be worse.
    #[cfg(feature = "alloc")]
    fn wait_for(&self, which: impl Fn(&Member) -> bool, deadline: &mut Deadline) -> Result<()> {
        let members = self.members.lock();
        let idle_members: Vec<(u64, bool, Idle)> = members
            .iter()
            .filter(|member| which(member))
            .map(|member| (member.context, member.is_dropped, Arc::clone(&member.idle)))
            .collect();
        drop(members);
        let mut outcome = Ok(());
        for (context, is_dropped, idle) in idle_members {
            let idle_outcome = deadline.wait(|left| idle(left));
            if is_dropped && idle_outcome.is_ok() {
                let removed_members = take_out(&mut self.members.lock(), |member| member.context == context);
                drop(removed_members);
            }
            outcome = outcome.and(idle_outcome);
        }
        outcome
    }

    /// Admits a submission, or returns the number of views that forbid it.
    pub(crate) fn submit(&self) -> Result<SubmitGuard<'_>> {
        let mut state = self.state.lock();
        if state.views > 0 {
            return Err(ErrorKind::HostViewLive { views: state.views }.into());
        }
        state.submissions += 1;
        Ok(SubmitGuard { gate: self })
    }

    /// Closes the gate for new submissions, then waits for all work on the device: that of the
    /// context, then that of the others.
    pub(crate) fn view<B: Backend>(&self, context: &B::Context, limit: Duration) -> Result<ViewGuard<'_>> {
        let mut deadline = Deadline::after(limit);
        self.state.lock().views += 1;
        let guard = ViewGuard { gate: Some(self) };
        // A submission that passed the gate before is mostly a few driver calls long. Without `std`
        // there is no clock, so a count bounds this wait.
        let mut spins = 0_u32;
        while self.state.lock().submissions > 0 {
            spins += 1;
            if spins == u32::MAX || deadline.remaining().is_zero() {
                return Err(Error::timeout(limit));
            }
            crate::sync::spin();
        }
        deadline.wait(|left| context.synchronize(left))?;
        #[cfg(feature = "alloc")]
        {
            let own = context.shared().id();
            self.wait_for(|member| member.context != own, &mut deadline)?;
        }
        Ok(guard)
    }
}

#[derive(Debug)]
pub(crate) struct SubmitGuard<'g> {
    gate: &'g Gate,
}

impl Drop for SubmitGuard<'_> {
    fn drop(&mut self) {
        self.gate.state.lock().submissions -= 1;
    }
}

/// Host access to memory, held by a host view. While it lives, no work is launched on the device if
/// the memory's kind lacks concurrent access. For other memory it does nothing.
#[derive(Debug)]
#[must_use = "work may be submitted to the device again as soon as it is dropped"]
pub struct ViewGuard<'g> {
    gate: Option<&'g Gate>,
}

impl ViewGuard<'_> {
    pub(crate) const NONE: Self = Self { gate: None };
}

impl Drop for ViewGuard<'_> {
    fn drop(&mut self) {
        if let Some(gate) = self.gate {
            gate.state.lock().views -= 1;
        }
    }
}

#[cfg(all(test, feature = "mock"))]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(7);

    fn wait_for_members(gate: &Gate) -> (Result<()>, Vec<u64>) {
        let outcome = gate.wait_for(|_| true, &mut Deadline::after(LIMIT));
        (outcome, gate.members.lock().iter().map(|member| member.context).collect())
    }

    #[test]
    fn work_that_failed_before_its_context_went_keeps_views_away_and_nothing_else() {
        let gate = Gate::new();
        let failure = Error::from(ErrorKind::Native { operation: "an operation of the test" });
        let waits = Arc::new(Mutex::new(Vec::new()));
        for (context, outcome) in [(1, Err(failure)), (2, Ok(())), (3, Err(ErrorKind::DeviceLost.into()))] {
            let waits = Arc::clone(&waits);
            let idle = move |limit: Duration| {
                assert!(limit <= LIMIT);
                waits.lock().push(context);
                outcome
            };
            gate.join(context, Arc::new(idle));
        }
        assert_eq!(wait_for_members(&gate), (Err(failure), alloc::vec![1, 2, 3]));
        assert_eq!(*waits.lock(), [1, 2, 3], "a failure does not cut the wait for the others short");
        gate.members.lock().iter_mut().for_each(|member| member.is_dropped = true);
        assert_eq!(
            wait_for_members(&gate),
            (Err(failure), alloc::vec![1, 3]),
            "a dropped, idle context is removed"
        );
        assert_eq!(
            wait_for_members(&gate),
            (Err(failure), alloc::vec![1, 3]),
            "a dropped context with failed work is not"
        );
        drop(gate.submit().expect("without a view, launches are admitted"));
    }

    #[test]
    fn a_dropped_context_without_work_is_removed_at_once() {
        let gate = Gate::new();
        gate.join(1, Arc::new(|limit| if limit.is_zero() { Ok(()) } else { Err(Error::timeout(limit)) }));
        gate.join(2, Arc::new(|limit| Err(Error::timeout(limit))));
        gate.leave(1);
        gate.leave(2);
        assert_eq!(wait_for_members(&gate), (Err(Error::timeout(LIMIT)), alloc::vec![2]));
    }
}
