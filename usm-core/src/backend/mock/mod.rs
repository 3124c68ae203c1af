//! A backend for tests: asynchronous, deterministic, with fault injection, a call log and proof of
//! misuse.
//!
//! Work is queued and runs when the test says so ([`Progress`]), on an out-of-order queue in any
//! order that the dependencies allow, chosen by a seed. [`Mock::violations`] reports calls that
//! break the promises of [`Backend`](crate::Backend)'s unsafe functions. Memory from a queue is
//! given out again in that queue's order, before anything has run.

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
    /// A driver with one device of 1 GiB that moves as `progress` says.
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

    /// Chooses another order of out-of-order work.
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

    /// From now on nothing completes and every call fails with `DeviceLost`.
    pub fn lose_device(&self) {
        self.engine.lose();
    }

    /// Runs at most one operation that is ready; whether there was one.
    pub fn step(&self) -> bool {
        self.engine.step()
    }

    /// Runs everything that is queued.
    pub fn finish(&self) {
        while self.step() {}
    }

    /// Operations that are queued.
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
    /// - blocks freed while work that has not ended uses them, twice, by another context, or not as
    ///   they were allocated; exported to others when they are gone;
    /// - ranges touched by copies, fills and hints where nothing is, where a block ends or of
    ///   another context; by work that conflicts with itself, or with other work that has not ended
    ///   and that it does not follow; of no bytes; filled with a pattern of another width than 1,
    ///   2, 4, 8 or 16 bytes, or one that does not divide them;
    /// - memory of queues, touched by work that runs before its allocation has run or after its
    ///   free, or freed while work uses it;
    /// - address 0, where work follows events of another driver.
    ///
    /// Work that was refused touches nothing. What host tasks touch is not known here, and freed
    /// blocks are remembered for a while only.
    #[must_use]
    pub fn violations(&self) -> Vec<(usize, usize)> {
        self.engine.violations()
    }

    /// Blocks that were opened by an IPC handle and not closed.
    #[must_use]
    pub fn opened_blocks(&self) -> usize {
        self.engine.opened_blocks()
    }

    /// Contexts that live.
    #[must_use]
    pub fn contexts(&self) -> usize {
        self.engine.contexts()
    }

    /// Blocks that are allocated and not freed.
    #[must_use]
    pub fn live_blocks(&self) -> usize {
        self.engine.live_blocks()
    }
}
