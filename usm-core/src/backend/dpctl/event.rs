//! Events, and the failures that SYCL forgets.
//!
//! SYCL passes a failure on to what names the failed event in a copy or a launch, on another queue or an out-of-order one. On an in-order queue it drops such
//! names as needless, and the runtime below does not end a queue over one operation; a barrier over events is complete once it has asked about them, whatever
//! the answer. So each operation here remembers what it follows until that is known to be complete: an in-order queue in one line for all of its
//! operations, oldest first, others in a list of their own. Who asks about an event asks about what is before it too, most of which was asked for already.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::c_int;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use super::error::{self, not_null};
use super::loader::{Handle, Library, Raw};
use crate::BackendKind;
use crate::backend::roster::Completion;
use crate::backend::{EventStatus, waiter};
use crate::error::{Error, Result};
use crate::sync::sleeping::{Mutex, MutexGuard};

/// What the library says of an event whose operation has ended well.
const COMPLETE: c_int = 3;
/// Operations that a line may hold before the oldest are asked for: nobody else may ever.
const LONG: usize = 64;

/// A SYCL event.
#[derive(Clone, Debug)]
pub struct DpctlEvent(Arc<Inner>);

struct Inner {
    handle: Handle,
    /// Known to be complete, with all that it follows.
    over: AtomicBool,
    /// The line of its queue, and its number there.
    place: Option<(Arc<Line>, u64)>,
    /// What else it follows and was not over when it was submitted.
    follows: Mutex<Vec<DpctlEvent>>,
    /// Whether it follows nothing but its line.
    lined: bool,
}

impl fmt::Debug for Inner {
    /// Not what it follows, which may lead anywhere.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

impl Drop for Inner {
    /// A list behind a list behind a list, each dropped before the next: not by recursion.
    fn drop(&mut self) {
        let mut rest = core::mem::take(self.follows.get_mut());
        while let Some(event) = rest.pop() {
            if let Some(mut inner) = Arc::into_inner(event.0) {
                rest.append(inner.follows.get_mut());
            }
        }
    }
}

impl DpctlEvent {
    /// An event of somebody else, or one that follows nothing.
    ///
    /// # Safety
    /// `raw` is NULL or an event of `library` that the caller owns.
    pub(super) unsafe fn take(library: &'static Library, operation: &'static str, raw: Raw) -> Result<Self> {
        // SAFETY: the caller's promise.
        unsafe { Self::following(library, operation, raw, None, Vec::new()) }
    }

    /// # Safety
    /// As [`take`](Self::take).
    pub(super) unsafe fn following(
        library: &'static Library,
        operation: &'static str,
        raw: Raw,
        place: Option<(Arc<Line>, u64)>,
        follows: Vec<Self>,
    ) -> Result<Self> {
        let raw = not_null(operation, raw)?;
        // SAFETY: the caller's promise.
        let handle = unsafe { Handle::new(library, raw, library.event_delete) };
        Ok(Self(Arc::new(Inner {
            handle,
            over: AtomicBool::new(false),
            place,
            lined: follows.is_empty(),
            follows: Mutex::new(follows),
        })))
    }

    pub(super) fn native(&self) -> &Handle {
        &self.0.handle
    }

    /// Known to be complete, with all that it follows.
    pub(super) fn is_over(&self) -> bool {
        self.0.over.load(Ordering::Acquire)
    }

    pub(super) fn status(&self) -> Result<EventStatus> {
        if self.is_over() {
            return Ok(EventStatus::Complete);
        }
        if self.own_status()? == EventStatus::Pending {
            return Ok(EventStatus::Pending);
        }
        // Its own operation has ended; what is before it comes first. Each event of the way waits for the next.
        let (mut way, mut event) = (Vec::new(), self.clone());
        loop {
            let before = match event.before() {
                Ok(before) => before,
                Err(error) => return Err(Self::failed(way, event, error)),
            };
            let Some(before) = before else {
                event.0.over.store(true, Ordering::Release);
                match way.pop() {
                    Some(after) => event = after,
                    None => return Ok(EventStatus::Complete),
                }
                continue;
            };
            way.push(core::mem::replace(&mut event, before));
            match event.own_status() {
                Ok(EventStatus::Complete) => {}
                Ok(EventStatus::Pending) => return Ok(EventStatus::Pending),
                Err(error) => return Err(Self::failed(way, event, error)),
            }
        }
    }

    /// The lines of all that follows a failure know it.
    #[cold]
    fn failed(way: Vec<Self>, event: Self, error: Error) -> Error {
        for event in way.iter().chain([&event]) {
            event.fail(error);
        }
        error
    }

    fn fail(&self, error: Error) {
        if let Some((line, number)) = &self.0.place {
            line.fail(*number, error);
        }
    }

    /// What it follows and is not over, if there is anything.
    fn before(&self) -> Result<Option<Self>> {
        if let Some((line, number)) = &self.0.place {
            if let Some(before) = line.before(*number)? {
                return Ok(Some(before));
            }
        }
        let mut follows = self.0.follows.lock();
        while follows.last().is_some_and(Self::is_over) {
            follows.pop();
        }
        Ok(follows.last().cloned())
    }

    /// As SYCL says it.
    fn own_status(&self) -> Result<EventStatus> {
        match self.ask() {
            COMPLETE => Ok(EventStatus::Complete),
            1 | 2 => Ok(EventStatus::Pending),
            _ => {
                let error = error::native("DPCTLEvent_GetCommandExecutionStatus");
                self.fail(error);
                Err(error)
            }
        }
    }

    fn ask(&self) -> c_int {
        let handle = &self.0.handle;
        // SAFETY: a live event.
        unsafe { (handle.library().event_status)(handle.raw()) }
    }
}

impl Completion for DpctlEvent {
    fn is_complete(&self) -> bool {
        matches!(self.status(), Ok(EventStatus::Complete))
    }

    /// Submitting has flushed already.
    fn wait(&self, limit: Duration) -> Result<()> {
        waiter::until_complete(&self.0, limit, || self.status())
            .map_err(|error| error.in_backend(BackendKind::Sycl))
    }
}

impl waiter::Blocking for Inner {
    fn block(&self) {
        // SAFETY: only events are waited for; the function lets no exception out.
        unsafe { (self.handle.library().event_wait)(self.handle.raw()) };
    }
}

/// The operations of an in-order queue that are not known to be over, oldest first.
pub(super) struct Line {
    /// Number of the last operation. Held over a submission, so that numbers are in the order of the queue.
    turn: Mutex<u64>,
    /// Whether an operation is known to have failed. Set with the state locked.
    failed: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<DpctlEvent>,
    /// The first operation that is known to have failed, and how. None behind it waits here.
    failed: Option<(u64, Error)>,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl Line {
    pub(super) fn new() -> Self {
        Self { turn: Mutex::new(0), failed: AtomicBool::new(false), state: Mutex::new(State::default()) }
    }

    /// Whoever has it is the only one to submit, and gives the next number.
    pub(super) fn turn(&self) -> MutexGuard<'_, u64> {
        self.turn.lock()
    }

    /// The failure of an operation before whatever is submitted next.
    pub(super) fn check(&self) -> Result<()> {
        if !self.failed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.state.lock().failed.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// Asks for the oldest where many are waiting.
    pub(super) fn enter(&self, event: DpctlEvent) {
        let mut state = self.state.lock();
        state.forget_finished();
        if state.failed.is_none() {
            state.waiting.push_back(event);
        }
        if state.waiting.len() <= LONG {
            return;
        }
        let oldest = state.waiting.front().cloned();
        drop(state);
        // More go than come, once they have ended.
        if oldest.is_some_and(|event| event.is_complete()) {
            let second = self.state.lock().waiting.get(1).cloned();
            let _ = second.map(|event| event.is_complete());
        }
    }

    /// The first that is not over of those before a number, or the failure of one.
    fn before(&self, number: u64) -> Result<Option<DpctlEvent>> {
        let mut state = self.state.lock();
        loop {
            state.forget_finished();
            if let Some((_, error)) = state.failed.filter(|(failed, _)| *failed < number) {
                return Err(error);
            }
            let first = state.waiting.front().filter(|first| first.number() < number);
            match first {
                // Most follow nothing but the line, and nothing is before the first: many that have ended are asked for in one go.
                Some(first) if first.0.lined && first.ask() == COMPLETE => {
                    first.0.over.store(true, Ordering::Release);
                }
                _ => return Ok(first.cloned()),
            }
        }
    }

    fn fail(&self, number: u64, error: Error) {
        let mut state = self.state.lock();
        if state.failed.is_none_or(|(first, _)| number < first) {
            state.failed = Some((number, error));
            self.failed.store(true, Ordering::Release);
            state.waiting.retain(|event| event.number() < number);
        }
    }
}

impl State {
    fn forget_finished(&mut self) {
        while self.waiting.front().is_some_and(DpctlEvent::is_over) {
            self.waiting.pop_front();
        }
    }
}

impl DpctlEvent {
    fn number(&self) -> u64 {
        self.0.place.as_ref().map_or(0, |(_, number)| *number)
    }
}
