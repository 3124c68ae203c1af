//! Mutants of backends: each forwards to the simulated driver, with one fault. The conformance
//! suite must fail on each, and pass without a fault. A suite that hangs or ends the process counts
//! as no detection.

mod faulty;

use core::panic::AssertUnwindSafe;
use core::time::Duration;
use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::Mutex;

use usm_core::backend::mock::{Fault as Injected, Mock, Operation, Progress};
use usm_core::{Context, Device, Error, ErrorKind, Event, Queue, UsmVec};
use usm_tests::{Fixture, Provider, conformance_table, counting};

use crate::Checker;
use faulty::{FAULTS, Fault, Faulty};

/// The fault of the backend under test, global because a provider has no value.
static FAULT: Mutex<Fault> = Mutex::new(Fault::None);

/// Longer than any case that ends.
const LIMIT: Duration = Duration::from_secs(2);

struct OnFaulty;

impl Provider for OnFaulty {
    type Backend = Faulty;

    fn with(case: impl FnOnce(Fixture<'_, Faulty>)) -> Result<(), String> {
        let fault = *FAULT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mock = Mock::new(Progress::OnWait).without_queue_memory();
        let backend = Faulty::new(mock.clone(), fault);
        let context = || backend.context().expect("a context");
        let (one, other) = (context(), context());
        for context in [&one, &other] {
            context.set_wait_limit(LIMIT);
        }
        let driver = mock.clone();
        let failing = move |queue: &Queue<Faulty>| fail_late(&driver, queue);
        case(Fixture { context: &one, other: &other, separate: true, failing: Some(&failing) });
        drop((one, other));
        assert_eq!(mock.violations(), [], "memory was misused");
        Ok(())
    }
}

/// Submits a fill that fails when it runs.
fn fail_late(mock: &Mock, queue: &Queue<Faulty>) -> (Event<Faulty>, Box<dyn FnOnce()>) {
    let mut array = UsmVec::<u8, Device, Faulty>::zeroed(queue, 8).expect("memory");
    let error = Error::from(ErrorKind::Native { operation: "an operation of the test" }).with_native(-5);
    mock.inject(Injected { operation: Operation::Fill, skip: 0, error, late: true });
    (queue.fill(&mut array, 1).expect("a fill"), Box::new(|| ()))
}

/// Runs all cases in order. Returns the first failed case with its message.
fn suite(fault: Fault) -> Result<(), String> {
    *FAULT.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = fault;
    for (name, case) in conformance_table!(OnFaulty) {
        // Mutes the cases: the messages of hundreds would hide the report.
        match catch_unwind(AssertUnwindSafe(case)) {
            Ok(outcome) => outcome.map_err(|reason| format!("{name}: {reason}"))?,
            Err(panic) => return Err(format!("{name}: {}", crate::message(&*panic))),
        }
    }
    Ok(())
}

pub(crate) fn suite_on_faulty_backends() -> Checker {
    let mut checker = Checker::new("conformance suite");
    let hook = take_hook();
    set_hook(Box::new(|_| ()));
    checker.right("a backend that hands everything on", || suite(Fault::None));
    // They write late to memory that is free, such as the blocks that slices are copied through.
    counting::keep_freed_blocks(true);
    for fault in FAULTS {
        checker.wrong(&format!("{fault:?}"), || suite(fault));
    }
    counting::keep_freed_blocks(false);
    set_hook(hook);
    checker
}

impl Faulty {
    fn context(&self) -> usm_core::Result<Context<Self>> {
        let mut device = None;
        usm_core::Backend::for_each_device(self, &mut |found| device = Some(found))?;
        Context::new(self, &device.expect("a device"))
    }
}
