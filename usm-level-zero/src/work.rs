//! The work of a queue: its list, and the events that commands of the list refer to until they have
//! run.
//!
//! The driver does not keep what commands refer to. Nothing here names the driver but what is at
//! the end, so that the models reach it.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use level_zero_sys::*;

use crate::native::Native;
use usm_core::backend::EventOps;
use usm_core::driver::process;

#[cfg(all(test, loom))]
mod models;

#[derive(Debug)]
pub(super) struct Work<E, R> {
    /// In the order of submission.
    kept: VecDeque<Kept<E>>,
    /// Event of the last operation.
    last: Option<E>,
    /// The wait list of the call under way; empty in between.
    waits: Vec<R>,
}

#[derive(Debug)]
enum Kept<E> {
    /// The next operation waits for it.
    Awaited(E),
    Operation(E),
}

/// The remains of a dropped queue: its list, and the events that its commands may still refer to.
#[derive(Debug)]
#[expect(dead_code, reason = "kept for their drop")]
pub(super) struct Parked<L, E, R> {
    pub(super) work: Work<E, R>,
    /// Destroyed after the events were given back.
    pub(super) list: L,
}

impl<E: EventOps + Clone, R> Work<E, R> {
    pub(super) const fn new() -> Self {
        Self { kept: VecDeque::new(), last: None, waits: Vec::new() }
    }

    /// Events that are kept.
    pub(super) fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Event of the last operation.
    pub(super) fn last(&self) -> Option<&E> {
        self.last.as_ref()
    }

    /// Has `append` append commands that signal `event` and wait for what it is given: what is
    /// `awaited` of `after` and, with `follows`, of the operation before.
    /// Nothing was appended where it answers with an error; nothing is kept of that.
    pub(super) fn append<T, X>(
        &mut self,
        event: &E,
        after: &[E],
        follows: bool,
        awaited: impl Fn(&E) -> Option<R>,
        append: impl FnOnce(&mut [R]) -> Result<T, X>,
    ) -> Result<T, X> {
        let kept = self.kept.len();
        let last = self.last.take();
        let before = last.as_ref().filter(|_| follows);
        for event in after.iter().chain(before) {
            if let Some(raw) = awaited(event) {
                self.waits.push(raw);
                self.kept.push_back(Kept::Awaited(event.clone()));
            }
        }
        let answer = append(&mut self.waits);
        self.waits.clear();
        if answer.is_ok() {
            self.kept.push_back(Kept::Operation(event.clone()));
            self.last = Some(event.clone());
        } else {
            self.kept.truncate(kept);
            self.last = last;
        }
        answer
    }

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

    /// The events of the operations that were not seen to have ended.
    pub(super) fn operations(&self) -> Vec<E> {
        let operation = |kept: &Kept<E>| match kept {
            Kept::Operation(event) => Some(event.clone()),
            Kept::Awaited(_) => None,
        };
        self.kept.iter().filter_map(operation).collect()
    }
}

/// A command list, destroyed with its owner.
#[derive(Debug)]
pub(super) struct List {
    pub(super) raw: ze_command_list_handle_t,
    pub(super) native: Arc<Native>,
    /// A foreign list is not destroyed.
    pub(super) owned: bool,
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        let Ok(_inside) = process::ask() else { return };
        // SAFETY: owned, destroyed once, after its work. A failure could not be acted on.
        let _ = unsafe { self.native.functions().zeCommandListDestroy(self.raw) };
    }
}
