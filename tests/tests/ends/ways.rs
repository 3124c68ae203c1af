//! The ways in which a program ends.

use std::cell::RefCell;
use std::process::{ExitCode, exit};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use usm_core::backend::{Dyn, EventOps as _, HostTasks as _};
use usm_core::{BackendKind, Context, ErrorKind};
use usm_kernel::Executable;
use usm_kernel::prelude::*;

use crate::program::{Lane, Program};
use crate::runtimes::Runtime;
use crate::{LINE, forks, signals};

/// Reverses the array.
#[kernel]
fn turned(a: &mut [f32], from: &[f32]) {
    let i = global_id(0);
    if i < a.len() {
        a[i] = from[a.len() - 1 - i] * 2.0 + 1.0;
    }
}

/// Builds a kernel. Some contexts take none, which is no error here.
pub(crate) fn build(context: &Context<Dyn>) -> bool {
    Executable::<turned, _, 1>::build(context).is_ok()
}

pub(crate) struct Way {
    pub(crate) name: &'static str,
    /// The end of the process, from the system.
    pub(crate) end: &'static str,
    /// Whether the wait limit is shorter than the work.
    pub(crate) is_late: bool,
    /// The program's own lines on standard error.
    pub(crate) may_say: fn(&str) -> bool,
    /// Whether the program ends before a runtime is opened.
    pub(crate) before: fn(),
    pub(crate) go: fn(Program) -> ExitCode,
}

const fn way(name: &'static str, end: &'static str, go: fn(Program) -> ExitCode) -> Way {
    Way { name, end, is_late: false, may_say: |_| false, before: || {}, go }
}

const THREE: &str = "exit status: 3";

pub(crate) const WAYS: &[Way] = &[
    way("return", THREE, |program| {
        drop(program);
        ExitCode::from(3)
    }),
    way("exit", THREE, |_program| exit(3)),
    way("static", THREE, |program| {
        keep(program);
        ExitCode::from(3)
    }),
    way("forget", THREE, |program| {
        core::mem::forget(program);
        ExitCode::from(3)
    }),
    Way {
        may_say: |_| true,
        ..way("panic", "exit status: 101", |_program| panic!("a panic of the program"))
    },
    way("exit_in_a_thread", THREE, |program| {
        keep(program);
        thread::spawn(|| exit(3));
        sleep()
    }),
    way("exit_in_two_threads", THREE, |program| {
        keep(program);
        static BOTH: Barrier = Barrier::new(2);
        for _ in 0..2 {
            thread::spawn(|| {
                BOTH.wait();
                exit(3)
            });
        }
        sleep()
    }),
    Way {
        is_late: true,
        ..way("no_time_to_wait", THREE, |program| {
            program.contexts.iter().for_each(|context| context.set_wait_limit(Duration::ZERO));
            drop(program);
            exit(3)
        })
    },
    way("threads_that_submit", THREE, |program| {
        for mut lane in program.small_lanes(3) {
            // The simulated driver scans all queued work at each step.
            let is_slow = lane.queue.context().info().backend == BackendKind::Mock;
            thread::spawn(move || {
                while lane.copy().is_ok() {
                    if is_slow {
                        thread::sleep(Duration::from_millis(1));
                    }
                }
            });
        }
        keep(program);
        thread::sleep(Duration::from_millis(20));
        exit(3)
    }),
    way("threads_that_wait", THREE, |program| {
        for mut lane in program.small_lanes(3) {
            thread::spawn(move || while lane.copy().and_then(|()| lane.queue.wait()).is_ok() {});
        }
        keep(program);
        thread::sleep(Duration::from_millis(20));
        exit(3)
    }),
    way("threads_that_open_and_drop", THREE, |program| {
        for _ in 0..2 {
            let context = program.contexts[0].clone();
            let order = program.order;
            thread::spawn(
                move || while Lane::new(&context, order, 4096).and_then(|mut lane| lane.copy()).is_ok() {},
            );
        }
        keep(program);
        thread::sleep(Duration::from_millis(20));
        exit(3)
    }),
    way("threads_that_open_contexts", THREE, |program| {
        for _ in 0..2 {
            let (device, order) = (program.device.clone(), program.order);
            let open = move || Lane::new(&device.context()?, order, 4096)?.copy();
            thread::spawn(move || while open().is_ok() {});
        }
        keep(program);
        thread::sleep(Duration::from_millis(20));
        exit(3)
    }),
    way("threads_that_build", THREE, |program| {
        for _ in 0..3 {
            let context = program.contexts[0].clone();
            thread::spawn(move || while build(&context) {});
        }
        keep(program);
        // Any moment of the first build, which loads the runtime's compiler.
        thread::sleep(Duration::from_millis(u64::from(std::process::id() % 300)));
        exit(3)
    }),
    Way {
        before: || at_exit(check_late_task),
        ..way("work_of_a_call_under_way", THREE, |program| {
            let queue = program.lanes[0].queue.clone();
            keep(program);
            exit_beside_a_call(|| {
                let done = || LATE_TASK_RAN.store(true, Ordering::Relaxed);
                // SAFETY: the task accesses no memory of a context.
                let _task = unsafe { Dyn::run(queue.raw(), &[], done) }.expect("a host task");
            })
        })
    },
    Way {
        // Without a limit on the last wait, the process would never end.
        is_late: true,
        ..way("endless_work_of_a_call_under_way", THREE, |program| {
            program.contexts.iter().for_each(|context| context.set_wait_limit(Duration::from_secs(1)));
            let queue = program.lanes[0].queue.clone();
            keep(program);
            exit_beside_a_call(|| {
                // SAFETY: the task accesses no memory of a context.
                let _task = unsafe { Dyn::run(queue.raw(), &[], || sleep()) }.expect("a host task");
            })
        })
    },
    way("queue_dropped_by_a_call_under_way", THREE, |program| {
        let queue = program.contexts[0].queue(program.order).expect("a queue");
        keep(program);
        // No call of a runtime is allowed by then, so the queue cannot say that it is gone.
        exit_beside_a_call(|| drop(queue))
    }),
    way("exit_in_an_observer", THREE, |program| {
        program.contexts[0].set_observer(Some(|_| exit(3)));
        let _made = Lane::new(&program.contexts[0], program.order, 4096);
        ExitCode::FAILURE
    }),
    way("exit_in_an_observer_beside_slow_work", THREE, |program| {
        let slow = || thread::sleep(Duration::from_millis(1500));
        // SAFETY: the task accesses no memory.
        let _slow = unsafe { Dyn::run(program.lanes[2].queue.raw(), &[], slow) }.expect("a host task");
        program.contexts[0].set_observer(Some(|_| exit(3)));
        let _made = Lane::new(&program.contexts[0], program.order, 4096);
        ExitCode::FAILURE
    }),
    way("exit_in_an_observer_of_a_free", THREE, |program| {
        let lane = Lane::new(&program.contexts[0], program.order, 4096).expect("a lane");
        keep(program);
        lane.queue.context().set_observer(Some(|_| exit(3)));
        drop(lane);
        ExitCode::FAILURE
    }),
    way("exit_in_a_handler", THREE, |program| {
        extern "C" fn again() {
            // SAFETY: the C library continues with the remaining handlers.
            unsafe { libc::exit(3) };
        }
        at_exit(again);
        keep(program);
        exit(4)
    }),
    way("exit_in_a_thread_local", THREE, |program| {
        thread_local! {
            static LAST: RefCell<Option<Ends>> = const { RefCell::new(None) };
        }
        thread::spawn(move || LAST.set(Some(Ends { _program: program })));
        sleep()
    }),
    way("dropped_by_a_thread_local", THREE, |program| {
        thread_local! {
            static LAST: RefCell<Option<Program>> = const { RefCell::new(None) };
        }
        LAST.set(Some(program));
        ExitCode::from(3)
    }),
    Way { before: || at_exit(submit_late), ..way("handler_registered_before", THREE, kept) },
    way("handler_registered_after", THREE, |program| {
        at_exit(submit_late);
        kept(program)
    }),
    Way { before: || at_exit(drop_late), ..way("dropped_by_a_handler", THREE, kept) },
    Way {
        is_late: true,
        ..way("exit_in_a_host_task", THREE, |program| {
            let lane = &program.lanes[0];
            // SAFETY: the task accesses no memory.
            let task = unsafe { Dyn::run(lane.queue.raw(), &[], || exit(3)) };
            if let Ok(task) = task {
                let _ = task.wait(Duration::from_secs(1));
            }
            exit(3)
        })
    },
    way("kernel_ends_it", "exit status: 5", |_program| {
        // SAFETY: ends the process.
        unsafe { libc::_exit(5) }
    }),
    way("terminated", "signal: 15 (SIGTERM)", |program| {
        keep(program);
        // SAFETY: no handler is installed.
        unsafe { libc::raise(libc::SIGTERM) };
        sleep()
    }),
    way("exec", "exit status: 6", |_program| {
        use std::os::unix::process::CommandExt as _;

        let error = std::process::Command::new("/bin/sh").args(["-c", "exit 6"]).exec();
        panic!("{error}")
    }),
    way("child_of_a_fork", "exit status: 7", forks::child_ends),
    way("forks", THREE, forks::many),
    way("forks_during_a_build", THREE, forks::while_building),
    way("forks_beside_shared_objects", THREE, forks::beside_shared_objects),
    way("signals", THREE, signals::while_waiting),
];

impl Way {
    /// Whether the process reaches its exit handlers with a runtime: the simulated driver is freed
    /// with its last handle.
    pub(crate) fn waits(&self) -> bool {
        let drops = matches!(
            self.name,
            "return"
                | "panic"
                | "exit_in_a_host_task"
                | "no_time_to_wait"
                | "handler_registered_after"
                | "dropped_by_a_thread_local"
        );
        self.end == THREE && !drops
    }

    /// Whether the way says something about the runtime. A longer wait for work that never
    /// completes does not.
    pub(crate) fn is_for(&self, runtime: &Runtime) -> bool {
        match self.name {
            "signals" | "threads_that_wait" => !runtime.never_answers,
            // The simulated driver runs tasks of any length.
            "exit_in_an_observer_beside_slow_work"
            | "work_of_a_call_under_way"
            | "endless_work_of_a_call_under_way" => runtime.name == "mock",
            // Objects in host memory, whatever the runtime.
            "forks_beside_shared_objects" => runtime.name == "host",
            _ => true,
        }
    }
}

/// Ends the process in its drop, before its content is dropped.
struct Ends {
    _program: Program,
}

impl Drop for Ends {
    fn drop(&mut self) {
        exit(3);
    }
}

static KEPT: OnceLock<Mutex<Option<Program>>> = OnceLock::new();

fn keep(program: Program) {
    assert!(KEPT.set(Mutex::new(Some(program))).is_ok());
}

fn kept(program: Program) -> ExitCode {
    keep(program);
    exit(3)
}

fn taken() -> Option<Program> {
    KEPT.get().and_then(|kept| kept.lock().expect("no panic").take())
}

fn at_exit(handler: extern "C" fn()) {
    // SAFETY: a function of this program, which stays loaded.
    assert_eq!(unsafe { libc::atexit(handler) }, 0);
}

/// Submits work while the process ends: it completes, or is refused with an error, and the process
/// does not crash.
extern "C" fn submit_late() {
    let Some(mut program) = taken() else { return };
    if let Err(error) = program.submit() {
        let is_typed = error.kind == ErrorKind::ProcessEnds && error.to_string().contains("the process ends");
        if !is_typed {
            eprintln!("not {LINE}: {error}");
        }
    }
}

/// Exits beside a thread that is inside a call. After the wait for all earlier work, that thread
/// calls `late`, and leaves its call.
fn exit_beside_a_call(late: impl FnOnce() + Send) -> ! {
    let inside = Barrier::new(2);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _call = usm_core::ends::work().expect("the process runs");
            inside.wait();
            while usm_core::ends::work().is_ok() {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(300));
            late();
        });
        inside.wait();
        exit(3)
    })
}

static LATE_TASK_RAN: AtomicBool = AtomicBool::new(false);

/// Called after this library's handler, as the handlers of runtimes are.
extern "C" fn check_late_task() {
    if !LATE_TASK_RAN.load(Ordering::Relaxed) {
        eprintln!("a runtime ends with work in flight");
    }
}

extern "C" fn drop_late() {
    drop(taken());
}

fn sleep() -> ! {
    loop {
        thread::sleep(Duration::from_secs(60));
    }
}
