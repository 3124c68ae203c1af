//! Work whose completion is unknown.

use core::time::Duration;

use usm_core::{Backend, Device, ErrorKind, Event, Queue, QueueOrder, UsmVec};
use usm_cuda::Cuda;

use crate::driver::{Driver, count, fail, set};

/// Longer than any work takes.
const LONG: Duration = Duration::from_secs(60);

/// A fill whose event the driver refuses to record. No other CUDA operation can fail alone: one
/// that fails when it runs fails its whole context.
pub(crate) fn without_a_record<B: Backend + 'static>(queue: &Queue<B>) -> (Event<B>, Box<dyn FnOnce()>) {
    let mut array = UsmVec::<u8, Device, B>::uninit(queue.context(), 8).expect("memory");
    // SAFETY: nothing reads it.
    let memory = unsafe { array.allocation_mut() };
    fail("cuEventRecord=999");
    let lost = queue.fill_bytes(memory, 0, 8, &[1]);
    fail("");
    // Its completion is unknown, but while it runs the host must not access managed memory.
    let context = queue.context().clone();
    let ends = move || context.synchronize(LONG).expect("running work ends");
    (lost.expect("the fill is under way"), Box::new(ends))
}

/// Its memory is leaked, and the native context is not destroyed, which would free the memory.
#[test]
fn a_context_outlives_work_that_nobody_knows_the_end_of() {
    let Some(driver) = Driver::find_with("late", Cuda::open) else { return };
    let misuses = count("misuses");
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (lost, ends) = without_a_record(&queue);
    assert!(lost.status().is_err() && queue.barrier(&[]).is_err(), "later work fails too");
    drop((lost, ends, queue, context));
    assert_eq!(count("misuses"), misuses);
}

/// `CUDA_ERROR_DEVICE_UNAVAILABLE`: not a fault of the work, which would be permanent.
const UNAVAILABLE: i32 = 46;

/// With the names of the functions that record and create an event: a queue is dropped while its
/// work runs, and the driver refuses the event after that work.
fn reports_once(driver: &Driver, refusing: [&str; 2]) {
    for (order, refusing) in [QueueOrder::InOrder, QueueOrder::OutOfOrder]
        .into_iter()
        .flat_map(|order| refusing.map(|function| (order, function)))
    {
        let context = driver.context();
        let gone = |queue: Queue<Cuda>| {
            let mut array = UsmVec::<u8, Device, Cuda>::uninit(&context, 8).unwrap();
            // SAFETY: nothing reads it.
            let memory = unsafe { array.allocation_mut() };
            set("hold");
            let event = queue.fill_bytes(memory, 0, 8, &[1]).unwrap();
            fail(&format!("{refusing}={UNAVAILABLE}"));
            drop(queue);
            fail("");
            set("");
            // Its own event was made earlier.
            event.wait_for(LONG).unwrap();
            event
        };
        let tells = || match context.synchronize(LONG) {
            Ok(()) => false,
            Err(error) => {
                assert!(matches!(error.kind, ErrorKind::Native { .. }), "{error}");
                assert_eq!(error.native, Some(i64::from(UNAVAILABLE)), "{error}");
                true
            }
        };
        let first = gone(context.queue(order).unwrap());
        assert_eq!([tells(), tells(), tells()], [true, false, false], "{order:?}, {refusing}");
        context.pending(LONG).unwrap().wait(LONG).unwrap();
        // A live queue does not report it, and the next dropped queue reports again.
        let living = context.queue(order).unwrap();
        living.wait().unwrap();
        let second = gone(context.queue(order).unwrap());
        assert_eq!([tells(), tells()], [true, false], "{order:?}, {refusing}");
        living.wait().unwrap();
        drop((first, second));
    }
}

#[test]
fn a_context_tells_once_that_the_end_of_a_queue_is_not_known() {
    let Some(driver) = Driver::find() else { return };
    reports_once(&driver, ["cuEventRecord", "cuEventCreate"]);
}

#[test]
fn a_context_tells_once_that_the_end_of_a_queue_of_hip_is_not_known() {
    let Some(driver) = Driver::find_with("", Cuda::open_hip) else { return };
    reports_once(&driver, ["hipEventRecord", "hipEventCreateWithFlags"]);
}
