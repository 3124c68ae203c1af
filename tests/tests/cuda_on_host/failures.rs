//! What becomes of work whose end nobody can know.

use core::time::Duration;

use usm_core::backend::cuda::Cuda;
use usm_core::{Backend, Device, Event, Queue, QueueOrder, UsmVec};

use crate::driver::{Driver, count, fail};

/// Longer than any work takes.
const LONG: Duration = Duration::from_secs(60);

/// A fill whose event the driver refuses to record: the only operation of CUDA that can fail alone, since one that runs and fails takes its
/// context along.
pub(crate) fn without_a_record<B: Backend + 'static>(queue: &Queue<B>) -> (Event<B>, Box<dyn FnOnce()>) {
    let mut array = UsmVec::<u8, Device, B>::uninit(queue.context(), 8).expect("memory");
    // SAFETY: nothing reads it.
    let memory = unsafe { array.allocation_mut() };
    fail("cuEventRecord=999");
    let lost = queue.fill_bytes(memory, 0, 8, &[1]);
    fail("");
    // Nobody knows that it ends, but while it runs the host is kept from all managed memory.
    let context = queue.context().clone();
    let ends = move || context.synchronize(LONG).expect("what runs ends");
    (lost.expect("the fill is under way"), Box::new(ends))
}

/// Its memory is leaked, and the native context, which that would go with, is not destroyed before.
#[test]
fn a_context_outlives_work_that_nobody_knows_the_end_of() {
    let Some(driver) = Driver::here_as("late", Cuda::open) else { return };
    let misuses = count("misuses");
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (lost, ends) = without_a_record(&queue);
    assert!(lost.status().is_err() && queue.barrier(&[]).is_err(), "what comes after it fails too");
    drop((lost, ends, queue, context));
    assert_eq!(count("misuses"), misuses);
}
