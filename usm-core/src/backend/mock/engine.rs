//! The simulated driver: a list of queued operations, the rules of order, faults and the log.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::panic::AssertUnwindSafe;
use std::panic::{catch_unwind, resume_unwind};

use super::script::{Call, Fault, Operation, Progress};
use crate::backend::QueueOrder;
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::process::exit::run_task;
use crate::sync::{Mutex, take_out};

mod memory;
mod misuse;
mod state;

pub use state::MockEvent;
pub(super) use state::{Engine, EventState, Submission, Touch};
use state::{Life, QueuedOperation, State, Violation};

/// The running operation. Dropping it ends it and sets its event's outcome, also after a panic.
struct Execution<'e> {
    engine: &'e Engine,
    event: Arc<EventState>,
    in_order_queue: Option<u64>,
    outcome: Result<()>,
}

impl Drop for Execution<'_> {
    fn drop(&mut self) {
        if let (Some(queue), Err(error)) = (self.in_order_queue, self.outcome) {
            self.engine.state.lock().failed_queues.push((queue, error));
        }
        self.event.finish(self.outcome);
        let is_this = |operation: &QueuedOperation| Arc::ptr_eq(&operation.event, &self.event);
        let finished_operations = take_out(&mut self.engine.state.lock().operations, is_this);
        drop(finished_operations);
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("progress", &self.progress)
            .field("queued", &self.queued())
            .finish_non_exhaustive()
    }
}

impl Engine {
    pub(super) fn new(progress: Progress) -> Self {
        Self { progress, state: Mutex::new(State { random: 0x9e37_79b9_7f4a_7c15, ..State::default() }) }
    }

    /// The ledger of a device.
    pub(super) fn ledger(&self, ordinal: u32) -> Arc<Ledger> {
        let ledgers = &mut self.state.lock().ledgers;
        while ledgers.len() <= ordinal as usize {
            ledgers.push(Ledger::shared());
        }
        Arc::clone(&ledgers[ordinal as usize])
    }

    pub(super) fn seed(&self, seed: u64) {
        self.state.lock().random = seed | 1;
    }

    pub(super) fn inject(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    pub(super) fn mark_lost(&self) {
        self.state.lock().is_lost = true;
    }

    pub(super) fn hang(&self, queue: u64, hangs: bool) {
        let hung_queues = &mut self.state.lock().hung_queues;
        hung_queues.retain(|hung_queue| *hung_queue != queue);
        if hangs {
            hung_queues.push(queue);
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.state.lock().is_lost
    }

    pub(super) fn queued(&self) -> usize {
        // A finished operation leaves the queue a moment after its event is complete.
        let is_pending = |operation: &&QueuedOperation| operation.event.is_pending();
        self.state.lock().operations.iter().filter(is_pending).count()
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.state.lock().calls.clone()
    }

    pub(super) fn violations(&self) -> Vec<Violation> {
        self.state.lock().violations.clone()
    }

    pub(super) fn opened_context(&self) {
        self.state.lock().contexts += 1;
    }

    pub(super) fn closed_context(&self) {
        self.state.lock().contexts -= 1;
    }

    pub(super) fn contexts(&self) -> usize {
        self.state.lock().contexts
    }

    pub(super) fn live_blocks(&self) -> usize {
        self.state.lock().live.len()
    }

    /// Logs a call and returns the injected error, if any. The caller keeps a late fault with the
    /// work.
    pub(super) fn call(&self, operation: Operation, bytes: usize, after: usize) -> Result<Option<Error>> {
        let mut state = self.state.lock();
        state.calls.push(Call { operation, bytes, after });
        if state.is_lost {
            return Err(ErrorKind::DeviceLost.into());
        }
        let Some(index) = state.faults.iter().position(|fault| fault.operation == operation) else {
            return Ok(None);
        };
        if state.faults[index].skip > 0 {
            state.faults[index].skip -= 1;
            return Ok(None);
        }
        let fault = state.faults.remove(index);
        if fault.late { Ok(Some(fault.error)) } else { Err(fault.error) }
    }

    pub(super) fn submit(
        self: &Arc<Self>,
        submission: Submission<'_>,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<MockEvent> {
        let delayed_error = self.call(submission.operation, submission.bytes, submission.after.len())?;
        let event = EventState::pending();
        self.enqueue(&mut self.state.lock(), submission, delayed_error, &event, None, work);
        Ok(self.submitted(event))
    }

    /// Adds an operation to its queue. The caller holds the lock and calls
    /// [`submitted`](Self::submitted) without it.
    fn enqueue(
        &self,
        state: &mut State,
        submission: Submission<'_>,
        delayed_error: Option<Error>,
        event: &Arc<EventState>,
        ends: Option<Arc<Life>>,
        work: impl FnOnce() + Send + 'static,
    ) {
        let mut work = Some(work);
        let mut wrong = state.misused_as_submitted(&submission);
        if !self.owns_events(submission.after) {
            wrong.push((0, submission.bytes));
        }
        let (lives, violations) = state.blocks_in(&submission.touches);
        wrong.extend(violations);
        if !wrong.is_empty() {
            work = None;
        }
        state.violations.extend(wrong);
        state.operations.push(QueuedOperation {
            queue: submission.queue,
            order: submission.order,
            context: submission.context,
            after: submission.after.iter().map(|event| Arc::clone(&event.state)).collect(),
            event: Arc::clone(event),
            touches: submission.touches,
            lives,
            ends,
            work: Some(Box::new(move || work.into_iter().for_each(|work| work()))),
            delayed_error,
        });
    }

    /// Runs ready work, if the engine runs work at once, and returns the operation's handle.
    fn submitted(self: &Arc<Self>, event: Arc<EventState>) -> MockEvent {
        if self.progress == Progress::Immediate {
            self.run_ready(&event);
        }
        MockEvent { state: event, engine: Arc::clone(self) }
    }

    /// Runs all ready work. If a task panics, its event fails and the other tasks still run. The
    /// panic resumes here if the task belongs to the operation that is being submitted, as if it
    /// had been called directly.
    fn run_ready(&self, own_event: &EventState) {
        let mut payload = None;
        loop {
            let ours_before = own_event.is_pending();
            match catch_unwind(AssertUnwindSafe(|| self.step())) {
                Ok(true) => {}
                Ok(false) => break,
                Err(panic) if ours_before && own_event.failure().is_some() => payload = Some(panic),
                Err(_) => {}
            }
        }
        if let Some(panic) = payload {
            resume_unwind(panic);
        }
    }

    /// As [`step`](Self::step), for work that runs while a caller waits.
    pub(super) fn step_in_wait(&self) -> bool {
        self.progress == Progress::OnWait && self.step()
    }

    /// Runs one operation whose dependencies are complete. Only one thread runs work at a time.
    pub(super) fn step(&self) -> bool {
        let (work, event, poison, in_order_queue) = {
            let mut state = self.state.lock();
            if state.is_lost || state.operations.iter().any(|operation| operation.work.is_none()) {
                return false;
            }
            let ready: Vec<usize> =
                (0..state.operations.len()).filter(|index| is_ready(&state, *index)).collect();
            if ready.is_empty() {
                return false;
            }
            // xorshift: every order that the rules allow is a legal execution.
            state.random ^= state.random << 13;
            state.random ^= state.random >> 7;
            state.random ^= state.random << 17;
            let pick = ready[(state.random % ready.len() as u64) as usize];
            let next = &mut state.operations[pick];
            let in_order_queue = (next.order == QueueOrder::InOrder).then_some(next.queue);
            // An operation after a failed one does not run: after a failed event, or after a
            // failure in its in-order queue (contract, point 11).
            let after_failure = next.after.iter().find_map(|event| event.failure());
            let (work, event) = (next.work.take(), Arc::clone(&next.event));
            let delayed_error = next.delayed_error;
            let of_queue = state.failed_queues.iter().find(|(queue, _)| Some(*queue) == in_order_queue);
            let poison = after_failure.or(of_queue.map(|(_, error)| *error)).or(delayed_error);
            // Only work that runs touches memory.
            if poison.is_none() {
                let wrong = state.misused_by(pick);
                state.violations.extend(wrong);
            }
            (work, event, poison, in_order_queue)
        };
        let mut execution = Execution { engine: self, event, in_order_queue, outcome: Ok(()) };
        match (poison, work) {
            (Some(error), _) => execution.outcome = Err(error),
            (None, Some(work)) => {
                // Also runs if the work panics.
                execution.outcome = Err(ErrorKind::Native { operation: "a host task" }.into());
                run_task(work);
                execution.outcome = Ok(());
            }
            (None, None) => {}
        }
        true
    }

    /// The operations queued now: of one queue, or of all queues of a context.
    pub(super) fn outstanding(self: &Arc<Self>, context: u64, queue: Option<u64>) -> Vec<MockEvent> {
        let event = |operation: &QueuedOperation| MockEvent {
            state: Arc::clone(&operation.event),
            engine: Arc::clone(self),
        };
        let state = self.state.lock();
        let ours = |operation: &&QueuedOperation| {
            queue.map_or(operation.context == context, |queue| operation.queue == queue)
        };
        state.operations.iter().filter(ours).map(event).collect()
    }
}

fn is_ready(State { operations: operation, hung_queues, .. }: &State, index: usize) -> bool {
    let candidate = &operation[index];
    if hung_queues.contains(&candidate.queue) {
        return false;
    }
    let first_of_queue = || operation[..index].iter().all(|earlier| earlier.queue != candidate.queue);
    let is_complete = |event: &Arc<EventState>| !event.is_pending();
    candidate.after.iter().all(is_complete) && (candidate.order == QueueOrder::OutOfOrder || first_of_queue())
}
