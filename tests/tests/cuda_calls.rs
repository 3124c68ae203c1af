//! Which calls of the driver an operation on CUDA makes, and what becomes of events and modules: on the driver without a GPU that the Python
//! tests use too (`usm-python/tests/cuda/driver.c`), which writes down what it is asked.

use core::ffi::{CStr, c_char, c_int};
use core::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use usm_core::backend::cuda::{Cuda, raw};
use usm_core::{
    AllocKind, Context, Device, Event, EventStatus, MemorySource, Queue, QueueOrder, Request, UsmVec,
};
use usm_kernel::{Argument, Code, Function, Launch, LaunchError, Module, NdRange};

#[path = "cuda_calls/queue_memory.rs"]
mod queue_memory;

/// A launch, with the context current on the thread before.
const LAUNCH: [&str; 3] = ["cuCtxGetCurrent", "cuLaunchKernel", "cuEventRecord"];

/// The driver, and who has it: it keeps one log.
struct Fake {
    backend: Cuda,
    library: libloading::Library,
    _turn: MutexGuard<'static, ()>,
}

impl Fake {
    /// Built by the C compiler that the set-up asks for; `None` where there is none.
    fn start() -> Option<Self> {
        Self::start_as("fake-cuda", &[])
    }

    /// The same in a folder of its own, with definitions for the compiler.
    fn start_as(folder: &str, definitions: &[&str]) -> Option<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder).join("libcuda.so.1");
        if let Err(reason) = build(&path, definitions) {
            assert!(std::env::var("CI").is_err(), "{reason}");
            println!("skipped: calls of the CUDA driver: {reason}");
            return None;
        }
        let backend = Cuda::open(&path).unwrap();
        // SAFETY: the library is open already.
        let library = unsafe { libloading::Library::new(&path) }.unwrap();
        let fake = Self { backend, library, _turn };
        fake.hold(false);
        Some(fake)
    }

    fn call<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: the callers name the signatures of the file.
        *unsafe { self.library.get::<F>(name.to_bytes_with_nul()) }.unwrap()
    }

    /// While set, no work is ever done.
    fn hold(&self, hold: bool) {
        let call: unsafe extern "C" fn(c_int) = self.call(c"fake_hold");
        // SAFETY: no pointers.
        unsafe { call(c_int::from(hold)) };
    }

    /// The next call of that function fails.
    fn fail(&self, name: &'static CStr, code: c_int) {
        let call: unsafe extern "C" fn(*const c_char, c_int) = self.call(c"fake_fail");
        // SAFETY: a text that lives as long as the program.
        unsafe { call(name.as_ptr(), code) };
    }

    /// The calls that `work` made.
    fn calls<R>(&self, work: impl FnOnce() -> R) -> (R, Vec<String>) {
        let clear: unsafe extern "C" fn() = self.call(c"fake_clear_calls");
        let log: unsafe extern "C" fn() -> *const c_char = self.call(c"fake_calls");
        // SAFETY: no pointers.
        unsafe { clear() };
        let result = work();
        // SAFETY: a text of the library, and whoever writes to it waits for the turn.
        let text = unsafe { CStr::from_ptr(log()) };
        (result, text.to_str().unwrap().lines().map(String::from).collect())
    }

    fn count(calls: &[String], name: &str) -> usize {
        calls.iter().filter(|call| *call == name).count()
    }

    fn context(&self) -> Context<Cuda> {
        let mut devices = Vec::new();
        usm_core::Backend::for_each_device(&self.backend, &mut |device| devices.push(device)).unwrap();
        Context::new(&self.backend, &devices[0]).unwrap()
    }
}

/// As `usm-python/tests/conftest.py` does: functions that the backend binds and no case calls are there, and fail.
fn build(library: &Path, definitions: &[&str]) -> Result<(), String> {
    let folder = library.parent().ok_or("no folder")?;
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: PathBuf| {
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let driver = root.join("usm-python/tests/cuda/driver.c");
    let written = read(driver.clone())?;
    let table = read(root.join("usm-core/src/backend/cuda/loader.rs"))?;
    let mut rest = String::new();
    for name in table
        .split('"')
        .filter(|text| text.starts_with("cu") && text.chars().all(|c| c.is_alphanumeric() || c == '_'))
    {
        if !written.contains(&format!("{name}(")) {
            writeln!(rest, "int {name}(void) {{ return 801; }} /* not supported */")
                .map_err(|error| error.to_string())?;
        }
    }
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let further = folder.join("rest.c");
    std::fs::write(&further, rest).map_err(|error| error.to_string())?;
    // Another process may have the file open: a new one takes its place.
    let fresh = folder.join(format!("libcuda.{}", std::process::id()));
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1"]).args(definitions);
    compiler.arg("-o").args([&fresh, &driver, &further]);
    let built = compiler.status().map_err(|error| format!("cc: {error}"))?;
    if !built.success() {
        return Err(format!("cc: {built}"));
    }
    std::fs::rename(&fresh, library).map_err(|error| error.to_string())
}

/// A function that takes an array and a number, and an array for it. The driver takes any text for PTX.
fn function(context: &Context<Cuda>) -> Function<Cuda> {
    Module::build(context, Code::Ptx("a module")).unwrap().function("scale").unwrap()
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
    // SAFETY: a launch does nothing on this driver.
    unsafe { Launch::new(queue, NdRange::new([64], [16]).unwrap()).call(function, &arguments) }
}

#[test]
fn a_launch_is_three_calls_and_makes_no_event() {
    let Some(fake) = Fake::start() else { return };
    let context = fake.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (function, mut a) = (function(&context), array(&queue));
    // The first launches make the events that later ones use again.
    for _ in 0..3 {
        drop(launch(&queue, &function, &mut a).unwrap());
    }
    for _ in 0..100 {
        let current = || drop(launch(&queue, &function, &mut a).unwrap());
        let (_, calls) = raw::with_current(context.raw(), || fake.calls(current)).unwrap();
        assert_eq!(calls, LAUNCH);
    }
    // On a thread that has it not, the context is current for as long as the launch takes.
    let (_, calls) = fake.calls(|| drop(launch(&queue, &function, &mut a).unwrap()));
    let pushed =
        ["cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuLaunchKernel", "cuEventRecord", "cuCtxPopCurrent_v2"];
    assert_eq!(calls, pushed);
}

#[test]
fn a_copy_is_three_calls_and_makes_no_event() {
    let Some(fake) = Fake::start() else { return };
    let context = fake.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (mut one, other) = (array(&queue), array(&queue));
    for _ in 0..3 {
        let _ = queue.copy(&mut one, &other).unwrap();
    }
    let copy = || drop(queue.copy(&mut one, &other).unwrap());
    let (_, calls) = raw::with_current(context.raw(), || fake.calls(copy)).unwrap();
    assert_eq!(calls, ["cuCtxGetCurrent", "cuMemcpyAsync", "cuEventRecord"]);
}

#[test]
fn every_event_is_destroyed_once_and_not_before_the_context() {
    let Some(fake) = Fake::start() else { return };
    let (_, calls) = fake.calls(|| {
        let context = fake.context();
        let queues = [QueueOrder::InOrder, QueueOrder::OutOfOrder].map(|order| context.queue(order).unwrap());
        let function = function(&context);
        let mut arrays = queues.each_ref().map(array);
        let (events, during) = fake.calls(|| {
            let mut events = Vec::new();
            for round in 0..64 {
                for (queue, array) in queues.iter().zip(&mut arrays) {
                    events.push(launch(queue, &function, array).unwrap());
                }
                // Some are kept for a while, so that later ones cannot use them.
                if round % 8 == 7 {
                    events.drain(..).for_each(|event| event.wait().unwrap());
                }
            }
            events
        });
        drop(events);
        assert_eq!(Fake::count(&during, "cuEventDestroy_v2"), 0);
        let created = Fake::count(&during, "cuEventCreate");
        assert!((8..32).contains(&created), "{created} events for 16 that are kept");
    });
    // `calls` began anew inside: what is left are the ends.
    assert!(Fake::count(&calls, "cuEventDestroy_v2") >= 16, "{}", calls.len());
    let after = |name| calls.iter().rposition(|call| call == name);
    assert!(after("cuEventDestroy_v2") > after("cuEventRecord"));
}

#[test]
fn events_that_threads_share_are_destroyed_once() {
    let Some(fake) = Fake::start() else { return };
    let live: unsafe extern "C" fn() -> c_int = fake.call(c"fake_events");
    // SAFETY: no pointers.
    let live = || unsafe { live() };
    let before = live();
    let context = fake.context();
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
                        // Both let go of it at about the same moment.
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
    drop((function, context));
    // Some outlive their context; the memory of it was waited for.
    assert!(live() >= before + 3);
    drop(last);
    // Modules that wait for their launches hold their context until the next build looks at them.
    for _ in 0..8 {
        drop(Module::build(&fake.context(), Code::Ptx("a module")).unwrap());
    }
    assert_eq!(live(), before);
}

#[test]
fn an_event_that_somebody_has_is_not_recorded_anew() {
    let Some(fake) = Fake::start() else { return };
    let context = fake.context();
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
    // Once known to be complete it is not asked again, and that is forgotten when it stands for other work.
    copy.wait().unwrap();
    let (status, calls) = fake.calls(|| copy.status().unwrap());
    assert_eq!((status, calls.len()), (EventStatus::Complete, 0));
    let address = copy.raw().as_raw();
    others.pop();
    drop(copy);
    let next = launch(&queue, &function, &mut a).unwrap();
    assert_eq!((next.raw().as_raw(), next.status().unwrap()), (address, EventStatus::Pending));
}

#[test]
fn a_launch_that_is_refused_leaves_nothing_behind() {
    let Some(fake) = Fake::start() else { return };
    let context = fake.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (function, mut a) = (function(&context), array(&queue));
    drop(launch(&queue, &function, &mut a).unwrap());
    drop(launch(&queue, &function, &mut a).unwrap());
    fake.fail(c"cuLaunchKernel", 701);
    let (refused, calls) = fake.calls(|| launch(&queue, &function, &mut a));
    assert!(refused.unwrap_err().to_string().contains("cuLaunchKernel"));
    assert_eq!(Fake::count(&calls, "cuEventRecord") + Fake::count(&calls, "cuEventCreate"), 0);
    let (_, calls) = fake.calls(|| drop(launch(&queue, &function, &mut a).unwrap()));
    assert_eq!(Fake::count(&calls, "cuEventCreate"), 0, "the event of the refused launch is there again");
    assert_eq!(a.to_vec(&queue).unwrap(), [1.0; 64]);
}

#[test]
fn work_without_an_event_is_never_taken_to_be_complete() {
    let Some(fake) = Fake::start() else { return };
    let context = fake.context();
    context.set_wait_limit(core::time::Duration::from_millis(20));
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let (function, mut a) = (function(&context), array(&queue));
    fake.fail(c"cuEventRecord", 2);
    let lost = launch(&queue, &function, &mut a).unwrap();
    assert!(lost.wait().is_err() && lost.status().is_err());
    let address = lost.raw().as_raw();
    let books = context.stats();
    drop((lost, a));
    drop(queue);
    // The memory is not freed while the context lives, and its event stands for nothing else.
    drop(context.allocate(&Request::new(AllocKind::Device, 1)).unwrap());
    assert_eq!(context.stats().sum.current, books.sum.current);
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let mut b = array(&queue);
    assert_ne!(launch(&queue, &function, &mut b).unwrap().raw().as_raw(), address);
}

#[test]
fn a_module_outlives_its_launches() {
    let Some(fake) = Fake::start() else { return };
    let context = fake.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let mut a = array(&queue);
    let kernel = function(&context);
    // Modules of other tests wait for their launches too, and are not unloaded either now.
    fake.hold(true);
    let _ = launch(&queue, &kernel, &mut a).unwrap();
    let ((), calls) = fake.calls(|| drop(kernel));
    assert_eq!(Fake::count(&calls, "cuModuleUnload"), 0, "its launch runs");
    // One that never ran waits for nobody, and a queue that is gone is remembered.
    let ((), calls) = fake.calls(|| drop(function(&context)));
    assert_eq!(Fake::count(&calls, "cuModuleUnload"), 1);
    drop(queue);
    let ((), calls) = fake.calls(|| drop(function(&context)));
    assert_eq!(Fake::count(&calls, "cuModuleUnload"), 1);
    fake.hold(false);
    context.synchronize(core::time::Duration::from_secs(10)).unwrap();
    // Each build looks at the event, which is done when it is looked at for the third time.
    let (_, calls) = fake.calls(|| [(); 3].map(|()| function(&context)));
    assert!(Fake::count(&calls, "cuModuleUnload") >= 1, "nothing runs any more");
}
