//! Operations that make one call of a driver fail on demand. The error is the backend's.

use usm_core::{Error, MemAdvice, Queue, QueueOrder, Result, Shared, Strided, UsmVec};

use super::FailingDriver;

type Of<D> = Queue<<D as FailingDriver>::Backend>;
type Array<D> = UsmVec<u32, Shared, <D as FailingDriver>::Backend>;

/// An operation on a queue and an array of 64 elements.
pub type Step<D> = fn(&D, &Of<D>, &mut Array<D>) -> Result<(), Error>;

/// Fills the array.
pub fn fill<D: FailingDriver>(_: &D, queue: &Of<D>, array: &mut Array<D>) -> Result<()> {
    queue.fill(array, 1).map(drop)
}

/// Copies bytes inside the array.
pub fn copy_within<D: FailingDriver>(_: &D, queue: &Of<D>, array: &mut Array<D>) -> Result<()> {
    // SAFETY: every byte is initialised.
    let memory = unsafe { array.allocation_mut() };
    queue.copy_within(memory, 0, 64, 32).map(drop)
}

/// Copies rows: the upper halves of elements 0 to 19 become those of elements 32 to 51.
pub fn copy_rows<D: FailingDriver>(_: &D, queue: &Of<D>, array: &mut Array<D>) -> Result<()> {
    let to = Strided::new(2, 2, &[20], &[4])?;
    let from = Strided::new(130, 2, &[20], &[4])?;
    // SAFETY: every byte is initialised, and the memory keeps its place.
    let memory = unsafe { array.allocation_mut() };
    queue.copy_strided_within(memory, &to, &from).map(drop)
}

/// Advises that the device will use the array.
pub fn prefetch<D: FailingDriver>(_: &D, queue: &Of<D>, array: &mut Array<D>) -> Result<()> {
    queue.prefetch(array.allocation()).map(drop)
}

/// Advises that the array is read mostly.
pub fn advise<D: FailingDriver>(_: &D, queue: &Of<D>, array: &mut Array<D>) -> Result<()> {
    queue.advise(array.allocation(), MemAdvice::ReadMostly).map(drop)
}

/// Makes a barrier.
pub fn barrier<D: FailingDriver>(_: &D, queue: &Of<D>, _: &mut Array<D>) -> Result<()> {
    queue.barrier(&[]).map(drop)
}

/// Queries the runtime about an unknown address.
pub fn query_nothing<D: FailingDriver>(_: &D, queue: &Of<D>, _: &mut Array<D>) -> Result<()> {
    queue.context().query_runtime(77).map(drop)
}

/// Queries the runtime about the array.
pub fn query<D: FailingDriver>(_: &D, queue: &Of<D>, array: &mut Array<D>) -> Result<()> {
    queue.context().query_runtime(array.as_ptr() as usize).map(drop)
}

/// Queries the state of an operation.
pub fn status<D: FailingDriver>(_: &D, queue: &Of<D>, array: &mut Array<D>) -> Result<()> {
    queue.fill(array, 2)?.status().map(drop)
}

/// Makes a queue.
pub fn new_queue<D: FailingDriver>(_: &D, queue: &Of<D>, _: &mut Array<D>) -> Result<()> {
    queue.context().queue(QueueOrder::InOrder).map(drop)
}

/// Makes a context.
pub fn new_context<D: FailingDriver>(driver: &D, _: &Of<D>, _: &mut Array<D>) -> Result<()> {
    driver.context().map(drop)
}
