//! A backend for tests: asynchronous, deterministic, with fault injection, a call log and proof of
//! misuse.
//!
//! Work is queued and runs as the test chooses ([`Progress`]). An out-of-order queue runs it in any
//! order that the dependencies allow, chosen by a seed. [`Mock::violations`] reports calls that
//! break the promises of [`Backend`](crate::Backend)'s unsafe functions. Queue-allocated memory is
//! reused in the order of its queue, even before any work has run.

mod backend;
mod engine;
mod event;
mod script;
mod sharing;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub use backend::{MockBuffer, MockContext, MockDevice, MockQueue};
pub use engine::MockEvent;
pub use script::{Call, Fault, Operation, Progress};
pub use sharing::MockIpcMemory;

use crate::{BackendKind, Capabilities, DeviceInfo, DeviceType};
use engine::Engine;

/// The backend value: one simulated driver, shared by all its contexts.
#[derive(Clone, Debug)]
pub struct Mock {
    engine: Arc<Engine>,
    devices: Vec<DeviceInfo>,
    peer_access: bool,
}

impl Default for Mock {
    fn default() -> Self {
        Self::new(Progress::OnWait)
    }
}

impl Mock {
    /// A driver with one device of 1 GiB that runs work by `progress`.
    #[must_use]
    pub fn new(progress: Progress) -> Self {
        let mut info = DeviceInfo::new(BackendKind::Mock, DeviceType::Gpu, "mock device");
        info.global_mem_size = 1 << 30;
        info.max_alloc_size = 1 << 29;
        info.integrated = false;
        info.queue_memory = true;
        Self { engine: Arc::new(Engine::new(progress)), devices: alloc::vec![info], peer_access: true }
    }

    /// The same driver with its devices' descriptions changed: memory, limits, capabilities.
    #[must_use]
    pub fn with_device(mut self, change: impl Fn(&mut DeviceInfo)) -> Self {
        self.devices.iter_mut().for_each(change);
        self
    }

    /// The same driver with memory that host and device must not touch at the same time.
    #[must_use]
    pub fn without_concurrent_access(self) -> Self {
        self.with_device(|info| {
            let flags = crate::AccessFlags::ACCESS | crate::AccessFlags::ATOMIC;
            info.capabilities = Capabilities::uniform(flags);
        })
    }

    /// The same driver without memory in the order of queues.
    #[must_use]
    pub fn without_queue_memory(self) -> Self {
        self.with_device(|info| info.queue_memory = false)
    }

    /// The same driver with `count` devices.
    #[must_use]
    pub fn with_devices(mut self, count: u32) -> Self {
        let first = self.devices[0];
        self.devices = (0..count).map(|index| DeviceInfo { index, ordinal: index, ..first }).collect();
        self
    }

    /// The same driver with devices that do not reach each other's memory.
    #[must_use]
    pub fn without_peer_access(mut self) -> Self {
        self.peer_access = false;
        self
    }

    /// Sets the seed for the order of out-of-order work.
    pub fn seed(&self, seed: u64) {
        self.engine.seed(seed);
    }

    /// A context over the first device.
    ///
    /// # Panics
    /// When an injected fault forbids it.
    #[must_use]
    pub fn context(&self) -> crate::Context<Self> {
        crate::Context::new(self, &MockDevice::new(self, 0)).expect("no fault was injected for contexts")
    }

    /// Makes a later call fail.
    pub fn inject(&self, fault: Fault) {
        self.engine.inject(fault);
    }

    /// Loses the device: from now on no work completes and every call fails with `DeviceLost`.
    pub fn lose_device(&self) {
        self.engine.mark_lost();
    }

    /// Whether the work of a queue hangs: from now on it does not run, until a call with `false`.
    pub fn hang(&self, queue: &MockQueue, hangs: bool) {
        self.engine.hang(queue.id, hangs);
    }

    /// Runs at most one ready operation. Returns whether there was one.
    pub fn step(&self) -> bool {
        self.engine.step()
    }

    /// Runs all queued operations.
    pub fn finish(&self) {
        while self.step() {}
    }

    /// Number of queued operations.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.engine.queued()
    }

    /// Every call so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.engine.calls()
    }

    /// The misused ranges, as (address, bytes); empty in a sound program:
    ///
    /// - blocks freed while unfinished work uses them, twice, by another context, or not as they
    ///   were allocated; blocks exported after they were freed;
    /// - ranges of copies, fills and hints that lie outside live blocks, cross the end of a block,
    ///   belong to another context or are empty; ranges in which work conflicts with itself or with
    ///   unfinished work that it does not follow; fills whose pattern is not 1, 2, 4, 8 or 16 bytes
    ///   wide or does not divide the range;
    /// - queue-allocated memory accessed before its allocation has run or after its free, or freed
    ///   while work uses it;
    /// - address 0, for work that follows events of another driver.
    ///
    /// Refused work accesses nothing. The mock does not know what host tasks access, and it
    /// remembers freed blocks only for a while.
    #[must_use]
    pub fn violations(&self) -> Vec<(usize, usize)> {
        self.engine.violations()
    }

    /// Number of blocks that an IPC handle opened and that are not closed.
    #[must_use]
    pub fn opened_blocks(&self) -> usize {
        self.engine.opened_blocks()
    }

    /// Number of live contexts.
    #[must_use]
    pub fn contexts(&self) -> usize {
        self.engine.contexts()
    }

    /// Number of live blocks.
    #[must_use]
    pub fn live_blocks(&self) -> usize {
        self.engine.live_blocks()
    }
}
