//! The queue of callers for the one thread that waits in the runtime for the whole process.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::time::Duration;

use crate::backend::EventStatus;
use crate::driver::poll;
use crate::error::Result;
use crate::sync::sleeping::{Condvar, Mutex};

#[cfg(all(test, loom))]
mod models;

/// Waits for an operation without a limit and returns when it has ended, successfully or not.
pub type Blocking = Box<dyn Fn() + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Queued,
    WaitedFor,
    Done,
}

/// Shared by a caller and the thread.
pub(super) struct Ticket {
    block: Blocking,
    stage: Mutex<Stage>,
    signal: Condvar,
}

/// Callers whose turn has not come, and whether the thread runs.
pub(super) struct WaitQueue {
    callers: Mutex<Callers>,
    /// Signals a ticket in an empty queue.
    arrival: Condvar,
}

struct Callers {
    tickets: VecDeque<Arc<Ticket>>,
    has_thread: bool,
}

impl Ticket {
    pub(super) fn new(block: Blocking) -> Arc<Self> {
        Arc::new(Self { block, stage: Mutex::new(Stage::Queued), signal: Condvar::new() })
    }
}

impl WaitQueue {
    pub(super) const fn new() -> Self {
        let callers = Callers { tickets: VecDeque::new(), has_thread: false };
        Self { callers: Mutex::new(callers), arrival: Condvar::new() }
    }

    /// Has the thread wait for the ticket's operation. Returns when the thread is done, when
    /// `status` has nothing to wait for, when the caller has waited for `limit`, or at once if
    /// `start` cannot start a thread to [serve](Self::serve) the queue.
    ///
    /// A caller whose turn has not come queries now and then. A caller that the thread waits for
    /// does not: on a busy machine each query costs as much as the wait.
    pub(super) fn wait(
        &self,
        ticket: &Arc<Ticket>,
        limit: Duration,
        elapsed: impl Fn() -> Duration,
        status: impl Fn() -> Result<EventStatus>,
        start: impl FnOnce() -> bool,
    ) -> Result<()> {
        if !self.enqueue_ticket(ticket, start) {
            return Ok(());
        }
        loop {
            let elapsed = elapsed();
            let rest = limit.saturating_sub(elapsed);
            let mut stage = ticket.stage.lock();
            if *stage != Stage::Done {
                let until = if *stage == Stage::WaitedFor { rest } else { rest.min(turn(elapsed)) };
                stage = ticket.signal.wait_timeout(stage, until);
            }
            match *stage {
                Stage::Done => return Ok(()),
                Stage::WaitedFor if !rest.is_zero() => continue,
                Stage::WaitedFor | Stage::Queued => {}
            }
            drop(stage);
            let answer = status();
            if rest.is_zero() || !matches!(answer, Ok(EventStatus::Pending)) {
                self.callers.lock().tickets.retain(|other| !Arc::ptr_eq(other, ticket));
                return answer.map(drop);
            }
        }
    }

    /// `false` without a thread.
    fn enqueue_ticket(&self, ticket: &Arc<Ticket>, start: impl FnOnce() -> bool) -> bool {
        let mut callers = self.callers.lock();
        callers.has_thread = callers.has_thread || start();
        if !callers.has_thread {
            return false;
        }
        callers.tickets.push_back(Arc::clone(ticket));
        drop(callers);
        self.arrival.notify_one();
        true
    }

    /// The thread's endless loop.
    pub(super) fn serve(&self) {
        loop {
            self.serve_next();
        }
    }

    fn serve_next(&self) {
        let mut callers = self.callers.lock();
        let ticket = loop {
            match callers.tickets.pop_front() {
                Some(ticket) => break ticket,
                None => callers = self.arrival.wait(callers),
            }
        };
        drop(callers);
        *ticket.stage.lock() = Stage::WaitedFor;
        (ticket.block)();
        *ticket.stage.lock() = Stage::Done;
        ticket.signal.notify_one();
    }
}

/// The time before the next query of a caller whose turn has not come.
fn turn(elapsed: Duration) -> Duration {
    // A model has no clock.
    if cfg!(loom) { Duration::MAX } else { poll::pause(elapsed) }
}
