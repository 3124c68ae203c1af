//! What a queue keeps: its list, and the events that commands of the list refer to until they have run.
//!
//! The driver does not keep what commands refer to.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use level_zero_sys::*;

use super::event::LevelZeroEvent;
use super::memory::Native;
use crate::backend::roster::Completion;
use crate::deadline::Deadline;
use crate::sync::Mutex;

/// A command list, destroyed with its owner.
#[derive(Debug)]
pub(super) struct List {
    pub(super) raw: ze_command_list_handle_t,
    pub(super) native: Arc<Native>,
    /// Somebody else's list is not destroyed.
    pub(super) owned: bool,
}

#[derive(Debug, Default)]
pub(super) struct Work {
    /// In the order of submission.
    pub(super) kept: VecDeque<Kept>,
    /// Event of the last operation.
    pub(super) last: Option<LevelZeroEvent>,
    /// The wait list of the call under way; empty in between.
    pub(super) waits: Vec<ze_event_handle_t>,
}

#[derive(Debug)]
pub(super) enum Kept {
    /// The next operation waits for it.
    Awaited(LevelZeroEvent),
    Operation(LevelZeroEvent),
}

/// What a queue left behind: its list, and the events that commands of it may still refer to.
#[derive(Debug)]
pub(super) struct Parked {
    pub(super) work: Work,
    /// Destroyed after the events were given back.
    pub(super) _list: List,
}

/// What may run for ever. In sight, so that a search for leaks finds others.
static GIVEN_UP: Mutex<Vec<Parked>> = Mutex::new(Vec::new());

impl Drop for List {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        // SAFETY: owned, destroyed once, after its work. A failure could not be acted on.
        let _ = unsafe { self.native.functions().zeCommandListDestroy(self.raw) };
    }
}

impl Work {
    /// Gives back the events of finished operations, up to the first that is not.
    pub(super) fn sweep(&mut self) {
        loop {
            let operation = self.kept.iter().position(|kept| matches!(kept, Kept::Operation(_)));
            let Some(index) = operation else { return };
            match &self.kept[index] {
                Kept::Operation(event) if event.is_complete() => {}
                _ => return,
            }
            self.kept.drain(..=index);
        }
    }

    /// Fills the wait list, and keeps what is on it.
    pub(super) fn wait_for<'e>(&mut self, events: impl Iterator<Item = &'e LevelZeroEvent>) {
        self.waits.clear();
        for event in events.filter(|event| !event.is_known_complete()) {
            self.waits.push(event.handle());
            self.kept.push_back(Kept::Awaited(event.clone()));
        }
    }

    pub(super) fn submitted(&mut self, event: &LevelZeroEvent) {
        self.kept.push_back(Kept::Operation(event.clone()));
        self.last = Some(event.clone());
    }
}

impl Parked {
    /// Itself, unless nothing refers to its list any more, which is destroyed then.
    pub(super) fn unfinished(mut self) -> Option<Self> {
        self.work.sweep();
        (!self.work.kept.is_empty()).then_some(self)
    }

    /// Blocks until it is done or the time is over; the list of one that is not done is never destroyed.
    pub(super) fn finish(self, deadline: &mut Deadline) {
        if let Some(Kept::Operation(last) | Kept::Awaited(last)) = self.work.kept.back() {
            let _ = deadline.wait(|left| last.wait(left));
        }
        if let Some(parked) = self.unfinished() {
            GIVEN_UP.lock().push(parked);
        }
    }
}
