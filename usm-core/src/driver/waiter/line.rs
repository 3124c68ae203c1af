//! The line before the one thread that waits in the runtime for all callers of the process.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::time::Duration;

use crate::backend::EventStatus;
use crate::error::Result;
use crate::sync::sleeping::{Condvar, Mutex};

#[cfg(all(test, loom))]
mod models;

/// Until the first question of a caller whose turn has not come, doubled up to the longest. One
/// that the thread waits for asks nothing: on a busy machine each question costs as much as the
/// wait.
const TURN: Duration = if cfg!(loom) { Duration::MAX } else { Duration::from_millis(2) };
const LONGEST_TURN: Duration = if cfg!(loom) { Duration::MAX } else { Duration::from_millis(16) };

/// Waits for an operation without a limit, and comes back when that has ended, however it has.
pub type Blocking = Box<dyn Fn() + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    InLine,
    WaitedFor,
    Done,
}

/// What a caller and the thread share.
pub(super) struct Ticket {
    block: Blocking,
    stage: Mutex<Stage>,
    signal: Condvar,
}

/// Callers whose turn has not come, and whether there is a thread.
pub(super) struct Line {
    callers: Mutex<Callers>,
    /// A ticket has come into an empty line.
    come: Condvar,
}

struct Callers {
    tickets: VecDeque<Arc<Ticket>>,
    has_thread: bool,
}

impl Ticket {
    pub(super) fn new(block: Blocking) -> Arc<Self> {
        Arc::new(Self { block, stage: Mutex::new(Stage::InLine), signal: Condvar::new() })
    }
}

impl Line {
    pub(super) const fn new() -> Self {
        let callers = Callers { tickets: VecDeque::new(), has_thread: false };
        Self { callers: Mutex::new(callers), come: Condvar::new() }
    }

    /// Has the thread wait for the ticket's operation and comes back when it has, when `status`
    /// says that there is nothing to wait for, when `rest` says that no time is left, or at once
    /// where `start` cannot have a thread [serve](Self::serve) the line.
    pub(super) fn wait(
        &self,
        ticket: &Arc<Ticket>,
        rest: impl Fn() -> Duration,
        status: impl Fn() -> Result<EventStatus>,
        start: impl FnOnce() -> bool,
    ) -> Result<()> {
        if !self.stand(ticket, start) {
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
                Stage::WaitedFor | Stage::InLine => {}
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
    fn stand(&self, ticket: &Arc<Ticket>, start: impl FnOnce() -> bool) -> bool {
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

    /// What the thread does, for ever.
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
