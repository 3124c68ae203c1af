//! Work in flight at the end of a program: two contexts with two queues each, and copies without a
//! wait.

use std::time::Duration;

use usm_core::backend::{Dyn, DynDevice};
use usm_core::{AllocKind, Allocation, Context, MemorySource, Queue, QueueOrder, Request, Result};

use crate::runtimes::Runtime;

/// Long enough to be in flight for a while.
const BYTES: usize = 4 << 20;
/// The wait limit with a device that never answers.
const SHORT: Duration = Duration::from_millis(300);

/// A queue with two blocks.
pub(crate) struct Lane {
    pub(crate) queue: Queue<Dyn>,
    pub(crate) dst: Allocation<Dyn>,
    pub(crate) src: Allocation<Dyn>,
}

/// Dropped in this order, as in Python: blocks in flight before their queues, queues before their
/// contexts.
pub(crate) struct Program {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) contexts: Vec<Context<Dyn>>,
    pub(crate) device: DynDevice,
    pub(crate) order: QueueOrder,
    /// Whether waits reach their limit.
    pub(crate) never_answers: bool,
}

/// A kind of memory that the device supports.
fn kind(context: &Context<Dyn>) -> AllocKind {
    let known = |kind: &AllocKind| !context.info().capabilities.of(*kind).is_empty();
    AllocKind::ALL.into_iter().find(known).expect("some kind of memory")
}

impl Lane {
    pub(crate) fn new(context: &Context<Dyn>, order: QueueOrder, bytes: usize) -> Result<Self> {
        let request = Request::new(kind(context), bytes);
        Ok(Self {
            queue: context.queue(order)?,
            dst: context.allocate(&request)?,
            src: context.allocate(&request)?,
        })
    }

    /// Submits a copy and does not wait.
    pub(crate) fn copy(&mut self) -> Result<()> {
        let bytes = self.dst.size();
        self.queue.copy_bytes(&mut self.dst, 0, &self.src, 0, bytes).map(drop)
    }
}

impl Program {
    pub(crate) fn start(runtime: &Runtime, order: QueueOrder) -> Self {
        let device = (runtime.device)();
        let contexts: Vec<_> = (0..2).map(|_| device.context().expect("a context")).collect();
        if runtime.never_answers {
            contexts.iter().for_each(|context| context.set_wait_limit(SHORT));
        }
        let lane = |context| Lane::new(context, order, BYTES).expect("a queue with memory");
        let lanes = contexts.iter().flat_map(|context| [lane(context), lane(context)]).collect();
        let mut program = Self { lanes, contexts, device, order, never_answers: runtime.never_answers };
        program.submit().expect("work");
        program
    }

    pub(crate) fn submit(&mut self) -> Result<()> {
        self.lanes.iter_mut().try_for_each(|lane| {
            lane.copy()?;
            lane.copy()
        })
    }

    /// Small lanes of the first context, one for each of some threads.
    pub(crate) fn small_lanes(&self, count: usize) -> Vec<Lane> {
        (0..count).map(|_| Lane::new(&self.contexts[0], self.order, 4096).expect("a small lane")).collect()
    }
}
