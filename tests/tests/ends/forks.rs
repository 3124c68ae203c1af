//! Forks, while threads allocate, free, submit and wait.

use std::mem::MaybeUninit;
use std::process::{ExitCode, exit};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use usm_core::backend::Dyn;
use usm_core::backend::host::{Arena as FixedArena, HostHeap};
use usm_core::{
    AllocKind, BackendKind, Context, Error, ErrorKind, MemorySource, QueueOrder, Request, Result, UsmVec,
};
use usm_kernel::Module;
use usm_pool::arena::Arena;
use usm_pool::{Buffer, Options, Problem, plan};

use crate::program::{Lane, Program};
use crate::ways::build;

/// Kills a hung child. Less than the longest wait for a first build.
const SECONDS: u32 = 20;

/// The exit status of a child that runs `work` and returns from it, as the C library's number.
fn child(work: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child uses only the parts that are guaranteed to work after a fork beside
    // threads: the C library's heap, and this library.
    match unsafe { libc::fork() } {
        -1 => panic!("no child"),
        0 => {
            // SAFETY: sets a timer.
            unsafe { libc::alarm(SECONDS) };
            exit(work())
        }
        id => {
            let mut status = 0;
            // SAFETY: a child, and room for its status.
            while unsafe { libc::waitpid(id, &raw mut status, 0) } != id {}
            status
        }
    }
}

/// Whether the driver answers a question through a safe function of its own crate.
fn answers(context: &Context<Dyn>) -> bool {
    let raw = context.raw();
    if let Some(raw) = raw.downcast_ref::<usm_opencl::OpenClContext>() {
        usm_opencl::raw::extension_function(raw, c"clHostMemAllocINTEL").is_some()
    } else if let Some(raw) = raw.downcast_ref::<usm_level_zero::LevelZeroContext>() {
        usm_level_zero::raw::pending(raw).is_ok()
            || usm_level_zero::raw::extension_function(raw, c"zexDriverGetHostPointerBaseAddress").is_some()
    } else if let Some(raw) = raw.downcast_ref::<usm_cuda::CudaContext>() {
        let (pending, pool) = (usm_cuda::raw::pending(raw).is_ok(), usm_cuda::raw::memory_pool(raw).is_ok());
        pending || pool || usm_cuda::raw::with_current(raw, || ()).is_ok()
    } else if let Some(raw) = raw.downcast_ref::<usm_sycl::DpctlContext>() {
        raw.copy_native().is_ok()
    } else {
        false
    }
}

/// A child that drops the objects it finds, uses new ones, and ends while the parent's work is in
/// flight. The runtime is closed to it, so no question reaches the driver.
pub(crate) fn child_ends(program: Program) -> ExitCode {
    let status = child(move || {
        if program.contexts.iter().any(|context| !Module::formats(context).is_empty()) {
            return 8;
        }
        if program.contexts.iter().any(answers) {
            return 9;
        }
        drop(program);
        7
    });
    exit(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) })
}

/// Many children of a program whose threads allocate and free.
pub(crate) fn many(program: Program) -> ExitCode {
    static STOP: AtomicBool = AtomicBool::new(false);
    let count = std::env::var("USM_FORKS").ok().and_then(|count| count.parse().ok()).unwrap_or(12);
    let heap = HostHeap::new().context();
    heap.keep_history(16);
    let erased = Dyn::new(HostHeap::new()).devices().expect("devices")[0].context().expect("a heap");
    let mut threads = Vec::new();
    for _ in 0..2 {
        let (heap, erased) = (heap.clone(), erased.clone());
        threads.push(thread::spawn(move || {
            while !STOP.load(Ordering::Relaxed) {
                on_host(&heap).expect("the heap");
                on_erased_host(&erased).expect("the heap");
            }
        }));
    }
    for mut lane in program.small_lanes(if program.never_answers { 0 } else { 1 }) {
        threads.push(thread::spawn(move || {
            while !STOP.load(Ordering::Relaxed) {
                lane.copy().and_then(|()| lane.queue.wait()).expect("a copy");
            }
        }));
    }
    let mut died = Vec::new();
    for number in 0..count {
        let status = child(|| {
            let works = on_host(&heap).and_then(|()| on_erased_host(&erased));
            let outcome = works.and_then(|()| refused(&program));
            if let Err(error) = outcome {
                eprintln!("child {number}: {error}");
            }
            if number % 2 == 0 {
                return i32::from(outcome.is_err());
            }
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(outcome.is_err())) }
        });
        if status != 0 {
            died.push(status);
        }
    }
    STOP.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    if !died.is_empty() {
        eprintln!("{} of {count} children ended with {:?}", died.len(), died);
    }
    exit(if died.is_empty() { 3 } else { 1 })
}

/// Children of a program whose threads use arenas and an array that the children use too.
pub(crate) fn beside_shared_objects(program: Program) -> ExitCode {
    static STOP: AtomicBool = AtomicBool::new(false);
    const CHILDREN: usize = 200;
    const THREADS: u64 = 2;
    let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new([const { MaybeUninit::uninit() }; 4096]));
    let fixed: &'static FixedArena<'_, 16> = Box::leak(Box::new(FixedArena::new(memory)));
    let buffers = (0..=THREADS).map(|id| Buffer::new(id, 0, 1, 256)).collect();
    let planned = plan(&Problem::from_buffers(buffers).expect("buffers"), &Options::default());
    let planned = Arena::new(&planned.expect("a plan"), &HostHeap::new().context(), AllocKind::Host);
    let planned = planned.expect("host memory");
    let erased = Dyn::new(HostHeap::new()).devices().expect("devices")[0].context().expect("a heap");
    let queue = erased.queue(QueueOrder::OutOfOrder).expect("a queue");
    let array = Arc::new(UsmVec::<u32, usm_core::Device, _>::zeroed(&queue, 16).expect("memory"));
    let uses: [Box<dyn Fn(u64) + Send + Sync>; 3] = [
        Box::new(move |_| {
            let queue = fixed.context().queue(QueueOrder::InOrder).expect("a queue");
            drop(UsmVec::<u32, usm_core::Host, _>::zeroed(&queue, 16).expect("memory of the arena"));
        }),
        Box::new(move |id| drop(planned.tensor(id).expect("a free tensor").allocation())),
        Box::new(move |_| assert_eq!(array.to_vec(&queue).expect("a copy"), [0; 16])),
    ];
    let uses = Arc::new(uses);
    let mut died = Vec::new();
    for (number, work) in uses.iter().enumerate() {
        STOP.store(false, Ordering::Relaxed);
        let beside = |id: u64| {
            let uses = Arc::clone(&uses);
            thread::spawn(move || {
                while !STOP.load(Ordering::Relaxed) {
                    uses[number](id);
                }
            })
        };
        let threads: Vec<_> = (0..THREADS).map(beside).collect();
        for _ in 0..CHILDREN {
            // SAFETY: ends the process, without the exit handlers.
            let status = child(|| unsafe {
                work(THREADS);
                libc::_exit(0)
            });
            if status != 0 {
                died.push((number, status));
                break;
            }
        }
        STOP.store(true, Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
    if !died.is_empty() {
        eprintln!("children ended: {died:?}");
    }
    drop(program);
    exit(if died.is_empty() { 3 } else { 1 })
}

/// Children of a program while a thread of it builds its first kernel. They end at once, although
/// the thread that builds does not exist in them.
///
/// A first build opens libraries, which register functions for the exit. A child that was forked at
/// that moment waits for ever in glibc, for a lock that `fork` does not free: such a child counts
/// as ended if it ran no function of an exit.
pub(crate) fn while_building(program: Program) -> ExitCode {
    static BUILT: AtomicBool = AtomicBool::new(false);
    static EXITS: AtomicBool = AtomicBool::new(false);
    extern "C" fn exits() {
        EXITS.store(true, Ordering::Relaxed);
    }
    extern "C" fn on_alarm(_: libc::c_int) {
        // SAFETY: ends the process.
        unsafe { libc::_exit(if EXITS.load(Ordering::Relaxed) { 14 } else { 0 }) }
    }
    // SAFETY: the function only stores. It runs before this library's, because it comes later.
    unsafe { libc::atexit(exits) };
    let context = program.contexts[0].clone();
    let builds = thread::spawn(move || {
        build(&context);
        BUILT.store(true, Ordering::Relaxed);
    });
    let mut died = None;
    while died.is_none() {
        let status = child(|| {
            // SAFETY: the handler only loads and ends the process.
            unsafe { libc::signal(libc::SIGALRM, on_alarm as *const () as libc::sighandler_t) };
            0
        });
        died = (status != 0).then_some(status);
        if BUILT.load(Ordering::Relaxed) {
            break;
        }
    }
    builds.join().expect("no panic");
    if let Some(status) = died {
        eprintln!("a child ended with {status}");
    }
    exit(if died.is_none() { 3 } else { 1 })
}

fn on_host(heap: &Context<HostHeap>) -> Result<()> {
    let queue = heap.queue(QueueOrder::InOrder)?;
    let array = UsmVec::<u32, usm_core::Host, _>::zeroed(&queue, 100)?;
    assert!(array.read()?.iter().all(|element| *element == 0));
    Ok(())
}

fn on_erased_host(heap: &Context<Dyn>) -> Result<()> {
    let mut lane = Lane::new(heap, QueueOrder::OutOfOrder, 256)?;
    lane.copy()?;
    lane.queue.wait()
}

/// A runtime that was open in the parent is refused in the child for every call; plain host memory
/// works.
fn refused(program: &Program) -> Result<()> {
    let context = &program.contexts[0];
    let is_host = context.info().backend == BackendKind::Host;
    let (lane, limit) = (&program.lanes[0], core::time::Duration::from_secs(5));
    let request = Request::new(lane.dst.kind(), 64);
    let answers: [(&str, Result<()>); 7] = [
        ("allocate", context.allocate(&request).map(drop)),
        ("queue", context.queue(QueueOrder::InOrder).map(drop)),
        ("barrier", lane.queue.barrier(&[]).map(drop)),
        ("wait", lane.queue.wait()),
        ("synchronize", context.synchronize(limit)),
        ("query", context.query_runtime(64).map(drop)),
        (
            "view",
            if lane.dst.kind() == AllocKind::Device {
                Err(ErrorKind::Forked.into())
            } else {
                lane.dst.wait_for_host(usm_core::Access::Read).map(drop)
            },
        ),
    ];
    for (question, answer) in answers {
        let is_right = match answer {
            Ok(()) => is_host,
            Err(Error { kind: ErrorKind::Forked, .. }) => !is_host,
            Err(_) => false,
        };
        if !is_right {
            eprintln!("{question}: {answer:?}");
            return Err(answer.err().unwrap_or(ErrorKind::DeviceLost.into()));
        }
    }
    Ok(())
}
