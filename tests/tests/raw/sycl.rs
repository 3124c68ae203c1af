//! SYCL: direct calls of dpctl's C library on one side, adopted handles on the other.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::NonNull;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use usm_core::backend::Backend;
use usm_core::{
    AllocKind, Context, ErrorKind, Event, Host, MemorySource, MemoryType, Queue, QueueOrder, Request, Usage,
    UsmVec,
};
use usm_sycl::raw::{borrow_allocation, submit, take_allocation};
use usm_sycl::{Dpctl, DpctlContext, DpctlEvent, DpctlQueue};

use usm_tests::process;

use crate::{pattern, round_trip};

type Ref = *mut c_void;
type Delete = unsafe extern "C" fn(Ref);
type Copy = unsafe extern "C" fn(Ref, Ref, *const c_void, usize, *const Ref, usize) -> Ref;

/// The other library: its own objects, with the same path.
struct Theirs {
    library: libloading::Library,
    device: Ref,
    context: Ref,
    queue: Ref,
}

impl Theirs {
    fn start(backend: &Dpctl) -> Result<Self, String> {
        // SAFETY: the library is open already.
        let library =
            unsafe { libloading::Library::new(backend.path()) }.map_err(|error| error.to_string())?;
        let mut theirs =
            Self { library, device: Ref::default(), context: Ref::default(), queue: Ref::default() };
        let selector: unsafe extern "C" fn() -> Ref = theirs.call(c"DPCTLDefaultSelector_Create");
        let select: unsafe extern "C" fn(Ref) -> Ref = theirs.call(c"DPCTLDevice_CreateFromSelector");
        let create: unsafe extern "C" fn(Ref, Ref, c_int) -> Ref = theirs.call(c"DPCTLContext_Create");
        let queue: unsafe extern "C" fn(Ref, Ref, Ref, c_int) -> Ref = theirs.call(c"DPCTLQueue_Create");
        // SAFETY: signatures of the C headers; each result is passed on alive and deleted below.
        unsafe {
            let selector = selector();
            theirs.device = select(selector);
            theirs.call::<Delete>(c"DPCTLDeviceSelector_Delete")(selector);
            if theirs.device.is_null() {
                return Err("no SYCL device".into());
            }
            theirs.context = create(theirs.device, Ref::default(), 0);
            theirs.queue = queue(theirs.context, theirs.device, Ref::default(), 1 << 1);
        }
        assert!(!theirs.context.is_null() && !theirs.queue.is_null());
        Ok(theirs)
    }

    fn call<F: core::marker::Copy>(&self, name: &CStr) -> F {
        // SAFETY: the callers name the signatures of the C headers.
        *unsafe { self.library.get::<F>(name.to_bytes_with_nul()) }.unwrap()
    }

    fn adopt(&self, backend: &Dpctl) -> (Context<Dpctl>, Queue<Dpctl>) {
        let (native, queue) = (NonNull::new(self.context).unwrap(), NonNull::new(self.queue).unwrap());
        // SAFETY: live objects of the library that the backend opened.
        unsafe {
            let context = Context::from_raw(DpctlContext::from_raw(backend, native).unwrap());
            let (queue, order) = DpctlQueue::from_raw(context.raw(), queue).unwrap();
            assert_eq!(order, QueueOrder::InOrder);
            let queue = Queue::from_raw(&context, queue, order);
            (context, queue)
        }
    }

    fn allocate(&self, name: &CStr, size: usize) -> NonNull<u8> {
        let allocate: unsafe extern "C" fn(usize, Ref) -> Ref = self.call(name);
        // SAFETY: a live queue.
        NonNull::new(unsafe { allocate(size, self.queue) }.cast()).unwrap()
    }

    /// Kind of a pointer; 0 if the context does not know it.
    fn kind(&self, pointer: NonNull<u8>) -> c_int {
        let ask: unsafe extern "C" fn(*const c_void, Ref) -> c_int = self.call(c"DPCTLUSM_GetPointerType");
        // SAFETY: a live context, and the pointer is only looked up.
        unsafe { ask(pointer.as_ptr().cast(), self.context) }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        for (name, object) in [
            (c"DPCTLQueue_Delete", self.queue),
            (c"DPCTLContext_Delete", self.context),
            (c"DPCTLDevice_Delete", self.device),
        ] {
            let delete: Delete = self.call(name);
            // SAFETY: owned or NULL, deleted once.
            unsafe { delete(object) };
        }
    }
}

#[track_caller]
fn with(body: impl FnOnce(&Dpctl, Theirs)) {
    let outcome = Dpctl::load()
        .map_err(|error| error.to_string())
        .and_then(|backend| Theirs::start(&backend).map(|theirs| body(&backend, theirs)));
    crate::run("sycl", outcome);
}

#[test]
fn sycl_memory_of_ours_is_copied_by_their_calls() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        let values = pattern(1000);
        let source = UsmVec::<u8, Host, _>::from_slice(&queue, &values).unwrap();
        let target = context.allocate(&Request::new(AllocKind::Device, 1000)).unwrap();
        let mut back = context.allocate(&Request::new(AllocKind::Shared, 1000)).unwrap();
        let copy: Copy = theirs.call(c"DPCTLQueue_MemcpyWithEvents");
        let (to, from) = (target.as_ptr(), source.as_ptr());
        let usages = [Usage::write(&target), Usage::read(source.allocation())];
        // SAFETY: the copy stays inside both allocations and waits for the given events.
        let event = unsafe {
            queue.submit(&usages, &[], |queue, after| {
                submit(queue, "their copy", after, |raw, events, count| {
                    copy(raw, to.cast(), from.cast(), 1000, events, count)
                })
            })
        }
        .unwrap();
        let (to, waited) = (back.as_ptr().cast(), event.raw().as_raw().as_ptr());
        // SAFETY: live ranges of that size, ordered after the first copy.
        let theirs_event =
            unsafe { copy(theirs.queue, to, target.as_ptr().cast(), 1000, &raw const waited, 1) };
        let native = NonNull::new(theirs_event).unwrap();
        // SAFETY: a live event of the context. The backend copies it, so the original may be
        // deleted at once.
        let known =
            unsafe { Event::from_raw(&context, DpctlEvent::from_raw(context.raw(), native).unwrap()) };
        let delete: Delete = theirs.call(c"DPCTLEvent_Delete");
        // SAFETY: owned, deleted once.
        unsafe { delete(theirs_event) };
        known.wait().unwrap();
        let _ = queue.copy_bytes(&mut back, 0, &target, 0, 1000).unwrap();
        let guard = back.wait_for_host(usm_core::Access::Read).unwrap();
        // SAFETY: shared memory, fully written, and all work has ended.
        assert_eq!(unsafe { core::slice::from_raw_parts(back.as_ptr(), 1000) }, values);
        drop(guard);
        // Each side has its own objects, so the other library's may be deleted first.
        drop(theirs);
        let _ = queue.copy_bytes(&mut back, 0, &target, 0, 1000).unwrap();
        queue.wait().unwrap();
    });
}

#[test]
fn sycl_memory_of_theirs_is_copied_by_ours() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        let (device, shared) =
            (theirs.allocate(c"DPCTLmalloc_device", 4096), theirs.allocate(c"DPCTLmalloc_shared", 4096));
        let owner = Arc::new(());
        {
            // SAFETY: freed below, after the last use, and otherwise unused.
            let mut borrowed =
                unsafe { borrow_allocation(&context, device, 4096, Box::new(Arc::clone(&owner))) }.unwrap();
            // SAFETY: allocated with that size; only this handle uses and frees it.
            let mut taken = unsafe { take_allocation(&context, shared, 4096) }.unwrap();
            assert_eq!((borrowed.kind(), taken.kind()), (AllocKind::Device, AllocKind::Shared));
            assert_eq!(context.stats().of(MemoryType::UsmShared).current, 4096);
            round_trip(&queue, &mut borrowed, &mut taken);
        }
        context.synchronize(Duration::from_secs(10)).unwrap();
        assert_eq!(Arc::strong_count(&owner), 1, "the owner of borrowed memory is dropped");
        assert_eq!((theirs.kind(device), theirs.kind(shared)), (1, 0), "borrowed lives, taken is freed");
        let free: unsafe extern "C" fn(Ref, Ref) = theirs.call(c"DPCTLfree_with_context");
        // SAFETY: owned by the other library, freed once.
        unsafe { free(device.as_ptr().cast(), theirs.context) };
        let stack = [0_u8; 16];
        // SAFETY: refused before any read.
        let refused = unsafe { borrow_allocation(&context, NonNull::from(&stack).cast(), 16, Box::new(())) };
        assert!(matches!(refused.unwrap_err().kind, ErrorKind::WrongContext { .. }));
    });
}

/// Tells this program, run again, that only one test runs in it.
const MEASURE: &str = "USM_TEST_MEASURES_IMPORTS";

/// A queue that was imported and handed on, and got no work, leaves nothing behind: not even for
/// the seconds that a queue with work stays. A process of its own measures its resident memory,
/// because the other tests of this program allocate meanwhile.
#[test]
fn sycl_queues_without_work_are_released_at_once() {
    if std::env::var_os(MEASURE).is_some() {
        return with(measure_imports);
    }
    with(|_, _| {
        let name = "sycl::sycl_queues_without_work_are_released_at_once";
        let ended = process::again(MEASURE, "", Duration::from_secs(120), |command| {
            command.args(["--exact", name, "--nocapture"]).stderr(Stdio::piped());
        });
        assert!(ended.well() && ended.out.contains("1 passed"), "{}: {}", ended.end, ended.errors);
    });
}

fn measure_imports(backend: &Dpctl, theirs: Theirs) {
    let (context, _) = theirs.adopt(backend);
    let native = NonNull::new(theirs.queue).unwrap();
    // Resident memory in bytes.
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        pages.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0) * 4096_usize
    };
    let grown_by_imports = || {
        let before = resident();
        for _ in 0..500 {
            // SAFETY: a live queue of the library that the backend opened, and of the context.
            let (queue, order) = unsafe { DpctlQueue::from_raw(context.raw(), native) }.unwrap();
            // SAFETY: of the context, with this order.
            drop(unsafe { Queue::from_raw(&context, queue, order) });
        }
        resident().saturating_sub(before)
    };
    // The minimum of several: the first imports fill the allocator's caches.
    let grown = (0..4).map(|_| grown_by_imports()).min().unwrap();
    assert!(grown < 256 << 10, "500 imports left {grown} bytes behind");
}

/// A copy of the library is a separate library with the same runtime below it.
#[test]
fn sycl_events_of_another_library_are_refused() {
    with(|backend, _| {
        let folder = std::env::temp_dir().join(format!("usm-dpctl-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let copy = folder.join("libDPCTLSyclInterface.so");
        std::fs::copy(backend.path(), &copy).unwrap();
        let other = Dpctl::open(&copy).expect("its dependencies are loaded");
        let device = |backend: &Dpctl| {
            let mut first = None;
            backend.for_each_device(&mut |device| _ = first.get_or_insert(device)).unwrap();
            first.expect("a device")
        };
        let (ours, theirs) = (device(backend), device(&other));
        let context = |backend, device| Context::new(backend, device).unwrap();
        let (here, there) = (context(backend, &ours), context(&other, &theirs));
        assert!(here.can_access_peer(&here).unwrap() && !here.can_access_peer(&there).unwrap());
        let error = here.enable_peer_access(&there).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Unsupported { .. }), "{error}");
        let (near, far) =
            (here.queue(QueueOrder::InOrder).unwrap(), there.queue(QueueOrder::InOrder).unwrap());
        let event = far.barrier(&[]).unwrap();
        let (expected, found) = (here.id(), there.id());
        let refused = near.barrier(core::slice::from_ref(&event)).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::WrongContext { expected, found });
        let _ = far.barrier(&[event]).unwrap();
        far.wait().unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    });
}
