//! The state of the simulated driver: operations, memory, and misuse.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::ops::Range;

use crate::AllocKind;
use crate::backend::QueueOrder;
use crate::backend::mock::script::{Call, Fault, Operation, Progress};
use crate::error::{Error, ErrorKind, Result};
use crate::ledger::Ledger;
use crate::sync::{AtomicU32, Mutex, Ordering};

/// One simulated driver.
pub(in crate::backend::mock) struct Engine {
    pub(super) progress: Progress,
    pub(super) state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) ledgers: Vec<Arc<Ledger>>,
    pub(super) contexts: usize,
    pub(super) operations: Vec<QueuedOperation>,
    pub(super) faults: Vec<Fault>,
    pub(super) calls: Vec<Call>,
    pub(super) violations: Vec<Violation>,
    pub(super) live: Vec<Live>,
    pub(super) chunks: Vec<Chunk>,
    pub(super) quarantine: Quarantine,
    /// Bases of blocks opened by an IPC handle.
    pub(super) opened_bases: Vec<usize>,
    /// In-order queues whose work failed, with the error that all later work gets.
    pub(super) failed_queues: Vec<(u64, Error)>,
    /// Queues whose work does not run.
    pub(super) hung_queues: Vec<u64>,
    pub(super) random: u64,
    pub(super) is_lost: bool,
}

pub(super) struct QueuedOperation {
    pub(super) queue: u64,
    pub(super) order: QueueOrder,
    pub(super) context: u64,
    pub(super) after: Vec<Arc<EventState>>,
    pub(super) event: Arc<EventState>,
    pub(super) touches: Vec<Touch>,
    /// The queue-allocated blocks that it accesses.
    pub(super) lives: Vec<Arc<Life>>,
    /// The queue-allocated block that it frees.
    pub(super) ends: Option<Arc<Life>>,
    /// Taken when the operation starts. The operation stays in the list until it has finished.
    pub(super) work: Option<Box<dyn FnOnce() + Send>>,
    pub(super) delayed_error: Option<Error>,
}

/// A submission to the engine.
pub(in crate::backend::mock) struct Submission<'a> {
    pub(in crate::backend::mock) operation: Operation,
    pub(in crate::backend::mock) queue: u64,
    pub(in crate::backend::mock) order: QueueOrder,
    pub(in crate::backend::mock) context: u64,
    pub(in crate::backend::mock) bytes: usize,
    pub(in crate::backend::mock) after: &'a [MockEvent],
    pub(in crate::backend::mock) touches: Vec<Touch>,
}

/// The completion of one queued operation. The queued operation holds only the state: an event held
/// by the driver must not hold the driver, or work that never runs would keep both alive.
#[derive(Clone)]
pub struct MockEvent {
    pub(in crate::backend::mock) state: Arc<EventState>,
    pub(in crate::backend::mock) engine: Arc<Engine>,
}

const PENDING: u32 = 0;
const COMPLETE: u32 = 1;
const FAILED: u32 = 2;

/// The state of one operation.
pub(in crate::backend::mock) struct EventState {
    state: AtomicU32,
    error: Mutex<Option<Error>>,
}

impl EventState {
    pub(in crate::backend::mock) fn pending() -> Arc<Self> {
        Self::new(PENDING)
    }

    pub(in crate::backend::mock) fn complete() -> Arc<Self> {
        Self::new(COMPLETE)
    }

    fn new(state: u32) -> Arc<Self> {
        let event = Arc::new(Self { state: AtomicU32::new(state), error: Mutex::new(None) });
        #[cfg(loom)]
        event.state.store(state, Ordering::Relaxed);
        event
    }

    /// The error of an operation that ran and failed.
    pub(in crate::backend::mock) fn failure(&self) -> Option<Error> {
        *self.error.lock()
    }

    pub(in crate::backend::mock) fn is_pending(&self) -> bool {
        self.state.load(Ordering::Acquire) == PENDING
    }

    pub(in crate::backend::mock) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Acquire) == COMPLETE
    }

    /// None while it is pending.
    pub(in crate::backend::mock) fn outcome(&self) -> Option<Result<()>> {
        match self.state.load(Ordering::Acquire) {
            PENDING => None,
            COMPLETE => Some(Ok(())),
            _ => Some(Err(self.failure().unwrap_or(ErrorKind::DeviceLost.into()))),
        }
    }

    pub(in crate::backend::mock) fn finish(&self, outcome: Result<()>) {
        match outcome {
            Ok(()) => self.state.store(COMPLETE, Ordering::Release),
            Err(error) => {
                *self.error.lock() = Some(error);
                self.state.store(FAILED, Ordering::Release);
            }
        }
    }
}

/// Address and length in bytes of the misused range.
pub(super) type Violation = (usize, usize);

/// A range that an operation accesses.
#[derive(Clone, Debug)]
pub(in crate::backend::mock) struct Touch {
    pub(super) range: Range<usize>,
    pub(super) writes: bool,
}

impl Touch {
    pub(in crate::backend::mock) fn read(pointer: *const u8, len: usize) -> Self {
        Self { range: pointer.addr()..pointer.addr().saturating_add(len), writes: false }
    }

    pub(in crate::backend::mock) fn write(pointer: *const u8, len: usize) -> Self {
        Self { writes: true, ..Self::read(pointer, len) }
    }

    pub(super) fn conflicts(&self, other: &Self) -> bool {
        (self.writes || other.writes) && ranges_overlap(&self.range, &other.range)
    }

    pub(super) fn violation(&self) -> Violation {
        (self.range.start, self.range.len())
    }
}

pub(super) fn ranges_overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

pub(super) fn lies_in(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// A live block.
pub(super) struct Live {
    pub(super) base: usize,
    pub(super) layout: Layout,
    pub(super) kind: AllocKind,
    pub(super) context: u64,
    /// Whether the block belongs to a buffer, which has no address for the program.
    pub(super) opaque: bool,
    /// Set for a block that a queue allocated.
    pub(super) life: Option<Arc<Life>>,
}

/// The blocks freed last. They are not reused for a while, so that an access to them is detected.
#[derive(Default)]
pub(super) struct Quarantine(pub(super) VecDeque<(usize, Layout)>);

impl Quarantine {
    /// Valgrind keeps freed blocks itself.
    const MOST: usize = if cfg!(usm_valgrind) { 0 } else { 64 };
    /// Larger blocks are freed at once. Bytes.
    const LARGEST: usize = 16 << 10;

    /// Adds a block. Returns the block to free in its place, if any.
    pub(super) fn push(&mut self, base: usize, layout: Layout) -> Option<(usize, Layout)> {
        if layout.size() > Self::LARGEST {
            return Some((base, layout));
        }
        self.0.push_back((base, layout));
        if self.0.len() > Self::MOST { self.0.pop_front() } else { None }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(usize, Layout)> {
        self.0.iter()
    }
}

/// The period in which work may access a queue-allocated block.
pub(super) struct Life {
    pub(super) block: Range<usize>,
    pub(super) begins: Arc<EventState>,
    /// Set once the free is submitted.
    pub(super) ends: Mutex<Option<Arc<EventState>>>,
}

impl Life {
    /// Whether an access is allowed now.
    pub(super) fn is_accessible(&self) -> bool {
        self.begins.is_complete() && !self.ends.lock().as_ref().is_some_and(|end| end.is_complete())
    }

    pub(super) fn violation(&self) -> Violation {
        (self.block.start, self.block.len())
    }
}

/// Memory that a queue freed. The same in-order queue may reuse it at once, other queues once the
/// free has run.
pub(super) struct Chunk {
    pub(super) base: usize,
    pub(super) layout: Layout,
    /// 0 when out of order.
    pub(super) queue: u64,
    pub(super) free_event: Arc<EventState>,
}

impl Chunk {
    pub(super) fn can_serve(&self, layout: Layout, queue: u64) -> bool {
        let fits = self.layout.size() == layout.size() && self.layout.align() >= layout.align();
        let in_order = queue != 0 && self.queue == queue && self.free_event.failure().is_none();
        fits && (in_order || self.free_event.is_complete())
    }
}

impl Live {
    pub(super) fn range(&self) -> Range<usize> {
        self.base..self.base + self.layout.size()
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        address >= self.base && address - self.base < self.layout.size()
    }
}
