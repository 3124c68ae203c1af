//! A failing driver: the cases of all test drivers, and those of CUDA alone.

use core::ffi::c_void;
use core::ptr::NonNull;
use core::time::Duration;

use usm_core::{
    AllocKind, Context, Device, Error, ErrorKind, Event, Host, MemorySource, Queue, QueueOrder, Request,
    Shared, UsmVec,
};
use usm_cuda::{Cuda, CudaEvent, raw};
use usm_kernel::{Argument, Code, Launch, Module, NdRange};
use usm_tests::faults::{self, FailingDriver, ORDERS, Step, every_call_reports_the_failure, step};

use crate::driver::{Driver, count, fail, set};

/// `CUDA_ERROR_ILLEGAL_ADDRESS`, `_LAUNCH_FAILED`, and a code that the backend does not know.
const ILLEGAL_ADDRESS: i64 = 700;
const LAUNCH_FAILED: i64 = 719;
const REFUSED: i64 = 999;

/// Writes far beyond its array.
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

impl FailingDriver for Driver {
    type Backend = Cuda;

    const NO_MEMORY: [(AllocKind, &'static str, i64); 3] = [
        (AllocKind::Host, "cuMemHostAlloc", 2),
        (AllocKind::Device, "cuMemAlloc_v2", 2),
        (AllocKind::Shared, "cuMemAllocManaged", 2),
    ];
    // The type of arrays, one of a later header, and an unassigned one.
    const UNKNOWN_TYPES: [&'static str; 3] = ["3", "77", "0"];
    const REFUSED: i64 = REFUSED;
    const STEPS: &'static [(&'static str, &'static str, Step<Self>)] = &[
        ("cuMemsetD32Async", "cuMemsetD32Async", step::fill),
        ("cuMemcpyAsync", "cuMemcpyAsync", step::copy_within),
        ("cuMemPrefetchAsync", "cuMemPrefetchAsync", step::prefetch),
        ("cuMemAdvise", "cuMemAdvise", step::advise),
        ("cuPointerGetAttributes", "cuPointerGetAttributes", step::query_nothing),
        ("cuStreamCreate", "cuStreamCreate", step::new_queue),
        ("cuEventQuery", "the operation of an event", step::status),
        ("cuCtxPushCurrent_v2", "cuCtxPushCurrent", step::barrier),
    ];
    const ROUND_TRIP: &'static [&'static str] = &[
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
    const OF_POOLS: &'static [&'static str] = &["cuMemFree_v2", "cuEventQuery"];
    const COUNTS_KEPT: bool = false;
    const KEPT_WITHOUT: &'static [&'static str] = &["cuCtxPushCurrent_v2"];

    fn context(&self) -> usm_core::Result<Context<Cuda>> {
        Context::new(&self.backend, &self.device)
    }

    fn failing<T>(&self, faults: &str, body: impl FnOnce() -> T) -> T {
        fail(faults);
        let result = body();
        fail("");
        result
    }

    fn held<T>(&self, body: impl FnOnce() -> T) -> T {
        set("hold");
        let result = body();
        set("");
        result
    }

    fn objects(&self) -> Vec<u64> {
        vec![self.live("allocations"), self.live("events"), self.live("modules")]
    }

    fn misuses(&self) -> u64 {
        count("misuses") - self.misuses
    }
}

macro_rules! tests {
    ($($case:ident)*) => {
        $(#[test]
        fn $case() {
            let Some(driver) = Driver::find() else { return };
            faults::$case(&driver);
        })*
    };
}

usm_tests::fault_cases!(tests);
tests!(a_pool_with_a_fault_anywhere_says_what_it_holds);

fn shared(queue: &Queue<Cuda>) -> UsmVec<u32, Shared, Cuda> {
    UsmVec::from_slice(queue, &[1; 64]).expect("an array")
}

/// Without a fault: the device has the memory that it reports, and a refused size is available
/// after a free.
#[test]
fn a_device_has_the_memory_that_it_reports() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    set("memory=65536");
    let half = Request::new(AllocKind::Device, 40_000);
    let first = context.allocate(&half).expect("memory");
    let refused = context.allocate(&half).expect_err("no more memory");
    assert!(matches!(refused.kind, ErrorKind::OutOfMemory { requested: 40_000, .. }), "{refused}");
    drop(first);
    drop(context.allocate(&half).expect("memory again"));
}

/// A fault in a kernel: every later call of the context returns it, and memory that the kernel may
/// use is never freed.
#[test]
fn a_fault_in_a_kernel_is_an_error_everywhere_and_for_good() {
    for (order, late) in ORDERS.into_iter().flat_map(|order| [(order, ""), (order, "late")]) {
        // A failure is permanent for its device, so each case has another device.
        let Some(driver) = Driver::find() else { return };
        let context = driver.context();
        set(late);
        let queue = context.queue(order).expect("a queue");
        let astray = Module::build(&context, Code::Ptx(ASTRAY)).expect("a module");
        let astray = astray.function("astray").expect("a function");
        let (mut array, mut other) = (shared(&queue), shared(&queue));
        queue.wait().expect("idle");
        let launch = Launch::new(&queue, NdRange::new([1], [1]).expect("a range"));
        // SAFETY: the driver detects the wrong access and writes nothing.
        let event = unsafe { launch.call(&astray, &[Argument::write(&mut array)]) }.expect("a launch");
        let failed = |error: Error| {
            assert_eq!(error.native, Some(ILLEGAL_ADDRESS), "{error}");
            assert!(matches!(error.kind, ErrorKind::Native { .. }), "{error}");
        };
        let before = driver.live("allocations");
        every_call_reports_the_failure(&queue, event, array, &mut other, failed);
        failed(context.query_runtime(other.as_ptr() as usize).map(drop).expect_err("a fault"));
        assert_eq!(driver.live("allocations"), before);
        drop(queue);
        for _ in 0..2 {
            failed(context.synchronize(Duration::from_secs(60)).expect_err("the fault outlives the queue"));
        }
    }
}

/// `cuEventRecord`.
type Record = unsafe extern "C" fn(raw::CUevent, raw::CUstream) -> raw::CUresult;

/// A wait uses the record of its call, even if the event is recorded again before the waiting work
/// starts.
#[test]
fn a_wait_names_the_record_of_its_time() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queues = [(); 3].map(|()| context.queue(QueueOrder::InOrder).expect("a queue"));
    let [first, second, third] = &queues;
    let (mut source, mut target) = (shared(first), shared(second));
    queues.iter().for_each(|queue| queue.wait().expect("idle"));
    set("hold");
    let filled = first.fill(&mut source, 7).expect("a fill");
    let address = filled.raw().as_raw();
    // Waits for the fill. Then the event is recorded on the idle third queue.
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

/// Without any one function that the backend needs, the driver is refused with that function's
/// name.
#[test]
fn a_driver_that_lacks_a_function_is_refused_by_its_name() {
    let Some(driver) = Driver::find() else { return };
    for name in ["cuInit", "cuMemAdvise", "cuEventQuery", "cuIpcCloseMemHandle", "cuMemcpy2DAsync_v2"] {
        let error = driver.open_lacking(&[name]).expect_err("refused");
        assert_eq!(error.kind, ErrorKind::SymbolMissing { library: "libcuda.so.1", symbol: name });
    }
}

/// The host cannot access device memory: a read ends the process by a signal, as with a GPU.
#[test]
fn the_host_does_not_reach_device_memory() {
    const VARIABLE: &str = "USM_TEST_READS_DEVICE_MEMORY";
    let Some(driver) = Driver::find() else { return };
    if std::env::var_os(VARIABLE).is_some() {
        let queue = driver.context().queue(QueueOrder::InOrder).expect("a queue");
        let array = UsmVec::<u32, Device, _>::zeroed(&queue, 64).expect("an array");
        let host = UsmVec::<u32, Host, _>::zeroed(&queue, 64).expect("an array");
        queue.wait().expect("idle");
        // SAFETY: page-locked memory of 64 elements.
        assert_eq!(unsafe { host.as_ptr().read_volatile() }, 0);
        println!("the host reads");
        // SAFETY: none: this read must end the process.
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

/// The operation with the chosen number fails when it runs; earlier work completes.
#[test]
fn the_chosen_operation_fails() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut arrays = [shared(&queue), shared(&queue), shared(&queue)];
    queue.wait().expect("idle");
    set("hold");
    fail(&format!("operation={LAUNCH_FAILED}@3"));
    let events = arrays.each_mut().map(|array| queue.fill(array, 9).expect("a fill"));
    set("");
    let last = events[2].wait_for(Duration::from_secs(20)).expect_err("a planned fault");
    assert_eq!(last.native, Some(LAUNCH_FAILED));
    // SAFETY: managed memory of 64 elements, and all work has ended.
    let found = arrays.each_ref().map(|array| unsafe { array.as_ptr().read_volatile() });
    assert_eq!(found, [9, 9, 1]);
}
