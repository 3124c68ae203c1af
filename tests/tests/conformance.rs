//! The conformance suite on the backends that are always present. One of them runs it without the
//! erased backend: the suite is compiled anew for each type, a minute of processor time.

use core::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

use usm_core::backend::Dyn;
use usm_core::backend::host::{Arena, FixedHost, HostHeap};
use usm_core::backend::mock::{Fault, Mock, Operation, Progress};
use usm_core::{Backend, Context, Device, Error, ErrorKind, Event, Queue, UsmVec};
use usm_tests::{Failing, Fixture, Provider, conformance_suite};

struct Heap;

impl Provider for Heap {
    type Backend = HostHeap;

    fn with(case: impl FnOnce(Fixture<'_, HostHeap>)) -> Result<(), String> {
        let backend = HostHeap::new();
        case(Fixture {
            context: &backend.context(),
            other: &backend.context(),
            separate: true,
            failing: None,
        });
        Ok(())
    }
}

struct FixedArena;

impl Provider for FixedArena {
    type Backend = Dyn;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        /// Arenas are never freed, because a provider's backend is `'static`. They stay reachable,
        /// so that a leak search finds only real leaks.
        static ARENAS: Mutex<Vec<&'static Arena<'static, 64>>> = Mutex::new(Vec::new());
        let arena = |bytes: usize| -> &'static Arena<'static, 64> {
            let arena: &Arena<'_, 64> = Box::leak(Box::new(Arena::new(Box::leak(
                vec![MaybeUninit::uninit(); bytes].into_boxed_slice(),
            ))));
            ARENAS.lock().unwrap_or_else(PoisonError::into_inner).push(arena);
            arena
        };
        let context = |bytes: usize| erased_context(&Dyn::new(FixedHost::new(arena(bytes))));
        case(Fixture { context: &context(1 << 20), other: &context(1 << 16), separate: true, failing: None });
        Ok(())
    }
}

/// A fill that the mock makes fail when it runs, during a wait.
fn fail_late<B: Backend>(mock: &Mock, queue: &Queue<B>) -> (Event<B>, Box<dyn FnOnce()>) {
    let mut array = UsmVec::<u8, Device, B>::uninit(queue.context(), 8).expect("memory");
    let error = Error::from(ErrorKind::Native { operation: "an operation of the test" }).with_native(-5);
    mock.inject(Fault { operation: Operation::Fill, skip: 0, error, late: true });
    // SAFETY: nothing reads it.
    let memory = unsafe { array.allocation_mut() };
    (queue.fill_bytes(memory, 0, 8, &[1]).expect("a fill"), Box::new(|| ()))
}

fn on_mock(mock: &Mock, case: impl FnOnce(Fixture<'_, Dyn>)) {
    let driver = mock.clone();
    let failing = move |queue: &Queue<Dyn>| fail_late(&driver, queue);
    on_erased(&Dyn::new(mock.clone()), Some(&failing), case);
    assert_eq!(mock.violations(), [], "freed while in use");
}

/// Work runs during a wait; out-of-order work runs in a random legal order.
struct MockOnWait;

impl Provider for MockOnWait {
    type Backend = Dyn;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        on_mock(&Mock::new(Progress::OnWait), case);
        Ok(())
    }
}

/// Host and device must not access the same memory concurrently.
struct MockWithoutConcurrency;

impl Provider for MockWithoutConcurrency {
    type Backend = Dyn;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        on_mock(&Mock::new(Progress::OnWait).without_concurrent_access(), case);
        Ok(())
    }
}

fn erased_context(backend: &Dyn) -> Context<Dyn> {
    backend.devices().expect("devices")[0].context().expect("a context")
}

fn on_erased(backend: &Dyn, failing: Option<&Failing<Dyn>>, case: impl FnOnce(Fixture<'_, Dyn>)) {
    let (context, other) = (erased_context(backend), erased_context(backend));
    case(Fixture { context: &context, other: &other, separate: true, failing });
}

struct ErasedHeap;

impl Provider for ErasedHeap {
    type Backend = Dyn;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        on_erased(&Dyn::new(HostHeap::new()), None, case);
        Ok(())
    }
}

conformance_suite!(heap, Heap);
conformance_suite!(arena, FixedArena);
conformance_suite!(mock, MockOnWait);
conformance_suite!(mock_without_concurrency, MockWithoutConcurrency);
conformance_suite!(erased_heap, ErasedHeap);
