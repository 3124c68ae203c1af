//! Misuse of the driver, and its reports: breaches of the promises of [`Backend`](crate::Backend)'s
//! unsafe functions.
//!
//! Work that breaks a promise is reported and touches nothing: running it would corrupt the test's
//! own process.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use super::state::{
    Engine, EventState, Live, MockEvent, State, Submission, Touch, Violation, lies_in, ranges_overlap,
};
use crate::backend::{Block, QueueOrder};

impl Engine {
    /// Reports a broken promise that has no memory range.
    pub(in crate::backend::mock) fn misused(&self, pointer: *const u8, len: usize) {
        self.state.lock().violations.push((pointer.addr(), len));
    }

    /// Whether all these events are of this driver.
    pub(super) fn owns_events(&self, events: &[MockEvent]) -> bool {
        events.iter().all(|event| core::ptr::eq(Arc::as_ptr(&event.engine), self))
    }
}

impl State {
    /// The ranges that a submission misuses: freed memory, memory beyond the end of a block or of
    /// another context, and memory that conflicting work accesses concurrently.
    pub(super) fn misused_as_submitted(&self, submission: &Submission<'_>) -> Vec<Violation> {
        let mut wrong = Vec::new();
        let touches = &submission.touches;
        for (number, touch) in touches.iter().enumerate() {
            let of_itself = touches[..number].iter().any(|other| touch.conflicts(other));
            let is_freed = self
                .quarantine
                .iter()
                .any(|(base, layout)| ranges_overlap(&touch.range, &(*base..*base + layout.size())));
            let outside = self.live.iter().any(|live| self.is_outside(live, touch, submission.context));
            if touch.range.is_empty() || of_itself || is_freed || outside || self.is_raced(touch, submission)
            {
                wrong.push(touch.violation());
            }
        }
        wrong
    }

    fn is_outside(&self, live: &Live, touch: &Touch, context: u64) -> bool {
        let block = live.range();
        // A block opened by an IPC handle also belongs to the contexts that opened it.
        let foreign = || live.context != context && !self.opened_bases.contains(&live.base);
        ranges_overlap(&touch.range, &block) && (!lies_in(&touch.range, &block) || foreign())
    }

    /// Whether pending work that the submission does not follow conflicts with it.
    fn is_raced(&self, touch: &Touch, submission: &Submission<'_>) -> bool {
        let mut predecessors = None;
        self.operations.iter().enumerate().any(|(index, operation)| {
            operation.event.is_pending()
                && operation.touches.iter().any(|other| touch.conflicts(other))
                && !submission.follows(&operation.event, operation.queue)
                && !predecessors.get_or_insert_with(|| self.followed(submission))[index]
        })
    }

    /// For each queued operation, whether it ends before the submission begins.
    fn followed(&self, submission: &Submission<'_>) -> Vec<bool> {
        let mut predecessors = vec![false; self.operations.len()];
        let mut new: Vec<usize> = (0..self.operations.len())
            .filter(|index| submission.follows(&self.operations[*index].event, self.operations[*index].queue))
            .collect();
        while let Some(index) = new.pop() {
            if core::mem::replace(&mut predecessors[index], true) {
                continue;
            }
            let successor = &self.operations[index];
            new.extend(self.operations[..index].iter().enumerate().filter_map(|(index, earlier)| {
                let in_turn = successor.order == QueueOrder::InOrder && successor.queue == earlier.queue;
                let by_event = || successor.after.iter().any(|event| Arc::ptr_eq(event, &earlier.event));
                (in_turn || by_event()).then_some(index)
            }));
        }
        predecessors
    }

    /// The live block that this call of `context` may free. Reports a violation if there is none.
    pub(super) fn freeable(&self, block: &Block, context: u64) -> Result<usize, Violation> {
        let same = |live: &Live| {
            let layout = live.layout;
            let as_allocated = layout.size() == block.size && layout.align() >= block.alignment;
            live.base == block.address() && as_allocated && live.kind == block.kind && live.context == context
        };
        self.live.iter().position(same).ok_or((block.address(), block.size))
    }
}

impl Submission<'_> {
    /// Whether the submission directly follows the operation with this event and queue.
    fn follows(&self, event: &Arc<EventState>, queue: u64) -> bool {
        let in_turn = self.order == QueueOrder::InOrder && self.queue == queue;
        in_turn || self.after.iter().any(|after| Arc::ptr_eq(&after.state, event))
    }
}
