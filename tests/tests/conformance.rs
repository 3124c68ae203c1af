//! The conformance suite on every backend.

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
    type Backend = FixedHost<'static, 64>;

    fn with(case: impl FnOnce(Fixture<'_, FixedHost<'static, 64>>)) -> Result<(), String> {
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
        let (arena, other) = (arena(1 << 20), arena(1 << 16));
        case(Fixture { context: &arena.context(), other: &other.context(), separate: true, failing: None });
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

fn on_mock(mock: &Mock, case: impl FnOnce(Fixture<'_, Mock>)) {
    let (context, other) = (mock.context(), mock.context());
    let driver = mock.clone();
    let failing = move |queue: &Queue<Mock>| fail_late(&driver, queue);
    case(Fixture { context: &context, other: &other, separate: true, failing: Some(&failing) });
    assert_eq!(mock.violations(), [], "freed while in use");
    drop((context, other));
    assert_eq!(mock.violations(), [], "freed while in use");
}

/// Work runs during a wait; out-of-order work runs in a random legal order.
struct MockOnWait;

impl Provider for MockOnWait {
    type Backend = Mock;

    fn with(case: impl FnOnce(Fixture<'_, Mock>)) -> Result<(), String> {
        on_mock(&Mock::new(Progress::OnWait), case);
        Ok(())
    }
}

/// Host and device must not access the same memory concurrently.
struct MockWithoutConcurrency;

impl Provider for MockWithoutConcurrency {
    type Backend = Mock;

    fn with(case: impl FnOnce(Fixture<'_, Mock>)) -> Result<(), String> {
        on_mock(&Mock::new(Progress::OnWait).without_concurrent_access(), case);
        Ok(())
    }
}

fn on_erased(backend: Dyn, failing: Option<&Failing<Dyn>>, case: impl FnOnce(Fixture<'_, Dyn>)) {
    let device = &backend.devices().expect("devices")[0];
    let context = || -> Context<Dyn> { device.context().expect("a context") };
    case(Fixture { context: &context(), other: &context(), separate: true, failing });
}

struct ErasedHeap;

impl Provider for ErasedHeap {
    type Backend = Dyn;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        on_erased(Dyn::new(HostHeap::new()), None, case);
        Ok(())
    }
}

struct ErasedMock;

impl Provider for ErasedMock {
    type Backend = Dyn;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        let mock = Mock::new(Progress::OnWait);
        let driver = mock.clone();
        let failing = move |queue: &Queue<Dyn>| fail_late(&driver, queue);
        on_erased(Dyn::new(mock.clone()), Some(&failing), case);
        assert_eq!(mock.violations(), [], "freed while in use");
        Ok(())
    }
}

conformance_suite!(heap, Heap);
conformance_suite!(arena, FixedArena);
conformance_suite!(mock, MockOnWait);
conformance_suite!(mock_without_concurrency, MockWithoutConcurrency);
conformance_suite!(erased_heap, ErasedHeap);
conformance_suite!(erased_mock, ErasedMock);
