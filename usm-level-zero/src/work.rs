//! The unfinished work of a queue: the events that commands of its list refer to until they have
//! run.
//!
//! The driver does not keep events alive for commands. Only the end of this file names the driver,
//! so that models can use the rest.

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
    entries: VecDeque<Entry<E>>,
    /// Event of the last operation.
    last: Option<E>,
    /// The wait list of the current call; empty between calls.
    waits: Vec<R>,
}

#[derive(Debug)]
enum Entry<E> {
    /// The next operation waits for it.
    Awaited(E),
    Operation(E),
}

/// A dropped queue with unfinished work: its list, and the events that its commands may still refer
/// to.
#[derive(Debug)]
#[expect(dead_code, reason = "kept for their drop")]
pub(super) struct DroppedQueue<L, E, R> {
    pub(super) work: Work<E, R>,
    /// Destroyed after the events were released.
    pub(super) list: L,
}

impl<E: EventOps + Clone, R> Work<E, R> {
    pub(super) const fn new() -> Self {
        Self { entries: VecDeque::new(), last: None, waits: Vec::new() }
    }

    /// Number of kept events.
    pub(super) fn kept_events(&self) -> usize {
        self.entries.len()
    }

    /// Event of the last operation.
    pub(super) fn last(&self) -> Option<&E> {
        self.last.as_ref()
    }

    /// Calls `append` with the wait list of a command that signals `event`: the handles that
    /// `wait` returns for `after` and, if `follows`, for the previous operation. If `append`
    /// fails, it has appended nothing, and nothing is kept for it.
    pub(super) fn append<T, X>(
        &mut self,
        event: &E,
        after: &[E],
        follows: bool,
        wait: impl Fn(&E) -> Option<R>,
        append: impl FnOnce(&mut [R]) -> Result<T, X>,
    ) -> Result<T, X> {
        let entry_count = self.entries.len();
        let last = self.last.take();
        let before = last.as_ref().filter(|_| follows);
        for event in after.iter().chain(before) {
            if let Some(raw) = wait(event) {
                self.waits.push(raw);
                self.entries.push_back(Entry::Awaited(event.clone()));
            }
        }
        let answer = append(&mut self.waits);
        self.waits.clear();
        if answer.is_ok() {
            self.entries.push_back(Entry::Operation(event.clone()));
            self.last = Some(event.clone());
        } else {
            self.entries.truncate(entry_count);
            self.last = last;
        }
        answer
    }

    /// Releases the events of finished operations, up to the first unfinished one.
    pub(super) fn sweep(&mut self) {
        loop {
            let operation = self.entries.iter().position(|entry| matches!(entry, Entry::Operation(_)));
            let Some(index) = operation else { return };
            match &self.entries[index] {
                Entry::Operation(event) if event.is_complete() => {}
                _ => return,
            }
            self.entries.drain(..=index);
        }
    }

    /// The events of operations that are not known to be complete.
    pub(super) fn operations(&self) -> Vec<E> {
        let operation = |entry: &Entry<E>| match entry {
            Entry::Operation(event) => Some(event.clone()),
            Entry::Awaited(_) => None,
        };
        self.entries.iter().filter_map(operation).collect()
    }
}

/// A command list, destroyed with its owner.
#[derive(Debug)]
pub(super) struct List {
    pub(super) raw: ze_command_list_handle_t,
    pub(super) native: Arc<Native>,
    /// A foreign list is not destroyed.
    pub(super) is_owned: bool,
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.is_owned {
            return;
        }
        let Ok(_inside) = process::ask() else { return };
        // SAFETY: owned, destroyed once, after its work. A failure has no remedy.
        let _ = unsafe { self.native.functions().zeCommandListDestroy(self.raw) };
    }
}
