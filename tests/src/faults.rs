//! What a driver that fails on demand shows of its backend: every failure is an error with its
//! code, and nothing is lost or freed too early. The cases are the same for every driver of the
//! tests; what is special about one stays beside it.

use core::time::Duration;

use usm_core::{
    AllocKind, Backend, Context, Device, Error, ErrorKind, Event, EventStatus, MemorySource, MemoryType,
    PointerInfo, Queue, QueueOrder, Request, Shared, UsmVec,
};

pub mod step;

pub use step::Step;

/// Both orders that a queue may have.
pub const ORDERS: [QueueOrder; 2] = [QueueOrder::InOrder, QueueOrder::OutOfOrder];

/// Longer than any work takes.
const LONG: Duration = Duration::from_secs(20);

/// A driver of the tests: how to let it fail, and what it counts.
pub trait FailingDriver: Sized + 'static {
    /// The backend that calls it.
    type Backend: Backend;

    /// Calls that allocate, and the code for "no memory": one of each kind.
    const NO_MEMORY: [(AllocKind, &'static str, i64); 3];
    /// Types of memory that the backend does not know, as the driver is told them.
    const UNKNOWN_TYPES: [&'static str; 3];
    /// A code that is none of those which the backend knows by a meaning.
    const REFUSED: i64;
    /// What makes a call fail: its name for the driver and for the error, and an operation that
    /// makes it.
    const STEPS: &'static [(&'static str, &'static str, Step<Self>)];
    /// Calls that a round trip makes, by their names for the driver.
    const ROUND_TRIP: &'static [&'static str];
    /// Those of them without which nothing is given back and no end of work is seen: what the
    /// context has then stays where it is.
    const KEPT_WITHOUT: &'static [&'static str];

    /// A context over its device.
    ///
    /// # Errors
    /// The driver's, which may have been told to fail.
    fn context(&self) -> usm_core::Result<Context<Self::Backend>>;

    /// Runs `body` while these faults are on.
    fn failing<T>(&self, faults: &str, body: impl FnOnce() -> T) -> T;

    /// Runs `body` while no work ends.
    fn held<T>(&self, body: impl FnOnce() -> T) -> T;

    /// Allocations, which come first, and other objects that live on its device.
    fn objects(&self) -> Vec<u64>;

    /// How often something was freed, destroyed or reset that work in flight referred to.
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

/// With the requested kind and bytes; the ledger is unchanged.
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

/// Also a type that later headers have: memory of others, imported.
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

/// The error names the call and has its code; the call after it goes well.
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

/// The first, second, ... call of each sort fails: the result is right or an error, and everything
/// goes in the end that can go; the rest is counted.
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
                // A block and its event at most: the round trip has ended at the first call that
                // could not be made.
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

/// Work that has no end within a limit: nothing of it is freed before it has one, and the error
/// says the limit.
pub fn what_is_not_ready_for_long_is_a_time_limit_and_is_kept<D: FailingDriver>(driver: &D) {
    let context = context(driver);
    context.set_wait_limit(Duration::from_millis(10));
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = array(&queue);
    queue.wait().expect("idle");
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
    // At last it is: then it goes.
    context.synchronize(LONG).expect("idle");
    context.collect();
    assert_eq!((context.deferred_frees(), allocations()), (0, before - 1));
    assert_eq!(driver.misuses(), 0);
}

/// That every call of a context whose device cannot be used any more gives an error that `says`
/// knows, and that what work in flight may still use is not freed. The event is that of an
/// operation on `array`.
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
