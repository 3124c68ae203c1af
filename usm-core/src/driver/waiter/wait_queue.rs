//! The queue of callers for the one thread that waits in the runtime for the whole process.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::time::Duration;

use crate::backend::EventStatus;
use crate::error::Result;
use crate::sync::sleeping::{Condvar, Mutex};

#[cfg(all(test, loom))]
mod models;

/// The time before the first query of a caller whose turn has not come; doubles up to the longest.
/// A caller that the thread waits for does not query: on a busy machine each query costs as much as
/// the wait.
const TURN: Duration = if cfg!(loom) { Duration::MAX } else { Duration::from_millis(2) };
const LONGEST_TURN: Duration = if cfg!(loom) { Duration::MAX } else { Duration::from_millis(16) };

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
    come: Condvar,
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
        Self { callers: Mutex::new(callers), come: Condvar::new() }
    }

    /// Has the thread wait for the ticket's operation. Returns when the thread is done, when
    /// `status` has nothing to wait for, when `rest` is zero, or at once if `start` cannot start a
    /// thread to [serve](Self::serve) the queue.
    pub(super) fn wait(
        &self,
        ticket: &Arc<Ticket>,
        rest: impl Fn() -> Duration,
        status: impl Fn() -> Result<EventStatus>,
        start: impl FnOnce() -> bool,
    ) -> Result<()> {
        if !self.enqueue_ticket(ticket, start) {
            return Ok(());
        }
        let mut turn = TURN;
        loop {
            let rest = rest();
            let mut stage = ticket.stage.lock();
            if *stage != Stage::Done {
                let until = if *stage == Stage::WaitedFor { rest } else { rest.min(turn) };
                stage = ticket.signal.wait_timeout(stage, until);
            }
            match *stage {
                Stage::Done => return Ok(()),
                Stage::WaitedFor if !rest.is_zero() => continue,
                Stage::WaitedFor | Stage::Queued => {}
            }
            drop(stage);
            turn = turn.saturating_mul(2).min(LONGEST_TURN);
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
        self.come.notify_one();
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
                None => callers = self.come.wait(callers),
            }
        };
        drop(callers);
        *ticket.stage.lock() = Stage::WaitedFor;
        (ticket.block)();
        *ticket.stage.lock() = Stage::Done;
        ticket.signal.notify_one();
    }
}
