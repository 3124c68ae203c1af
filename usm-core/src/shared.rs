//! The bookkeeping that every context carries, whatever its backend.

use core::time::Duration;

use crate::backend::Block;
#[cfg(feature = "alloc")]
use crate::backend::PointerInfo;
use crate::error::Result;
use crate::gate::Gate;
use crate::history::{History, Observer, Operation, Record};
use crate::limits::{self, Fallback};
#[cfg(feature = "alloc")]
use crate::registry::Blocks;
use crate::stats::{Ledger, Stats};
use crate::sync::{AtomicU32, Mutex, Ordering, next_id};
use crate::{DeviceInfo, MemoryType};

/// Waits give up after this long unless the context says otherwise.
pub const DEFAULT_WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Statistics, history, limits, registry and gate of one context. Backends embed one in their context.
#[derive(Debug)]
pub struct Shared {
    id: u64,
    info: DeviceInfo,
    books: Mutex<Books>,
    history: History,
    gate: Gate,
    wait_limit_ms: AtomicU32,
}

/// What one lock protects: an allocation and its free take it three times together, which costs less than a dozen atomics,
/// and every number that is read belongs to one moment.
#[derive(Debug)]
struct Books {
    ledger: Ledger,
    #[cfg(feature = "alloc")]
    blocks: Blocks,
    /// Bytes that count against device memory, reserved before the driver is asked so that two threads cannot both
    /// pass the limit.
    device_bytes: usize,
}

impl Books {
    fn unreserve(&mut self, bytes: usize) {
        self.device_bytes = self.device_bytes.saturating_sub(bytes);
    }
}

impl Shared {
    /// Bookkeeping of a new context over the device that `info` describes.
    #[must_use]
    pub fn new(info: DeviceInfo) -> Self {
        Self {
            id: next_id(),
            info,
            books: Mutex::new(Books {
                ledger: Ledger::new(),
                #[cfg(feature = "alloc")]
                blocks: Blocks::new(),
                device_bytes: 0,
            }),
            history: History::from_environment(),
            gate: Gate::new(),
            wait_limit_ms: AtomicU32::new(DEFAULT_WAIT_LIMIT.as_millis() as u32),
        }
    }

    /// Id of the context, unique in the process.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The device.
    #[must_use]
    pub const fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(crate) fn gate(&self) -> Option<&Gate> {
        self.info.capabilities.needs_gate().then_some(&self.gate)
    }

    /// How long waits inside views and drops last at most.
    #[must_use]
    pub fn wait_limit(&self) -> Duration {
        Duration::from_millis(u64::from(self.wait_limit_ms.load(Ordering::Relaxed)))
    }

    pub(crate) fn set_wait_limit(&self, limit: Duration) {
        let limit_ms = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
        self.wait_limit_ms.store(limit_ms, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        self.books.lock().ledger.snapshot()
    }

    pub(crate) fn set_observer(&self, observer: Option<Observer>) {
        self.history.set_observer(observer);
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    /// The live block of this context that contains `address`.
    #[cfg(feature = "alloc")]
    pub(crate) fn find(&self, address: usize) -> Option<PointerInfo> {
        self.books.lock().blocks.find(address)
    }

    /// Applies the limits and reserves the bytes; [`unreserve`](Self::unreserve) when the driver then refuses.
    pub(crate) fn reserve(
        &self,
        memory_type: MemoryType,
        bytes: usize,
        fallback: Fallback,
    ) -> Result<MemoryType> {
        let mut books = self.books.lock();
        let placed = limits::place(&self.info, books.device_bytes as u64, memory_type, bytes, fallback)?;
        if placed.on_device() {
            // Cannot overflow: `place` bounded the sum by the memory's size, and addresses are distinct.
            books.device_bytes = books.device_bytes.saturating_add(bytes);
        }
        Ok(placed)
    }

    pub(crate) fn unreserve(&self, memory_type: MemoryType, bytes: usize) {
        if memory_type.on_device() {
            self.books.lock().unreserve(bytes);
        }
    }

    /// Accounts for a block that the driver gave.
    pub(crate) fn allocated(&self, memory_type: MemoryType, block: Option<&Block>, bytes: usize) {
        let (current, peak) = {
            let mut books = self.books.lock();
            #[cfg(feature = "alloc")]
            if let Some(block) = block {
                books.blocks.insert(self.describe(block));
            }
            books.ledger.add(memory_type, bytes)
        };
        self.tell(Operation::Allocate, memory_type, block, bytes, (current, peak));
    }

    /// Accounts for a block that somebody else allocated: it exists, so no limit refuses it.
    pub(crate) fn taken(&self, block: &Block) {
        let memory_type = MemoryType::of(block.kind);
        if memory_type.on_device() {
            let mut books = self.books.lock();
            books.device_bytes = books.device_bytes.saturating_add(block.size);
        }
        self.allocated(memory_type, Some(block), block.size);
    }

    /// Takes a block out of the books and gives it back by `free`. The books come first: the runtime may give the address out again at once.
    /// The reservation goes last, so that what the next allocation is granted is really there.
    pub(crate) fn free(
        &self,
        memory_type: MemoryType,
        block: Option<&Block>,
        bytes: usize,
        free: impl FnOnce(),
    ) {
        let (current, peak) = {
            let mut books = self.books.lock();
            #[cfg(feature = "alloc")]
            if let Some(block) = block {
                books.blocks.remove(block.address());
            }
            books.ledger.remove(memory_type, bytes)
        };
        self.tell(Operation::Free, memory_type, block, bytes, (current, peak));
        free();
        self.unreserve(memory_type, bytes);
    }

    #[cfg(feature = "alloc")]
    pub(crate) fn leaked(&self) {
        self.books.lock().ledger.leak();
    }

    fn tell(
        &self,
        operation: Operation,
        memory_type: MemoryType,
        block: Option<&Block>,
        bytes: usize,
        (current, peak): (usize, usize),
    ) {
        let address = block.map_or(0, Block::address);
        self.history.record(Record { operation, memory_type, address, bytes, current, peak });
    }

    /// What the books say of a block of this context.
    #[cfg(feature = "alloc")]
    pub(crate) fn describe(&self, block: &Block) -> PointerInfo {
        PointerInfo {
            kind: block.kind,
            base: block.address(),
            size: block.size,
            device: (block.kind != crate::AllocKind::Host).then_some(self.info.ordinal),
            context: self.id,
        }
    }
}
