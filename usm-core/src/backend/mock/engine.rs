//! The simulated driver: a list of queued operations, the rules of order, faults and the log.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::fmt;
use core::ops::Range;
use core::panic::AssertUnwindSafe;
use core::ptr::NonNull;
use std::panic::{catch_unwind, resume_unwind};

use super::event::{EventState, MockEvent};
use super::script::{Call, Fault, Operation, Progress};
use crate::AllocKind;
use crate::account::Account;
use crate::backend::{Block, QueueOrder};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::{Mutex, take_out};

struct Queued {
    queue: u64,
    order: QueueOrder,
    context: u64,
    after: Vec<Arc<EventState>>,
    event: Arc<EventState>,
    touches: Vec<Range<usize>>,
    /// Blocks of queues that it touches.
    lives: Vec<Arc<Life>>,
    /// The block of a queue that it frees.
    ends: Option<Arc<Life>>,
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
    /// Of a block that a queue allocated.
    life: Option<Arc<Life>>,
}

/// From when to when work may touch a block of a queue.
pub(super) struct Life {
    block: Range<usize>,
    begins: Arc<EventState>,
    /// There once the free was submitted.
    ends: Mutex<Option<Arc<EventState>>>,
}

impl Life {
    /// Whether it may be touched now.
    fn is_on(&self) -> bool {
        self.begins.is_complete() && !self.ends.lock().as_ref().is_some_and(|end| end.is_complete())
    }

    fn violation(&self) -> (usize, usize) {
        (self.block.start, self.block.len())
    }
}

/// Memory that a queue freed and that is given out again: at once to what the same queue allocates, if it is in order, to others once the free
/// has run.
struct Chunk {
    base: usize,
    layout: Layout,
    /// 0 when out of order.
    queue: u64,
    freed: Arc<EventState>,
}

impl Chunk {
    fn serves(&self, layout: Layout, queue: u64) -> bool {
        let fits = self.layout.size() == layout.size() && self.layout.align() >= layout.align();
        let in_order = queue != 0 && self.queue == queue && self.freed.failure().is_none();
        fits && (in_order || self.freed.is_complete())
    }
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
    chunks: Vec<Chunk>,
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

    pub(super) fn is_lost(&self) -> bool {
        self.state.lock().lost
    }

    pub(super) fn queued(&self) -> usize {
        // What has run is taken out of the queue a moment after its event says so.
        let unfinished = |queued: &&Queued| queued.event.is_pending();
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
        Ok(self.enqueue(submission, late, EventState::pending(), None, work))
    }

    fn enqueue(
        self: &Arc<Self>,
        submission: Submission<'_>,
        late: Option<Error>,
        event: Arc<EventState>,
        ends: Option<Arc<Life>>,
        work: impl FnOnce() + Send + 'static,
    ) -> MockEvent {
        let handle = MockEvent { state: Arc::clone(&event), engine: Arc::clone(self) };
        {
            let mut state = self.state.lock();
            let lives = state.lives(&submission.touches);
            state.queued.push(Queued {
                queue: submission.queue,
                order: submission.order,
                context: submission.context,
                after: submission.after.iter().map(|event| Arc::clone(&event.state)).collect(),
                event,
                touches: submission.touches,
                lives,
                ends,
                work: Some(Box::new(work)),
                late,
            });
        }
        if self.progress == Progress::Immediate {
            self.run_ready(&handle.state);
        }
        handle
    }

    /// Runs whatever is ready. A task that panics ends none of the others, and its event says so; the panic goes on here where the task is that of
    /// the operation which is just being submitted, as if it had been called.
    fn run_ready(&self, submitted: &EventState) {
        let mut panicked = None;
        loop {
            let ours_before = submitted.is_pending();
            match catch_unwind(AssertUnwindSafe(|| self.step())) {
                Ok(true) => {}
                Ok(false) => break,
                Err(panic) if ours_before && submitted.failure().is_some() => panicked = Some(panic),
                Err(_) => {}
            }
        }
        if let Some(panic) = panicked {
            resume_unwind(panic);
        }
    }

    /// As [`step`](Self::step), where work runs while somebody waits.
    pub(super) fn step_for_a_wait(&self) -> bool {
        self.progress == Progress::OnWait && self.step()
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
            if poison.is_none() {
                let wrong = state.misused_by(pick);
                state.violations.extend(wrong);
            }
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
        if layout.size() == 0 {
            return Err(ErrorKind::ZeroSize.into());
        }
        // SAFETY: the size is not zero.
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
            life: None,
        });
        Ok(pointer)
    }

    /// Memory whose content comes to life in the order of the queue.
    pub(super) fn allocate_in_order(
        self: &Arc<Self>,
        queue: u64,
        order: QueueOrder,
        context: u64,
        layout: Layout,
    ) -> Result<(NonNull<u8>, MockEvent)> {
        let late = self.call(Operation::AllocateInOrder, layout.size(), 0)?;
        if layout.size() == 0 {
            return Err(ErrorKind::ZeroSize.into());
        }
        let (begins, in_order) =
            (EventState::pending(), if order == QueueOrder::InOrder { queue } else { 0 });
        let pointer = {
            let mut state = self.state.lock();
            let chunk = state.chunks.iter().position(|chunk| chunk.serves(layout, in_order));
            let (pointer, layout) = match chunk.map(|index| state.chunks.swap_remove(index)) {
                Some(chunk) => (core::ptr::with_exposed_provenance_mut(chunk.base), chunk.layout),
                // SAFETY: the size is not zero.
                None => (unsafe { alloc::alloc::alloc(layout) }, layout),
            };
            let (memory_type, requested) = (crate::MemoryType::UsmDevice, layout.size() as u64);
            let pointer = NonNull::new(pointer).ok_or(ErrorKind::OutOfMemory { memory_type, requested })?;
            let base = pointer.as_ptr().expose_provenance();
            let life = Arc::new(Life {
                block: base..base + layout.size(),
                begins: Arc::clone(&begins),
                ends: Mutex::new(None),
            });
            let kind = AllocKind::Device;
            state.live.push(Live { base, layout, kind, context, life: Some(life) });
            pointer
        };
        let submission = Submission {
            operation: Operation::AllocateInOrder,
            queue,
            order,
            context,
            bytes: layout.size(),
            after: &[],
            touches: Vec::new(),
        };
        let event = self.enqueue(submission, late, begins, None, overwrite(pointer, layout.size(), 0xCB));
        Ok((pointer, event))
    }

    /// Whoever allocates from the same in-order queue may be given the memory from now on.
    ///
    /// # Safety
    /// As [`QueueMemory::free`](crate::backend::QueueMemory::free).
    pub(super) unsafe fn free_in_order(
        self: &Arc<Self>,
        queue: u64,
        order: QueueOrder,
        context: u64,
        block: &Block,
        after: &[MockEvent],
    ) -> Result<()> {
        let late = self.call(Operation::FreeInOrder, block.size, after.len())?;
        let freed = EventState::pending();
        let life = {
            let mut state = self.state.lock();
            let live = state.live.iter().position(|live| live.base == block.address() && live.life.is_some());
            let Some(live) = live.map(|index| state.live.swap_remove(index)) else {
                state.violations.push((block.address(), block.size));
                return Ok(());
            };
            if let Some(life) = &live.life {
                *life.ends.lock() = Some(Arc::clone(&freed));
            }
            let queue = if order == QueueOrder::InOrder { queue } else { 0 };
            let (base, layout) = (live.base, live.layout);
            state.chunks.push(Chunk { base, layout, queue, freed: Arc::clone(&freed) });
            live.life
        };
        let submission = Submission {
            operation: Operation::FreeInOrder,
            queue,
            order,
            context,
            bytes: block.size,
            after,
            touches: Vec::new(),
        };
        self.enqueue(submission, late, freed, life, overwrite(block.pointer, block.size, 0xDE));
        Ok(())
    }

    /// # Safety
    /// As [`Backend::free`](crate::Backend::free).
    pub(super) unsafe fn free(&self, block: &Block) {
        let _ = self.call(Operation::Free, block.size, 0);
        let (start, end) = (block.address(), block.address() + block.size);
        let in_use = {
            let mut state = self.state.lock();
            let live = state.live.iter().position(|live| live.base == start);
            let live = live.map(|index| state.live.swap_remove(index));
            // What has run is taken out of the queue a moment after its event says so.
            let running = |queued: &Queued| !queued.event.is_complete();
            let touches =
                |queued: &Queued| queued.touches.iter().any(|range| range.start < end && start < range.end);
            let in_use = !state.lost && state.queued.iter().any(|queued| touches(queued) && running(queued));
            if in_use {
                state.violations.push((start, block.size));
            } else if let Some(Live { base, layout, life: Some(_), .. }) = live {
                // Memory of a queue goes back to where it came from.
                state.chunks.push(Chunk { base, layout, queue: 0, freed: EventState::complete() });
                return;
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
        let live = core::mem::take(&mut state.live).into_iter().map(|live| (live.base, live.layout));
        let chunks = core::mem::take(&mut state.chunks).into_iter().map(|chunk| (chunk.base, chunk.layout));
        for (base, layout) in live.chain(chunks) {
            // SAFETY: allocated here with this layout, not freed, and every context that could name it is gone.
            unsafe { alloc::alloc::dealloc(core::ptr::with_exposed_provenance_mut(base), layout) };
        }
    }
}

impl State {
    /// The blocks of queues that work over these ranges touches. Memory that a queue has freed belongs to nobody.
    fn lives(&mut self, touches: &[Range<usize>]) -> Vec<Arc<Life>> {
        let meets = |block: &Range<usize>| {
            touches.iter().any(|range| range.start < block.end && block.start < range.end)
        };
        let lives: Vec<_> =
            self.live.iter().filter_map(|live| live.life.clone()).filter(|life| meets(&life.block)).collect();
        let freed = self.chunks.iter().map(|chunk| chunk.base..chunk.base + chunk.layout.size());
        self.violations.extend(freed.filter(meets).map(|block| (block.start, block.len())));
        lives
    }

    /// The blocks of queues that an operation must not touch, or free, now.
    fn misused_by(&self, index: usize) -> Vec<(usize, usize)> {
        let running = &self.queued[index];
        let mut wrong: Vec<_> =
            running.lives.iter().filter(|life| !life.is_on()).map(|life| life.violation()).collect();
        if let Some(ends) = &running.ends {
            let uses = |queued: &Queued| queued.lives.iter().any(|life| Arc::ptr_eq(life, ends));
            let in_use = self.queued.iter().any(|queued| uses(queued) && !queued.event.is_complete());
            wrong.extend((!ends.begins.is_complete() || in_use).then(|| ends.violation()));
        }
        wrong
    }
}

/// Work that makes memory's content arbitrary: a test that relies on it shall fail.
fn overwrite(pointer: NonNull<u8>, len: usize, byte: u8) -> impl FnOnce() + Send + 'static {
    let base = pointer.as_ptr().expose_provenance();
    move || {
        let pointer: *mut u8 = core::ptr::with_exposed_provenance_mut(base);
        // SAFETY: memory of that size, which goes with the engine; in the order of its queue nobody else touches it now.
        unsafe { pointer.write_bytes(byte, len) };
    }
}

fn is_ready(queued: &[Queued], index: usize) -> bool {
    let candidate = &queued[index];
    let first_of_queue = || queued[..index].iter().all(|earlier| earlier.queue != candidate.queue);
    let done = |event: &Arc<EventState>| !event.is_pending();
    candidate.after.iter().all(done) && (candidate.order == QueueOrder::OutOfOrder || first_of_queue())
}
