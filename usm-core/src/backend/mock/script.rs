//! A test's script for the simulated driver, and the calls that the driver records.

use crate::error::Error;

/// When queued work runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At submission.
    Immediate,
    /// While a caller waits.
    OnWait,
    /// Only when the test calls [`Mock::step`](super::Mock::step). A wait times out.
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
    /// An allocation in the order of a queue.
    AllocateInOrder,
    /// A free in the order of a queue.
    FreeInOrder,
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
    /// Enabling or disabling access to another device's memory.
    Peer,
}

/// One call, as logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The call.
    pub operation: Operation,
    /// Bytes, where the call has a size.
    pub bytes: usize,
    /// The events that the call waits for.
    pub after: usize,
}

/// Makes the call after the next `skip` calls of `operation` fail with `error`, once.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The call.
    pub operation: Operation,
    /// Number of its calls that still succeed.
    pub skip: usize,
    /// The error.
    pub error: Error,
    /// Fails when the work runs instead of when it is submitted (queued operations only).
    pub late: bool,
}
