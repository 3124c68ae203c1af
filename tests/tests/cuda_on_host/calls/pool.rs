//! The pool of a device: its lifetime, the memory that it keeps and returns, queries of its
//! addresses, and the context of its calls.

use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};
use core::time::Duration;

use usm_core::{Allocation, Backend, ErrorKind, MemoryType};
use usm_cuda::CudaQueue;

use super::*;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const REFUSED: i32 = 999;
const LONG: Duration = Duration::from_secs(60);

type Ordered = unsafe extern "C" fn(*mut usize, usize, *mut c_void) -> i32;
type Synchronize = unsafe extern "C" fn(*mut c_void) -> i32;

fn function<F: Copy>(context: &Context<Cuda>, name: &CStr) -> F {
    let found: NonNull<c_void> = raw::function(context.raw(), name).expect("exported");
    // SAFETY: the callers name the signatures of the header.
    unsafe { core::mem::transmute_copy::<_, F>(&found) }
}

fn queue(context: &Context<Cuda>) -> Queue<Cuda> {
    context.queue(QueueOrder::InOrder).unwrap()
}

fn of_queue(queue: &Queue<Cuda>, bytes: usize) -> usm_core::Result<Allocation<Cuda>> {
    MemorySource::allocate(queue, &Request::new(AllocKind::Device, bytes))
}

fn plain(context: &Context<Cuda>, bytes: usize) -> usm_core::Result<Allocation<Cuda>> {
    context.allocate(&Request::new(AllocKind::Device, bytes))
}

/// Allocates like another library: on its stream, from the device's default pool.
fn of_another_library(queue: &Queue<Cuda>, bytes: usize) -> usize {
    let allocate: Ordered = function(queue.context(), c"cuMemAllocAsync");
    let mut address = 0;
    // SAFETY: room for the answer, a live stream.
    assert_eq!(unsafe { allocate(&raw mut address, bytes, queue.raw().as_raw()) }, 0);
    address
}

fn free_of_another_library(queue: &Queue<Cuda>, address: usize) {
    let free: unsafe extern "C" fn(usize, *mut c_void) -> i32 = function(queue.context(), c"cuMemFreeAsync");
    // SAFETY: allocated by the other library and unused.
    assert_eq!(unsafe { free(address, queue.raw().as_raw()) }, 0);
}

/// Waits in the driver, like another library.
fn synchronize(queue: &Queue<Cuda>) {
    let wait: Synchronize = function(queue.context(), c"cuStreamSynchronize");
    // SAFETY: a live stream.
    assert_eq!(unsafe { wait(queue.raw().as_raw()) }, 0);
}

#[test]
fn a_device_has_one_pool_from_the_first_memory_of_a_queue_to_the_last_context() {
    let Some(driver) = Driver::find() else { return };
    let pools = || driver.live("pools");
    let (one, other, never) = (driver.context(), driver.context(), driver.context());
    let queues = [&one, &other].map(queue);
    drop(plain(&one, 4 * KIB).unwrap());
    assert_eq!(pools(), 0);
    let (_, made) = calls_of(|| queues.each_ref().map(|queue| of_queue(queue, 4 * KIB).unwrap()));
    assert_eq!((pools(), times(&made, "cuMemPoolCreate"), times(&made, "cuMemPoolSetAttribute")), (1, 1, 1));
    let shared = [&one, &other, &never].map(|context| raw::memory_pool(context.raw()).unwrap());
    assert_eq!(shared, [shared[0]; 3]);
    let [first, second] = queues;
    drop((first, one, never));
    assert_eq!(pools(), 1);
    drop(second);
    let ((), made) = calls_of(|| drop(other));
    let place = |name: &str| made.iter().rposition(|call| call == name);
    assert!(place("cuEventQuery") < place("cuMemPoolDestroy"), "{made:?}");
    assert!(place("cuMemPoolDestroy") < place("cuDevicePrimaryCtxRelease_v2"), "{made:?}");
    assert_eq!((pools(), driver.live("reserved"), driver.live("allocations")), (0, 0, 0));
    // Again.
    drop(of_queue(&queue(&driver.context()), 4 * KIB).unwrap());
    assert_eq!(pools(), 0);
}

#[test]
fn contexts_of_many_threads_never_find_a_dropped_pool() {
    let Some(driver) = Driver::find() else { return };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let context = driver.context();
                    let queue = queue(&context);
                    drop([of_queue(&queue, 4 * KIB).unwrap(), of_queue(&queue, 8 * KIB).unwrap()]);
                }
            });
        }
    });
    assert_eq!((driver.live("pools"), driver.live("allocations")), (0, 0));
}

#[test]
fn freed_memory_is_kept_across_waits() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    let reserved = || driver.live("reserved");
    // Other libraries get their memory back: by default the pool keeps nothing.
    free_of_another_library(&queue, of_another_library(&queue, MIB));
    assert_eq!(reserved(), MIB as u64);
    synchronize(&queue);
    assert_eq!(reserved(), 0);
    for _ in 0..3 {
        drop(of_queue(&queue, MIB).unwrap());
        synchronize(&queue);
        context.synchronize(LONG).unwrap();
        assert_eq!(reserved(), MIB as u64);
    }
}

/// Endless work, of the same or another context, is not waited for.
#[test]
fn memory_that_the_pool_only_keeps_is_had_without_a_wait() {
    let Some(driver) = Driver::find() else { return };
    let contexts = [driver.context(), driver.context()];
    let queue = queue(&contexts[0]);
    set("memory=1048576");
    let mut busy = of_queue(&queue, 4 * KIB).unwrap();
    for context in &contexts {
        drop(of_queue(&queue, 768 * KIB).unwrap());
        synchronize(&queue);
        set("memory=1048576,hold");
        let work = queue.fill_bytes(&mut busy, 0, 4 * KIB, &[1]).unwrap();
        let take = || {
            let taken = plain(context, 768 * KIB);
            (taken, work.status().unwrap())
        };
        let ((memory, status), made) = raw::with_current(context.raw(), || calls_of(take)).unwrap();
        let waitless =
            ["cuCtxGetCurrent", "cuMemAlloc_v2", "cuMemPoolTrimTo", "cuMemAlloc_v2", "cuEventQuery"];
        assert_eq!((made, status), (waitless.map(String::from).to_vec(), EventStatus::Pending));
        drop(memory.unwrap());
        set("memory=1048576");
        work.wait().unwrap();
    }
}

/// Also if the stream has not reached the free, and if another context's pool kept the memory.
#[test]
fn missing_plain_memory_is_memory_that_the_pool_kept() {
    let Some(driver) = Driver::find() else { return };
    let contexts = [driver.context(), driver.context()];
    let queue = queue(&contexts[0]);
    set("memory=1048576");
    for context in &contexts {
        set("memory=1048576,hold");
        let mut scratch = of_queue(&queue, 768 * KIB).unwrap();
        let _ = queue.fill_bytes(&mut scratch, 0, 768 * KIB, &[1]).unwrap();
        drop(scratch);
        context.set_wait_limit(Duration::from_millis(20));
        assert!(plain(context, 768 * KIB).is_err(), "it is in use");
        context.set_wait_limit(LONG);
        set("memory=1048576");
        let memory = plain(context, 768 * KIB).unwrap();
        assert_eq!(driver.live("reserved"), 0);
        // With no more memory: tries the kept and the freed memory, then stops.
        let (refused, made) = calls_of(|| plain(context, 768 * KIB).unwrap_err());
        let (memory_type, requested) = (MemoryType::UsmDevice, 768 << 10);
        assert_eq!(
            (refused.kind, refused.native),
            (ErrorKind::OutOfMemory { memory_type, requested }, Some(2))
        );
        assert_eq!((times(&made, "cuMemAlloc_v2"), times(&made, "cuMemPoolTrimTo")), (3, 2));
        drop(memory);
    }
}

#[test]
fn missing_queue_memory_is_sought_in_parts_of_what_the_pool_kept() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    set("memory=1048576");
    drop(of_queue(&queue, 400 * KIB).unwrap());
    queue.wait().unwrap();
    let (memory, made) = calls_of(|| of_queue(&queue, 800 * KIB).unwrap());
    assert_eq!((times(&made, "cuMemAllocFromPoolAsync"), times(&made, "cuMemPoolTrimTo")), (2, 1));
    let (refused, made) = calls_of(|| of_queue(&queue, 400 * KIB).unwrap_err());
    assert!(matches!(refused.kind, ErrorKind::OutOfMemory { requested: 409_600, .. }), "{refused}");
    assert_eq!((times(&made, "cuMemAllocFromPoolAsync"), times(&made, "cuMemPoolTrimTo")), (3, 2));
    drop(memory);
}

#[test]
fn only_a_lack_of_device_memory_trims_an_existing_pool() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let functions = [
        (AllocKind::Host, "cuMemHostAlloc", 1),
        (AllocKind::Device, "cuMemAlloc_v2", 3),
        (AllocKind::Shared, "cuMemAllocManaged", 3),
    ];
    for pool in [false, true] {
        for (kind, function, calls) in functions {
            fail(&format!("{function}=2"));
            let (refused, made) = calls_of(|| context.allocate(&Request::new(kind, 64)).unwrap_err());
            assert!(matches!(refused.kind, ErrorKind::OutOfMemory { requested: 64, .. }), "{refused}");
            let calls = if pool { calls } else { 1 };
            assert_eq!((times(&made, function), times(&made, "cuMemPoolTrimTo")), (calls, calls - 1));
            fail("");
        }
        raw::memory_pool(context.raw()).unwrap();
    }
    // Whatever the trim returns.
    fail("cuMemAlloc_v2=2,cuMemPoolTrimTo=1");
    assert_eq!(plain(&context, 64).unwrap_err().native, Some(2));
}

/// Endless work keeps its memory, and another request fails within the wait limit.
#[test]
fn the_look_for_memory_has_a_limit() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    set("memory=1048576,hold");
    context.set_wait_limit(Duration::from_millis(20));
    drop(of_queue(&queue, 768 * KIB).unwrap());
    let refused = plain(&context, 768 * KIB).unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::OutOfMemory { .. }), "{refused}");
    set("memory=1048576");
    context.set_wait_limit(LONG);
    drop(plain(&context, 768 * KIB).unwrap());
}

#[test]
fn memory_of_other_libraries_is_known_wherever_ours_was_freed() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    let memory = of_queue(&queue, 64 * KIB).unwrap();
    let address = memory.as_ptr().addr();
    drop(memory);
    for _ in 0..4 {
        let theirs = of_another_library(&queue, 64 * KIB);
        assert_ne!(theirs, address, "no other library gets addresses of our pool");
        let found = context.query(ptr::without_provenance::<u8>(theirs + 100)).unwrap();
        assert_eq!((found.kind, found.base, found.size), (AllocKind::Device, theirs, 64 * KIB));
        free_of_another_library(&queue, theirs);
        queue.wait().unwrap();
    }
    assert_eq!(context.query(ptr::without_provenance::<u8>(address)).unwrap().kind, AllocKind::Unknown);
    // Every context over the device knows the live blocks and their ends.
    let other = driver.context();
    let queues = [&context, &other].map(self::queue);
    let blocks = queues.each_ref().map(|queue| of_queue(queue, 1000).unwrap());
    for (context, memory) in
        [&context, &other].into_iter().flat_map(|context| blocks.each_ref().map(|memory| (context, memory)))
    {
        let found = context.query(memory.as_ptr().wrapping_add(999)).unwrap();
        assert_eq!((found.kind, found.base, found.size), (AllocKind::Device, memory.as_ptr().addr(), 1000));
        assert_eq!(context.query(memory.as_ptr().wrapping_add(1000)).unwrap().kind, AllocKind::Unknown);
    }
    // For addresses outside the pool the driver is asked.
    let address = blocks[0].as_ptr();
    drop((blocks, queues, queue, context, other));
    let (found, made) = calls_of(|| driver.context().query(address).unwrap());
    assert_eq!((found.kind, times(&made, "cuPointerGetAttributes")), (AllocKind::Unknown, 1));
}

#[test]
fn a_pool_that_cannot_be_made_is_a_typed_error_and_leaves_nothing() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    for name in ["cuMemPoolCreate", "cuMemPoolSetAttribute"] {
        fail(&format!("{name}={REFUSED}"));
        let refused = of_queue(&queue, 64).unwrap_err();
        assert_eq!(
            (refused.kind, refused.native),
            (ErrorKind::Native { operation: name }, Some(i64::from(REFUSED)))
        );
        assert_eq!((driver.live("pools"), context.stats().sum.count), (0, 0));
    }
    // A driver that reports pools but refuses to make one.
    fail("cuMemPoolCreate=801");
    let memory = of_queue(&queue, 64).unwrap();
    let ((), made) = calls_of(|| drop(memory));
    assert_eq!((times(&made, "cuMemFreeAsync"), times(&made, "cuMemFree_v2")), (0, 1));
    fail("");
    drop(of_queue(&queue, 64).unwrap());
    assert_eq!(driver.live("pools"), 1);
    // A failed end has no receiver.
    drop(queue);
    fail(&format!("cuMemPoolDestroy={REFUSED}"));
    drop(context);
}

#[test]
fn each_function_of_pools_that_a_driver_lacks_leaves_it_plain_memory() {
    let names = [
        "cuMemPoolCreate",
        "cuMemPoolDestroy",
        "cuMemPoolSetAttribute",
        "cuMemPoolTrimTo",
        "cuMemAllocFromPoolAsync",
        "cuMemFreeAsync",
    ];
    for name in names {
        let Some(driver) = Driver::lacking(&[name]) else { return };
        let context = driver.context();
        assert!(!context.info().queue_memory, "without {name}");
        let memory = of_queue(&queue(&context), 64).unwrap();
        assert!(memory.is_of_queue() && driver.live("pools") == 0);
        let refused = raw::memory_pool(context.raw()).unwrap_err();
        assert!(matches!(refused.kind, ErrorKind::Unsupported { .. }), "{refused}");
    }
}

/// The first, second, ... call of each function fails: the result is correct or an error.
/// Everything is freed in the end, at the latest with the context.
#[test]
fn a_fault_anywhere_loses_nothing() {
    let Some(driver) = Driver::find() else { return };
    let functions = [
        "cuMemPoolCreate",
        "cuMemPoolSetAttribute",
        "cuMemAllocFromPoolAsync",
        "cuMemFreeAsync",
        "cuEventCreate",
        "cuStreamWaitEvent",
        "cuCtxPushCurrent_v2",
    ];
    for (name, call) in functions.iter().flat_map(|name| (1..5).map(move |call| (name, call))) {
        for order in [QueueOrder::InOrder, QueueOrder::OutOfOrder] {
            let context = driver.context();
            let (queue, other) = (context.queue(order).unwrap(), queue(&context));
            fail(&format!("{name}={REFUSED}@{call}"));
            let outcome = (|| {
                let input = UsmVec::<u32, Device, _>::from_slice(&other, &[1, 2, 3])?;
                let mut scratch = UsmVec::<u32, Device, _>::zeroed_in(&queue, &queue, 3)?;
                let _ = other.copy(&mut scratch, &input)?;
                drop(input);
                scratch.to_vec(&queue)
            })();
            fail("");
            context.synchronize(LONG).unwrap();
            context.collect();
            // A block whose context cannot be made current is kept until the context ends, and is
            // counted.
            let leaked = context.stats().leaked;
            assert!(leaked == 0 || *name == "cuCtxPushCurrent_v2", "{name} {call}: {leaked}");
            assert_eq!(
                (driver.live("allocations"), context.deferred_frees()),
                (leaked as u64, 0),
                "{name} {call}"
            );
            drop((queue, other, context));
            match outcome {
                Ok(values) => assert_eq!(values, [1, 2, 3]),
                Err(error) => assert_eq!(error.native, Some(i64::from(REFUSED)), "{name} {call}: {error}"),
            }
            let left = ["allocations", "events", "pools", "reserved"].map(|what| driver.live(what));
            assert_eq!(left, [0; 4], "{name} {call}");
        }
    }
}

/// The stream determines the memory's context, whatever context another library made current on the
/// thread.
#[test]
fn the_stream_determines_the_context() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = queue(&context);
    drop([of_queue(&queue, 64).unwrap(), of_queue(&queue, 64).unwrap()]);
    let usual = ["cuMemAllocFromPoolAsync", "cuEventRecord", "cuMemFreeAsync"];
    let pair = || calls_of(|| drop(of_queue(&queue, 64).unwrap())).1;
    assert_eq!(pair(), usual);
    let mut devices = Vec::new();
    driver.backend.for_each_device(&mut |device| devices.push(device)).unwrap();
    let other = Context::new(&driver.backend, &devices[0]).unwrap();
    raw::with_current(other.raw(), || {
        assert_eq!(pair(), usual);
        let memory = of_queue(&queue, 64).unwrap();
        let found = context.query(memory.as_ptr()).unwrap();
        assert_eq!((found.device, found.context), (Some(context.info().ordinal), context.id()));
        memory.wait_for_uses(usm_core::Access::Write).unwrap();
    })
    .unwrap();
    // A driver that requires a current context gets the right one for a second call only.
    set("current");
    let made = pair();
    let again = |name| ["cuCtxGetCurrent", "cuCtxPushCurrent_v2", name, "cuCtxPopCurrent_v2"];
    let expected: Vec<&str> = usual.iter().flat_map(|name| [*name].into_iter().chain(again(*name))).collect();
    assert_eq!(made, expected);
    set("");
}

/// Its handle means the default stream of the current context.
#[test]
fn a_default_stream_is_that_of_its_own_context() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let mut devices = Vec::new();
    driver.backend.for_each_device(&mut |device| devices.push(device)).unwrap();
    let other = Context::new(&driver.backend, &devices[0]).unwrap();
    for handle in 0..3 {
        // SAFETY: the default streams live as long as the context.
        let (stream, order) =
            unsafe { CudaQueue::from_raw(context.raw(), ptr::without_provenance_mut(handle)) };
        // SAFETY: a stream of this context, in order.
        let queue = unsafe { Queue::from_raw(&context, stream, order) };
        raw::with_current(other.raw(), || {
            let (_, made) = calls_of(|| {
                let mut memory = of_queue(&queue, 64).unwrap();
                let _ = queue.fill_bytes(&mut memory, 0, 64, &[1]).unwrap();
            });
            // An event of this context cannot be recorded on a stream of another one.
            assert_eq!(times(&made, "cuCtxPushCurrent_v2"), times(&made, "cuCtxPopCurrent_v2"));
            assert!(times(&made, "cuCtxPushCurrent_v2") >= 3, "{made:?}");
        })
        .unwrap();
        context.synchronize(LONG).unwrap();
    }
}
