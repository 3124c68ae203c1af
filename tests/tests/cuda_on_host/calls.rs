//! The driver's calls for an operation on CUDA, and the reuse of events and modules: the driver
//! logs its calls.

use usm_core::{
    AllocKind, Context, Device, Event, EventStatus, MemorySource, Queue, QueueOrder, Request, UsmVec,
};
use usm_cuda::{Cuda, raw};
use usm_kernel::{Argument, Code, Function, Launch, LaunchError, Module, NdRange};

use crate::driver::{Driver, calls_of, fail, set};

mod pool;
mod queue_memory;

/// A launch, with the context already current on the thread.
const LAUNCH: [&str; 3] = ["cuCtxGetCurrent", "cuLaunchKernel", "cuEventRecord"];

/// Does nothing; has an array, a number and local memory as parameters.
const SCALE: &str = "
.version 6.5
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 a, .param .f32 by, .param .u32 lm) { ret; }
";

fn times(calls: &[String], name: &str) -> usize {
    calls.iter().filter(|call| *call == name).count()
}

fn function(context: &Context<Cuda>) -> Function<Cuda> {
    Module::build(context, Code::Ptx(SCALE)).unwrap().function("scale").unwrap()
}

fn array(queue: &Queue<Cuda>) -> UsmVec<f32, Device, Cuda> {
    UsmVec::from_slice(queue, &[1.0; 64]).unwrap()
}

fn launch(
    queue: &Queue<Cuda>,
    function: &Function<Cuda>,
    array: &mut UsmVec<f32, Device, Cuda>,
) -> Result<Event<Cuda>, LaunchError> {
    let arguments = [Argument::write(array), Argument::value(&2.0_f32), Argument::local::<f32>(16)];
    // SAFETY: the kernel does nothing.
    unsafe { Launch::new(queue, NdRange::new([64], [16]).unwrap()).call(function, &arguments) }
}

#[test]
fn a_launch_is_three_calls_and_makes_no_event() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (function, mut a) = (function(&context), array(&queue));
    // The first launches make the events that later ones reuse.
    for _ in 0..3 {
        drop(launch(&queue, &function, &mut a).unwrap());
    }
    for _ in 0..100 {
        let current = || drop(launch(&queue, &function, &mut a).unwrap());
        let (_, calls) = raw::with_current(context.raw(), || calls_of(current)).unwrap();
        assert_eq!(calls, LAUNCH);
    }
    // On another thread the context is current during the launch only.
    let (_, calls) = calls_of(|| drop(launch(&queue, &function, &mut a).unwrap()));
    let pushed =
        ["cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuLaunchKernel", "cuEventRecord", "cuCtxPopCurrent_v2"];
    assert_eq!(calls, pushed);
}

#[test]
fn a_copy_is_three_calls_and_makes_no_event() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (mut one, other) = (array(&queue), array(&queue));
    for _ in 0..3 {
        let _ = queue.copy(&mut one, &other).unwrap();
    }
    let copy = || drop(queue.copy(&mut one, &other).unwrap());
    let (_, calls) = raw::with_current(context.raw(), || calls_of(copy)).unwrap();
    assert_eq!(calls, ["cuCtxGetCurrent", "cuMemcpyAsync", "cuEventRecord"]);
}

#[test]
fn every_event_is_destroyed_once_and_not_before_the_context() {
    let Some(driver) = Driver::find() else { return };
    let (_, calls) = calls_of(|| {
        let context = driver.context();
        let queues = [QueueOrder::InOrder, QueueOrder::OutOfOrder].map(|order| context.queue(order).unwrap());
        let function = function(&context);
        let mut arrays = queues.each_ref().map(array);
        let (events, during) = calls_of(|| {
            let mut events = Vec::new();
            for round in 0..64 {
                for (queue, array) in queues.iter().zip(&mut arrays) {
                    events.push(launch(queue, &function, array).unwrap());
                }
                // Some are kept, so that later ones cannot reuse them.
                if round % 8 == 7 {
                    events.drain(..).for_each(|event| event.wait().unwrap());
                }
            }
            events
        });
        drop(events);
        assert_eq!(times(&during, "cuEventDestroy_v2"), 0);
        let created = times(&during, "cuEventCreate");
        assert!((8..32).contains(&created), "{created} events for 16 that are kept");
    });
    // `calls` began a new log inside: only the ends are left.
    assert!(times(&calls, "cuEventDestroy_v2") >= 16, "{}", calls.len());
    let after = |name| calls.iter().rposition(|call| call == name);
    assert!(after("cuEventDestroy_v2") > after("cuEventRecord"));
}

#[test]
fn events_that_threads_share_are_destroyed_once() {
    let Some(driver) = Driver::find() else { return };
    let live = || driver.live("events");
    let before = live();
    let context = driver.context();
    let function = function(&context);
    let last: Vec<Event<Cuda>> = std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel::<Event<Cuda>>();
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let (sender, context, function) = (sender.clone(), context.clone(), &function);
                scope.spawn(move || {
                    let queue = context.queue(QueueOrder::OutOfOrder).unwrap();
                    let mut a = array(&queue);
                    for _ in 0..500 {
                        let event = launch(&queue, function, &mut a).unwrap();
                        // Both release it at about the same time.
                        sender.send(event.clone()).unwrap();
                    }
                    launch(&queue, function, &mut a).unwrap()
                })
            })
            .collect();
        drop(sender);
        receiver.into_iter().for_each(drop);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    context.synchronize(core::time::Duration::from_secs(60)).unwrap();
    drop((function, context));
    // Some outlive their context; the memory of the context was waited for.
    assert!(live() >= before + 3);
    drop(last);
    // Modules that wait for their launches hold their context until the next build checks them.
    for _ in 0..8 {
        drop(Module::build(&driver.context(), Code::Ptx(SCALE)).unwrap());
    }
    assert_eq!(live(), before);
}

#[test]
fn an_event_that_somebody_has_is_not_recorded_anew() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (function, mut a) = (function(&context), array(&queue));
    let kept = launch(&queue, &function, &mut a).unwrap();
    let copy = kept.clone();
    drop(kept);
    let mut others: Vec<_> = (0..32).map(|_| launch(&queue, &function, &mut a).unwrap()).collect();
    others.push(copy.clone());
    let mut addresses: Vec<_> = others.iter().map(|event| event.raw().as_raw()).collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 33);
    // A known completion is not queried again; reuse for other work resets that.
    copy.wait().unwrap();
    let (status, calls) = calls_of(|| copy.status().unwrap());
    assert_eq!((status, calls.len()), (EventStatus::Complete, 0));
    let address = copy.raw().as_raw();
    others.pop();
    drop(copy);
    set("hold");
    let next = launch(&queue, &function, &mut a).unwrap();
    assert_eq!((next.raw().as_raw(), next.status().unwrap()), (address, EventStatus::Pending));
    set("");
}

#[test]
fn a_launch_that_is_refused_leaves_nothing_behind() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (function, mut a) = (function(&context), array(&queue));
    drop(launch(&queue, &function, &mut a).unwrap());
    drop(launch(&queue, &function, &mut a).unwrap());
    fail("cuLaunchKernel=701");
    let (refused, calls) = calls_of(|| launch(&queue, &function, &mut a));
    fail("");
    assert!(refused.unwrap_err().to_string().contains("cuLaunchKernel"));
    assert_eq!(times(&calls, "cuEventRecord") + times(&calls, "cuEventCreate"), 0);
    let (_, calls) = calls_of(|| drop(launch(&queue, &function, &mut a).unwrap()));
    assert_eq!(times(&calls, "cuEventCreate"), 0, "the event of the refused launch is there again");
    assert_eq!(a.to_vec(&queue).unwrap(), [1.0; 64]);
}

#[test]
fn work_without_an_event_is_never_taken_to_be_complete() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    context.set_wait_limit(core::time::Duration::from_millis(20));
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (function, mut a) = (function(&context), array(&queue));
    queue.wait().unwrap();
    context.collect();
    fail("cuEventRecord=2");
    let lost = launch(&queue, &function, &mut a).unwrap();
    fail("");
    assert!(lost.wait().is_err() && lost.status().is_err());
    let address = lost.raw().as_raw();
    let before = context.stats();
    drop((lost, a));
    drop(queue);
    // The memory is not freed while the context lives, and its event is not reused.
    drop(context.allocate(&Request::new(AllocKind::Device, 1)).unwrap());
    assert_eq!(context.stats().sum.current, before.sum.current);
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let mut b = array(&queue);
    assert_ne!(launch(&queue, &function, &mut b).unwrap().raw().as_raw(), address);
}

#[test]
fn a_module_outlives_its_launches() {
    let Some(driver) = Driver::find() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let mut a = array(&queue);
    let kernel = function(&context);
    // Modules of other tests wait for their launches too, and are not unloaded now either.
    set("hold");
    let _ = launch(&queue, &kernel, &mut a).unwrap();
    let ((), calls) = calls_of(|| drop(kernel));
    assert_eq!(times(&calls, "cuModuleUnload"), 0, "its launch runs");
    // A module that never ran does not wait, and a dropped queue is remembered.
    let ((), calls) = calls_of(|| drop(function(&context)));
    assert_eq!(times(&calls, "cuModuleUnload"), 1);
    drop(queue);
    let ((), calls) = calls_of(|| drop(function(&context)));
    assert_eq!(times(&calls, "cuModuleUnload"), 1);
    set("");
    context.synchronize(core::time::Duration::from_secs(10)).unwrap();
    // A build unloads the modules that are no longer used.
    let (_, calls) = calls_of(|| function(&context));
    assert!(times(&calls, "cuModuleUnload") >= 1, "nothing runs any more");
}
