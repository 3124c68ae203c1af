//! The simulated driver: a list of queued operations, the rules of order, faults and the log.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::ops::Range;
use core::ptr::NonNull;
use core::time::Duration;
use std::time::Instant;

use crate::AllocKind;
use crate::account::Account;
use crate::backend::{Block, EventStatus, QueueOrder};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{AtomicU32, Mutex, Ordering, take_out};

/// When queued work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// As soon as it is submitted.
    Immediate,
    /// While somebody waits.
    OnWait,
    /// Only when the test calls [`Mock::step`](super::Mock::step); a wait runs into its limit.
    Manual,
}

/// The calls that can be counted and made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// A new context.
    CreateContext,
    /// A new queue.
    CreateQueue,
    /// An allocation.
    Allocate,
    /// A free; cannot fail.
    Free,
    /// A pointer query.
    Query,
    /// A copy.
    Copy,
    /// A fill.
    Fill,
    /// A barrier.
    Barrier,
    /// A host task.
    Task,
    /// A prefetch or advice.
    Advice,
    /// Exporting a block to other processes, or opening one of theirs.
    Ipc,
    /// Access to another device's memory, allowed or taken back.
    Peer,
}

/// One call, as logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// What was called.
    pub operation: Operation,
    /// Bytes, where the call has a size.
    pub bytes: usize,
    /// Events that the call was told to wait for.
    pub after: usize,
}

/// Makes the call after the next `skip` calls of `operation` fail with `error`, once.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Which call.
    pub operation: Operation,
    /// Calls of it that still succeed.
    pub skip: usize,
    /// The error.
    pub error: Error,
    /// Fails when the work runs instead of when it is submitted (queued operations only).
    pub late: bool,
}

const PENDING: u32 = 0;
const COMPLETE: u32 = 1;
const FAILED: u32 = 2;

struct EventState {
    state: AtomicU32,
    error: Mutex<Option<Error>>,
}

impl EventState {
    /// The error of an operation that ran and failed.
    fn failure(&self) -> Option<Error> {
        *self.error.lock()
    }

    fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) == COMPLETE
    }

    fn settle(&self, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.state.store(COMPLETE, Ordering::Release),
            Err(error) => {
                *self.error.lock() = Some(error);
                self.state.store(FAILED, Ordering::Release);
            }
        }
    }
}

/// The completion of one queued operation. What is queued holds the state alone: an event that the driver holds must not hold the
/// driver, or work that never runs would keep both.
#[derive(Clone)]
pub struct MockEvent {
    state: Arc<EventState>,
    engine: Arc<Engine>,
}

impl fmt::Debug for MockEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockEvent").field("state", &self.state.state.load(Ordering::Relaxed)).finish()
    }
}

impl MockEvent {
    pub(super) fn status(&self) -> Result<EventStatus> {
        match self.state.state.load(Ordering::Acquire) {
            COMPLETE => Ok(EventStatus::Complete),
            FAILED => Err(self.state.error.lock().unwrap_or(ErrorKind::DeviceLost.into())),
            _ if self.engine.is_lost() => Err(ErrorKind::DeviceLost.into()),
            _ => Ok(EventStatus::Pending),
        }
    }

    pub(super) fn wait(&self, limit: Duration) -> Result<()> {
        let start = Instant::now();
        while self.status()? == EventStatus::Pending {
            let moved = self.engine.progress == Progress::OnWait && self.engine.step();
            if !moved {
                if start.elapsed() >= limit {
                    return Err(Error::timeout(limit));
                }
                crate::sync::pause();
            }
        }
        Ok(())
    }
}

struct Queued {
    queue: u64,
    order: QueueOrder,
    context: u64,
    after: Vec<Arc<EventState>>,
    event: Arc<EventState>,
    touches: Vec<Range<usize>>,
    /// Taken when it starts; an operation stays in the list until it has finished.
    work: Option<Box<dyn FnOnce() + Send>>,
    late: Option<Error>,
}

/// What a submission hands to the engine.
pub(super) struct Submission<'a> {
    pub(super) operation: Operation,
    pub(super) queue: u64,
    pub(super) order: QueueOrder,
    pub(super) context: u64,
    pub(super) bytes: usize,
    pub(super) after: &'a [MockEvent],
    pub(super) touches: Vec<Range<usize>>,
}

/// A block that is allocated and not freed.
struct Live {
    base: usize,
    layout: Layout,
    kind: AllocKind,
    context: u64,
}

impl Live {
    fn contains(&self, address: usize) -> bool {
        address >= self.base && address - self.base < self.layout.size()
    }
}

#[derive(Default)]
struct State {
    accounts: Vec<Arc<Account>>,
    contexts: usize,
    queued: Vec<Queued>,
    faults: Vec<Fault>,
    calls: Vec<Call>,
    violations: Vec<(usize, usize)>,
    live: Vec<Live>,
    /// Bases of blocks opened by an IPC handle.
    opened: Vec<usize>,
    /// In-order queues whose work failed, with the error that everything after it gets.
    failed: Vec<(u64, Error)>,
    random: u64,
    lost: bool,
}

/// The operation that runs; it ends, and its event tells how, when this is dropped, also by a panic.
struct Running<'e> {
    engine: &'e Engine,
    event: Arc<EventState>,
    in_order_queue: Option<u64>,
    outcome: Result<()>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let (Some(queue), Err(error)) = (self.in_order_queue, self.outcome) {
            self.engine.state.lock().failed.push((queue, error));
        }
        self.event.settle(self.outcome);
        let ended = |queued: &Queued| Arc::ptr_eq(&queued.event, &self.event);
        let gone = take_out(&mut self.engine.state.lock().queued, ended);
        drop(gone);
    }
}

/// One simulated driver.
pub(super) struct Engine {
    progress: Progress,
    state: Mutex<State>,
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

    /// The books of a device.
    pub(super) fn account(&self, ordinal: u32) -> Arc<Account> {
        let accounts = &mut self.state.lock().accounts;
        while accounts.len() <= ordinal as usize {
            accounts.push(Arc::new(Account::new()));
        }
        Arc::clone(&accounts[ordinal as usize])
    }

    pub(super) fn seed(&self, seed: u64) {
        self.state.lock().random = seed | 1;
    }

    pub(super) fn inject(&self, fault: Fault) {
        self.state.lock().faults.push(fault);
    }

    pub(super) fn lose(&self) {
        self.state.lock().lost = true;
    }

    fn is_lost(&self) -> bool {
        self.state.lock().lost
    }

    pub(super) fn queued(&self) -> usize {
        // What has run is taken out of the queue a moment after its event says so.
        let unfinished = |queued: &&Queued| queued.event.state.load(Ordering::Acquire) == PENDING;
        self.state.lock().queued.iter().filter(unfinished).count()
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.state.lock().calls.clone()
    }

    pub(super) fn violations(&self) -> Vec<(usize, usize)> {
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

    /// Logs a call; the error that is due, if any. A late fault is given back to be kept with the work.
    pub(super) fn call(&self, operation: Operation, bytes: usize, after: usize) -> Result<Option<Error>> {
        let mut state = self.state.lock();
        state.calls.push(Call { operation, bytes, after });
        if state.lost {
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
        let late = self.call(submission.operation, submission.bytes, submission.after.len())?;
        let state = Arc::new(EventState { state: AtomicU32::new(PENDING), error: Mutex::new(None) });
        #[cfg(loom)]
        state.state.store(PENDING, Ordering::Relaxed);
        let event = MockEvent { state: Arc::clone(&state), engine: Arc::clone(self) };
        self.state.lock().queued.push(Queued {
            queue: submission.queue,
            order: submission.order,
            context: submission.context,
            after: submission.after.iter().map(|event| Arc::clone(&event.state)).collect(),
            event: state,
            touches: submission.touches,
            work: Some(Box::new(work)),
            late,
        });
        if self.progress == Progress::Immediate {
            while self.step() {}
        }
        Ok(event)
    }

    /// Runs one operation whose dependencies are done. One thread at a time runs work.
    pub(super) fn step(&self) -> bool {
        let (work, event, poison, in_order_queue) = {
            let mut state = self.state.lock();
            if state.lost || state.queued.iter().any(|queued| queued.work.is_none()) {
                return false;
            }
            let ready: Vec<usize> =
                (0..state.queued.len()).filter(|index| is_ready(&state.queued, *index)).collect();
            if ready.is_empty() {
                return false;
            }
            // xorshift: any order that the rules allow is a legal execution.
            state.random ^= state.random << 13;
            state.random ^= state.random >> 7;
            state.random ^= state.random << 17;
            let pick = ready[(state.random % ready.len() as u64) as usize];
            let next = &mut state.queued[pick];
            // A failed dependency poisons what waits for it (contract, point 11).
            let poison = next.after.iter().find_map(|event| event.failure()).or(next.late);
            let in_order_queue = (next.order == QueueOrder::InOrder).then_some(next.queue);
            let (work, event) = (next.work.take(), Arc::clone(&next.event));
            let earlier = state.failed.iter().find(|(queue, _)| Some(*queue) == in_order_queue);
            (work, event, poison.or(earlier.map(|(_, error)| *error)), in_order_queue)
        };
        let mut running = Running { engine: self, event, in_order_queue, outcome: Ok(()) };
        match (poison, work) {
            (Some(error), _) => running.outcome = Err(error),
            (None, Some(work)) => {
                // What remains of it when the work panics.
                running.outcome = Err(ErrorKind::Native { operation: "a host task" }.into());
                work();
                running.outcome = Ok(());
            }
            (None, None) => {}
        }
        true
    }

    pub(super) fn allocate(&self, kind: AllocKind, layout: Layout, context: u64) -> Result<NonNull<u8>> {
        self.call(Operation::Allocate, layout.size(), 0)?;
        // SAFETY: the size is not zero (contract, point 1).
        let pointer = unsafe { alloc::alloc::alloc(layout) };
        let memory_type = crate::MemoryType::of(kind);
        let requested = layout.size() as u64;
        let pointer = NonNull::new(pointer).ok_or(ErrorKind::OutOfMemory { memory_type, requested })?;
        // Driver memory has arbitrary content; a test that relies on zeros shall fail.
        // SAFETY: fresh memory of that size.
        unsafe { pointer.as_ptr().write_bytes(0xCB, layout.size()) };
        self.state.lock().live.push(Live {
            base: pointer.as_ptr().expose_provenance(),
            layout,
            kind,
            context,
        });
        Ok(pointer)
    }

    /// # Safety
    /// As [`Backend::free`](crate::Backend::free).
    pub(super) unsafe fn free(&self, block: &Block) {
        let _ = self.call(Operation::Free, block.size, 0);
        let (start, end) = (block.address(), block.address() + block.size);
        let in_use = {
            let mut state = self.state.lock();
            state.live.retain(|live| live.base != start);
            // What has run is taken out of the queue a moment after its event says so.
            let running = |queued: &Queued| !queued.event.is_complete();
            let touches =
                |queued: &Queued| queued.touches.iter().any(|range| range.start < end && start < range.end);
            let in_use = !state.lost && state.queued.iter().any(|queued| touches(queued) && running(queued));
            if in_use {
                state.violations.push((start, block.size));
            }
            in_use
        };
        if in_use {
            return; // Reported; really freeing it would corrupt the test's own process.
        }
        // SAFETY: allocated here, exclusively ours now.
        unsafe { block.pointer.as_ptr().write_bytes(0xDE, block.size) };
        // SAFETY: size and alignment are those of the allocation.
        let layout = unsafe { Layout::from_size_align_unchecked(block.size, block.alignment) };
        // SAFETY: the caller's promise: from `allocate`, once.
        unsafe { alloc::alloc::dealloc(block.pointer.as_ptr(), layout) };
    }

    /// (base, size, kind) of the live block of `context` that contains `address`.
    pub(super) fn find(&self, address: usize, context: u64) -> Option<(usize, usize, AllocKind)> {
        let state = self.state.lock();
        let block = state.live.iter().find(|live| live.context == context && live.contains(address))?;
        Some((block.base, block.layout.size(), block.kind))
    }

    /// Opens the live block at `base`, whatever its context; false when there is none.
    pub(super) fn open_block(&self, base: usize) -> bool {
        let mut state = self.state.lock();
        let known = state.live.iter().any(|live| live.base == base);
        if known {
            state.opened.push(base);
        }
        known
    }

    pub(super) fn close_block(&self, base: usize) {
        let mut state = self.state.lock();
        if let Some(index) = state.opened.iter().position(|opened| *opened == base) {
            state.opened.swap_remove(index);
        }
    }

    pub(super) fn opened_blocks(&self) -> usize {
        self.state.lock().opened.len()
    }

    /// What is queued now: of one queue, or of all queues of a context.
    pub(super) fn outstanding(self: &Arc<Self>, context: u64, queue: Option<u64>) -> Vec<MockEvent> {
        let event =
            |queued: &Queued| MockEvent { state: Arc::clone(&queued.event), engine: Arc::clone(self) };
        let state = self.state.lock();
        let ours = |queued: &&Queued| queue.map_or(queued.context == context, |queue| queued.queue == queue);
        state.queued.iter().filter(ours).map(event).collect()
    }
}

impl Drop for Engine {
    /// What contexts gave up goes with the driver, as a process's memory goes with the process: no handle of it is left.
    fn drop(&mut self) {
        let mut state = self.state.lock();
        // Work that never ran first: it may own what it would have used.
        state.queued.clear();
        for live in core::mem::take(&mut state.live) {
            // SAFETY: allocated here with this layout, not freed, and every context that could name it is gone.
            unsafe { alloc::alloc::dealloc(core::ptr::with_exposed_provenance_mut(live.base), live.layout) };
        }
    }
}

fn is_ready(queued: &[Queued], index: usize) -> bool {
    let candidate = &queued[index];
    let first_of_queue = || queued[..index].iter().all(|earlier| earlier.queue != candidate.queue);
    let done = |event: &Arc<EventState>| event.state.load(Ordering::Acquire) != PENDING;
    candidate.after.iter().all(done) && (candidate.order == QueueOrder::OutOfOrder || first_of_queue())
}
