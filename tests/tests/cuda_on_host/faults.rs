//! A driver that fails: every failure is an error with its code, and nothing is lost or freed too early.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::time::Duration;

use usm_core::backend::cuda::{Cuda, CudaEvent, raw};
use usm_core::{
    AllocKind, Device, Error, ErrorKind, Event, EventStatus, Host, MemAdvice, MemorySource, MemoryType,
    PointerInfo, Queue, QueueOrder, Request, Shared, UsmVec,
};
use usm_kernel::{Argument, Code, Launch, Module, NdRange};

use crate::driver::{Driver, fail, set};

/// `CUDA_ERROR_ILLEGAL_ADDRESS`, `_LAUNCH_FAILED`, and one that the backend does not know.
const ILLEGAL_ADDRESS: i64 = 700;
const LAUNCH_FAILED: i64 = 719;
const REFUSED: i64 = 999;

const ORDERS: [QueueOrder; 2] = [QueueOrder::InOrder, QueueOrder::OutOfOrder];

/// Writes far behind the array that it is given.
const ASTRAY: &str = "
.version 6.5
.target sm_75
.address_size 64
.visible .entry astray(.param .u64 a) {
    .reg .b64 %a;
    .reg .b32 %one;
    ld.param.u64 %a, [a];
    mov.u32 %one, 1;
    st.global.u32 [%a+1048576], %one;
    ret;
}
";

fn shared(queue: &Queue<Cuda>) -> UsmVec<u32, Shared, Cuda> {
    UsmVec::from_slice(queue, &[1; 64]).expect("an array")
}

#[test]
fn out_of_memory_is_an_error_with_its_code() {
    let Some(driver) = Driver::here() else { return };
    let context = driver.context();
    for (kind, function) in [
        (AllocKind::Host, "cuMemHostAlloc"),
        (AllocKind::Device, "cuMemAlloc_v2"),
        (AllocKind::Shared, "cuMemAllocManaged"),
    ] {
        fail(&format!("{function}=2"));
        let error = context.allocate(&Request::new(kind, 100)).expect_err("no memory");
        let memory_type = MemoryType::try_from(kind).expect("a kind");
        let expected = ErrorKind::OutOfMemory { memory_type, requested: 100 };
        assert_eq!((error.kind, error.native), (expected, Some(2)));
    }
    assert_eq!(context.stats().sum.count, 0, "a failed allocation leaves no trace");
    fail("");
    // Without a fault too: the device has what it says it has, and what was refused is there when the other is gone.
    set("memory=65536");
    let half = Request::new(AllocKind::Device, 40_000);
    let first = context.allocate(&half).expect("memory");
    let refused = context.allocate(&half).expect_err("no more memory");
    assert!(matches!(refused.kind, ErrorKind::OutOfMemory { requested: 40_000, .. }), "{refused}");
    drop(first);
    drop(context.allocate(&half).expect("memory again"));
}

#[test]
fn an_unknown_memory_type_is_unknown_memory() {
    let Some(driver) = Driver::here() else { return };
    let context = driver.context();
    let memory = context.allocate(&Request::new(AllocKind::Device, 64)).expect("memory");
    // Of arrays, of a later header, and of nothing.
    for kind in ["3", "77", "0"] {
        fail(&format!("memory-type={kind}"));
        let runtime = context.query_runtime(memory.as_ptr() as usize).expect("an answer");
        assert_eq!(runtime, PointerInfo::UNKNOWN);
        let ours = context.query(memory.as_ptr()).expect("an answer");
        assert_eq!((ours.kind, ours.size), (AllocKind::Device, 64), "the books know better");
    }
}

/// The error names the call and has its code; the call after it goes well.
#[test]
fn each_call_that_fails_is_named() {
    type Step = fn(&Queue<Cuda>, &mut UsmVec<u32, Shared, Cuda>) -> Result<(), Error>;
    let steps: [(&str, &'static str, Step); 8] = [
        ("cuMemsetD32Async", "cuMemsetD32Async", |queue, array| queue.fill(array, 1).map(drop)),
        ("cuMemcpyAsync", "cuMemcpyAsync", |queue, array| {
            // SAFETY: every byte has a value.
            let memory = unsafe { array.allocation_mut() };
            queue.copy_within(memory, 0, 64, 32).map(drop)
        }),
        ("cuMemPrefetchAsync", "cuMemPrefetchAsync", |queue, array| {
            queue.prefetch(array.allocation()).map(drop)
        }),
        ("cuMemAdvise", "cuMemAdvise", |queue, array| {
            queue.advise(array.allocation(), MemAdvice::ReadMostly).map(drop)
        }),
        ("cuPointerGetAttributes", "cuPointerGetAttributes", |queue, _| {
            queue.context().query_runtime(77).map(drop)
        }),
        ("cuStreamCreate", "cuStreamCreate", |queue, _| queue.context().queue(QueueOrder::InOrder).map(drop)),
        ("cuEventQuery", "the operation of an event", |queue, array| {
            let event = queue.fill(array, 2)?;
            event.status().map(drop)
        }),
        ("cuCtxPushCurrent_v2", "cuCtxPushCurrent", |queue, _| queue.barrier(&[]).map(drop)),
    ];
    let Some(driver) = Driver::here() else { return };
    let context = driver.context();
    for order in ORDERS {
        let queue = context.queue(order).expect("a queue");
        let mut array = shared(&queue);
        for (function, operation, step) in steps {
            queue.wait().expect("idle");
            fail(&format!("{function}={REFUSED}"));
            let error = step(&queue, &mut array).expect_err(function);
            fail("");
            assert_eq!((error.kind, error.native), (ErrorKind::Native { operation }, Some(REFUSED)));
            step(&queue, &mut array).expect("no fault any more");
        }
        let _ = queue.fill(&mut array, 5).expect("a fill");
        assert_eq!(array.read().expect("a view")[..], [5; 64]);
    }
}

/// The first, second, ... call of each sort fails: the result is right or an error, and everything goes in the end.
#[test]
fn a_round_trip_with_a_fault_anywhere_loses_nothing() {
    let functions = [
        "cuMemAlloc_v2",
        "cuMemAllocManaged",
        "cuMemHostAlloc",
        "cuEventCreate",
        "cuStreamCreate",
        "cuStreamWaitEvent",
        "cuMemcpyAsync",
        "cuMemsetD8Async",
        "cuCtxPushCurrent_v2",
        "cuDevicePrimaryCtxRetain",
    ];
    let Some(driver) = Driver::here() else { return };
    for (function, call) in functions.iter().flat_map(|name| (1..5).map(move |call| (name, call))) {
        for order in ORDERS {
            let outcome = (|| {
                fail(&format!("{function}={REFUSED}@{call}"));
                let context = usm_core::Context::new(&driver.backend, &driver.device)?;
                let outcome = (|| {
                    let queue = context.queue(order)?;
                    let other = context.queue(QueueOrder::OutOfOrder)?;
                    let input = UsmVec::<u32, Shared, _>::from_slice(&queue, &[1, 2, 3])?;
                    let mut device = UsmVec::<u32, Device, _>::zeroed(&other, 3)?;
                    let _ = queue.copy(&mut device, &input)?;
                    drop(input);
                    device.to_vec(&other)
                })();
                fail("");
                context.synchronize(Duration::from_secs(20))?;
                context.collect();
                assert_eq!((context.stats().leaked, context.deferred_frees()), (0, 0), "{function} {call}");
                outcome
            })();
            fail("");
            match outcome {
                Ok(values) => assert_eq!(values, [1, 2, 3]),
                Err(error) => assert_eq!(error.native, Some(REFUSED), "{function} {call}: {error}"),
            }
            assert_eq!((driver.live("allocations"), driver.live("events")), (0, 0), "{function} {call}");
        }
    }
}

/// A fault inside a kernel: every call of the context answers it from then on, and what it may still use is never freed.
#[test]
fn a_fault_in_a_kernel_is_an_error_everywhere_and_for_good() {
    for (order, late) in ORDERS.into_iter().flat_map(|order| [(order, ""), (order, "late")]) {
        // What failed stays failed on its device, so each has another.
        let Some(driver) = Driver::here() else { return };
        let context = driver.context();
        set(late);
        let queue = context.queue(order).expect("a queue");
        let astray = Module::build(&context, Code::Ptx(ASTRAY)).expect("a module");
        let astray = astray.function("astray").expect("a function");
        let (mut array, mut other) = (shared(&queue), shared(&queue));
        queue.wait().expect("idle");
        let launch = Launch::new(&queue, NdRange::new([1], [1]).expect("a range"));
        // SAFETY: what it does wrong is found by the driver, which writes nothing then.
        let event = unsafe { launch.call(&astray, &[Argument::write(&mut array)]) }.expect("a launch");
        let failed = |error: Error| {
            assert_eq!(error.native, Some(ILLEGAL_ADDRESS), "{error}");
            assert!(matches!(error.kind, ErrorKind::Native { .. }), "{error}");
        };
        failed(event.wait_for(Duration::from_secs(20)).expect_err("a fault"));
        failed(event.status().expect_err("a fault"));
        failed(queue.fill(&mut other, 1).map(drop).expect_err("a fault"));
        failed(queue.barrier(&[]).and_then(|event| event.wait()).expect_err("a fault"));
        failed(queue.wait().expect_err("a fault"));
        failed(array.read().map(drop).expect_err("a fault"));
        failed(context.allocate(&Request::new(AllocKind::Device, 8)).map(drop).expect_err("a fault"));
        failed(context.query_runtime(array.as_ptr() as usize).map(drop).expect_err("a fault"));
        failed(context.synchronize(Duration::from_secs(20)).expect_err("a fault"));
        let before = driver.live("allocations");
        drop((array, event));
        assert_eq!(context.deferred_frees(), 1, "whether the kernel still runs is unknown");
        assert_eq!(driver.live("allocations"), before);
    }
}

/// Work that has no end within a limit: nothing of it is freed, and the error says the limit.
#[test]
fn what_is_not_ready_for_long_is_a_time_limit_and_is_kept() {
    let Some(driver) = Driver::here() else { return };
    let context = driver.context();
    context.set_wait_limit(Duration::from_millis(10));
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut array = shared(&queue);
    queue.wait().expect("idle");
    context.collect();
    set("hold");
    let event = queue.fill(&mut array, 1).expect("a fill");
    assert_eq!(event.status(), Ok(EventStatus::Pending));
    let late = event.wait_for(Duration::from_millis(5)).expect_err("never").kind;
    assert_eq!(late, ErrorKind::Timeout { limit_ms: 5 });
    let before = driver.live("allocations");
    drop((array, event));
    assert_eq!((context.deferred_frees(), driver.live("allocations")), (1, before));
    // At last it is: then it goes.
    set("");
    context.synchronize(Duration::from_secs(20)).expect("idle");
    context.collect();
    assert_eq!((context.deferred_frees(), driver.live("allocations")), (0, before - 1));
}

/// `cuEventRecord`.
type Record = unsafe extern "C" fn(raw::CUevent, raw::CUstream) -> raw::CUresult;

/// A wait keeps to the record of its time: the event is recorded anew before the work that waits has begun.
#[test]
fn a_wait_names_the_record_of_its_time() {
    let Some(driver) = Driver::here() else { return };
    let context = driver.context();
    let queues = [(); 3].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    let [first, second, third] = &queues;
    let (mut source, mut target) = (shared(first), shared(second));
    queues.iter().for_each(|queue| queue.wait().expect("idle"));
    set("hold");
    let filled = first.fill(&mut source, 7).expect("a fill");
    let address = filled.raw().as_raw();
    // Waits for the fill, then the event is recorded behind nothing of the third queue.
    let copied = second.copy(&mut target, &source).expect("a copy");
    let record = raw::function(context.raw(), c"cuEventRecord").expect("exported");
    // SAFETY: the signature of the header.
    let record = unsafe { core::mem::transmute::<NonNull<c_void>, Record>(record) };
    // SAFETY: live event and stream of the context.
    let again = raw::with_current(context.raw(), || unsafe { record(address, third.raw().as_raw()) });
    assert_eq!(again, Ok(0));
    set("late");
    copied.wait().expect("done");
    assert_eq!(target.read().expect("a view")[..], [7; 64]);
    // SAFETY: a live event of the context, which outlives this.
    let known: Event<Cuda> =
        unsafe { Event::from_raw(&context, CudaEvent::from_raw(context.raw(), address)) };
    known.wait().expect("done");
}

/// Every function that the backend needs, one at a time: a driver without it is refused by that name.
#[test]
fn a_driver_that_lacks_a_function_is_refused_by_its_name() {
    let Some(driver) = Driver::here() else { return };
    for name in ["cuInit", "cuMemAdvise", "cuEventQuery", "cuIpcCloseMemHandle", "cuMemcpy2DAsync_v2"] {
        let error = driver.open_lacking(&[name]).expect_err("refused");
        assert_eq!(error.kind, ErrorKind::SymbolMissing { library: "libcuda.so.1", symbol: name });
    }
}

/// Device memory is out of the host's reach: who reads it ends by a signal, as with a GPU.
#[test]
fn the_host_does_not_reach_device_memory() {
    const VARIABLE: &str = "USM_TEST_READS_DEVICE_MEMORY";
    let Some(driver) = Driver::here() else { return };
    if std::env::var_os(VARIABLE).is_some() {
        let queue = driver.context().queue(QueueOrder::InOrder).expect("a queue");
        let array = UsmVec::<u32, Device, _>::zeroed(&queue, 64).expect("an array");
        let host = UsmVec::<u32, Host, _>::zeroed(&queue, 64).expect("an array");
        queue.wait().expect("idle");
        // SAFETY: page-locked memory of 64 elements.
        assert_eq!(unsafe { host.as_ptr().read_volatile() }, 0);
        println!("the host reads");
        // SAFETY: none: this is what must end the process.
        let found = unsafe { array.as_ptr().read_volatile() };
        println!("the host has read {found}");
        return;
    }
    let mut child = std::process::Command::new(std::env::current_exe().expect("this program"));
    child.args(["--exact", "faults::the_host_does_not_reach_device_memory", "--nocapture"]);
    let ended = child.env(VARIABLE, "1").output().expect("a process");
    let out = String::from_utf8_lossy(&ended.stdout);
    assert!(!ended.status.success() && out.contains("the host reads"), "{out}");
    assert!(!out.contains("has read"), "{out}");
}

/// An operation that fails when it runs, with its number: the work before it is done.
#[test]
fn the_operation_that_fails_is_the_one_that_was_told_to() {
    let Some(driver) = Driver::here() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut arrays = [shared(&queue), shared(&queue), shared(&queue)];
    queue.wait().expect("idle");
    set("hold");
    fail(&format!("operation={LAUNCH_FAILED}@3"));
    let events = arrays.each_mut().map(|array| queue.fill(array, 9).expect("a fill"));
    set("");
    let last = events[2].wait_for(Duration::from_secs(20)).expect_err("told to");
    assert_eq!(last.native, Some(LAUNCH_FAILED));
    // SAFETY: managed memory of 64 elements, and nothing runs any more.
    let found = arrays.each_ref().map(|array| unsafe { array.as_ptr().read_volatile() });
    assert_eq!(found, [9, 9, 1]);
}
