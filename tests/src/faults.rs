//! Tests a backend on a driver that fails on demand: every failure is an error with its code, and
//! no memory is lost or freed too early. All test drivers run the same cases; tests of one driver
//! are in its own file.

use core::time::Duration;

use usm_core::{
    AllocKind, Backend, Context, Device, Error, ErrorKind, Event, EventStatus, MemorySource, MemoryType,
    PointerInfo, Queue, QueueOrder, Request, Shared, UsmVec,
};

mod pool;
pub mod step;

pub use pool::a_pool_with_a_fault_anywhere_says_what_it_holds;
pub use step::Step;

/// Both orders that a queue may have.
pub const ORDERS: [QueueOrder; 2] = [QueueOrder::InOrder, QueueOrder::OutOfOrder];

/// Longer than any work takes.
const LONG: Duration = Duration::from_secs(20);

/// A test driver: how to make it fail, and its counters.
pub trait FailingDriver: Sized + 'static {
    /// The backend that calls it.
    type Backend: Backend;

    /// For each kind of memory: the allocating call and the code for "no memory".
    const NO_MEMORY: [(AllocKind, &'static str, i64); 3];
    /// Memory types unknown to the backend, in the driver's setting.
    const UNKNOWN_TYPES: [&'static str; 3];
    /// A code without a special meaning for the backend.
    const REFUSED: i64;
    /// A call by its name for the driver and in errors, and an operation that makes the call.
    const STEPS: &'static [(&'static str, &'static str, Step<Self>)];
    /// The driver calls of a round trip.
    const ROUND_TRIP: &'static [&'static str];
    /// The call that frees memory of a pool, and other calls that a pool makes.
    const OF_POOLS: &'static [&'static str];
    /// Whether memory that the driver refuses to free is counted as leaked. Where a free may answer
    /// with the failure of earlier work, the answer does not say whether the memory is free.
    const COUNTS_KEPT: bool;
    /// Calls of the round trip without which memory cannot be freed or completion cannot be
    /// observed. If one fails, the context keeps its objects.
    const KEPT_WITHOUT: &'static [&'static str];

    /// A context over its device.
    ///
    /// # Errors
    /// The driver's error, if a fault is planned.
    fn context(&self) -> usm_core::Result<Context<Self::Backend>>;

    /// Runs `body` with these faults.
    fn failing<T>(&self, faults: &str, body: impl FnOnce() -> T) -> T;

    /// Runs `body` while no work completes.
    fn held<T>(&self, body: impl FnOnce() -> T) -> T;

    /// The objects that live on its device, allocations first.
    fn objects(&self) -> Vec<u64>;

    /// Number of objects freed, destroyed or reset while work in flight referred to them.
    fn misuses(&self) -> u64;
}

/// The list of all cases: calls `$each!` with their names.
#[macro_export]
macro_rules! fault_cases {
    ($each:ident) => {
        $each! {
            out_of_memory_is_an_error_with_its_code
            an_unknown_memory_type_is_unknown_memory
            each_call_that_fails_is_named
            a_round_trip_with_a_fault_anywhere_loses_nothing
            what_is_not_ready_for_long_is_a_time_limit_and_is_kept
        }
    };
}

fn context<D: FailingDriver>(driver: &D) -> Context<D::Backend> {
    driver.context().expect("a context")
}

fn array<B: Backend>(queue: &Queue<B>) -> UsmVec<u32, Shared, B> {
    UsmVec::from_slice(queue, &[1; 64]).expect("an array")
}

/// The error has the requested kind and bytes; the ledger is unchanged.
pub fn out_of_memory_is_an_error_with_its_code<D: FailingDriver>(driver: &D) {
    let context = context(driver);
    for (kind, function, code) in D::NO_MEMORY {
        let refused =
            driver.failing(&format!("{function}={code}"), || context.allocate(&Request::new(kind, 100)));
        let error = refused.expect_err("no memory");
        let memory_type = MemoryType::try_from(kind).expect("a kind");
        assert_eq!(error.kind, ErrorKind::OutOfMemory { memory_type, requested: 100 });
        assert_eq!(error.native, Some(code));
        let backend = context.info().backend;
        let expected = format!("{backend}: out of memory: requested 100 bytes of usm_");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    assert_eq!(context.stats().sum.count, 0, "a failed allocation leaves no trace");
}

/// Includes a type of a later header, as memory of another library may have.
pub fn an_unknown_memory_type_is_unknown_memory<D: FailingDriver>(driver: &D) {
    let context = context(driver);
    let memory = context.allocate(&Request::new(AllocKind::Device, 64)).expect("memory");
    for kind in D::UNKNOWN_TYPES {
        driver.failing(&format!("memory-type={kind}"), || {
            let runtime = context.query_runtime(memory.as_ptr() as usize).expect("an answer");
            assert_eq!(runtime, PointerInfo::UNKNOWN);
            let ours = context.query(memory.as_ptr()).expect("an answer");
            assert_eq!((ours.kind, ours.size), (AllocKind::Device, 64), "the ledger has the requested size");
        });
    }
}

/// The error names the call and its code; the next call succeeds.
pub fn each_call_that_fails_is_named<D: FailingDriver>(driver: &D) {
    let context = context(driver);
    for order in ORDERS {
        let queue = context.queue(order).expect("a queue");
        let mut array = array(&queue);
        for (function, operation, step) in D::STEPS {
            queue.wait().expect("idle");
            let fault = format!("{function}={}", D::REFUSED);
            let error = driver.failing(&fault, || step(driver, &queue, &mut array)).expect_err(function);
            assert_eq!((error.kind, error.native), (ErrorKind::Native { operation }, Some(D::REFUSED)));
            step(driver, &queue, &mut array).expect("no fault any more");
        }
        let _ = queue.fill(&mut array, 5).expect("a fill");
        assert_eq!(array.read().expect("a view")[..], [5; 64]);
    }
}

/// The first, second, ... call of each function fails: the result is correct or an error. Every
/// object that can be freed is freed in the end; the rest is counted.
pub fn a_round_trip_with_a_fault_anywhere_loses_nothing<D: FailingDriver>(driver: &D) {
    let mut before = driver.objects();
    for (function, call) in D::ROUND_TRIP.iter().flat_map(|name| (1..5).map(move |call| (name, call))) {
        for order in ORDERS {
            let place = format!("{function} {call} {order:?}");
            let (outcome, leaked) =
                round_trip(driver, &format!("{function}={}@{call}", D::REFUSED), order, &place);
            match outcome {
                Ok(values) => assert_eq!(values, [1, 2, 3], "{place}"),
                Err(error) => assert_eq!(error.native, Some(D::REFUSED), "{place}: {error}"),
            }
            let left = driver.objects();
            assert_eq!(left[0] - before[0], leaked as u64, "{place}: what is not given back is counted");
            if D::KEPT_WITHOUT.contains(function) {
                // At most a block and its event: the round trip ends at its first failed call.
                let all = left.iter().zip(&before);
                assert!(
                    all.clone().all(|(left, before)| (*before..=before + 1).contains(left)),
                    "{place}: {all:?}"
                );
                before = left;
            } else {
                assert_eq!(left, before, "{place}");
            }
        }
    }
    assert_eq!(driver.misuses(), 0);
}

fn round_trip<D: FailingDriver>(
    driver: &D,
    fault: &str,
    order: QueueOrder,
    place: &str,
) -> (usm_core::Result<Vec<u32>>, usize) {
    let mut made = None;
    let outcome = driver.failing(fault, || {
        let context = made.insert(driver.context()?);
        let queue = context.queue(order)?;
        let other = context.queue(QueueOrder::OutOfOrder)?;
        let input = UsmVec::<u32, Shared, _>::from_slice(&queue, &[1, 2, 3])?;
        let mut device = UsmVec::<u32, Device, _>::zeroed(&other, 3)?;
        let _ = queue.copy(&mut device, &input)?;
        drop(input);
        device.to_vec(&other)
    });
    let Some(context) = made else { return (outcome, 0) };
    if let Err(error) = context.synchronize(LONG) {
        return (Err(error), context.stats().leaked);
    }
    context.collect();
    assert_eq!(context.deferred_frees(), 0, "{place}");
    (outcome, context.stats().leaked)
}

/// Work that outlasts the wait limit: its memory is not freed before completion, and the error
/// states the limit.
pub fn what_is_not_ready_for_long_is_a_time_limit_and_is_kept<D: FailingDriver>(driver: &D) {
    let context = context(driver);
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = array(&queue);
    queue.wait().expect("idle");
    context.set_wait_limit(Duration::from_millis(10));
    context.collect();
    let allocations = || driver.objects()[0];
    let before = allocations();
    driver.held(|| {
        let event = queue.fill(&mut array, 1).expect("a fill");
        assert_eq!(event.status(), Ok(EventStatus::Pending));
        let late = event.wait_for(Duration::from_millis(5)).expect_err("never").kind;
        assert_eq!(late, ErrorKind::Timeout { limit_ms: 5 });
        drop((array, event));
        assert_eq!((context.deferred_frees(), allocations()), (1, before));
    });
    // Once it completes, its memory is freed.
    context.synchronize(LONG).expect("idle");
    context.collect();
    assert_eq!((context.deferred_frees(), allocations()), (0, before - 1));
    assert_eq!(driver.misuses(), 0);
}

/// Checks that every call of a context with a lost device returns an error that `says` accepts, and
/// that memory of work in flight is not freed. The event belongs to an operation on `array`.
pub fn every_call_reports_the_failure<B: Backend>(
    queue: &Queue<B>,
    event: Event<B>,
    array: UsmVec<u32, Shared, B>,
    other: &mut UsmVec<u32, Shared, B>,
    says: impl Fn(Error),
) {
    let context = queue.context();
    says(event.wait_for(LONG).expect_err("a wait for the operation"));
    says(event.status().expect_err("the state of the operation"));
    says(queue.fill(other, 1).map(drop).expect_err("a fill of other memory"));
    says(queue.barrier(&[]).and_then(|event| event.wait()).expect_err("a barrier"));
    says(queue.wait().expect_err("a wait for the queue"));
    says(array.read().map(drop).expect_err("a view"));
    says(context.allocate(&Request::new(AllocKind::Device, 8)).map(drop).expect_err("an allocation"));
    says(context.synchronize(LONG).expect_err("a wait for the context"));
    drop((array, event));
    assert_eq!(context.deferred_frees(), 1, "whether the operation still runs is unknown");
}
