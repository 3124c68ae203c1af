//! Level Zero: direct calls of C functions on one side, adopted handles on the other, on the test
//! driver in place of the loader.

use core::ffi::c_void;
use core::ptr::{self, NonNull};
use std::path::PathBuf;
use std::sync::Arc;

use level_zero_sys::*;
use usm_core::ipc::IpcHandle;
use usm_core::{
    AllocKind, Backend, Context, ErrorKind, Event, Host, MemorySource, Queue, QueueOrder, Request, Usage,
    UsmVec,
};
use usm_level_zero::raw::{borrow_allocation, submit, take_allocation};
use usm_level_zero::{LevelZero, LevelZeroContext, LevelZeroDevice, LevelZeroEvent, LevelZeroQueue};

use crate::pattern;

/// Every call here is unsafe in the same way: the handles are live, and each pointer is to a local
/// value that outlives it.
macro_rules! call {
    ($theirs:expr, $name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: see above.
        unsafe { $theirs.functions.$name($($argument),*) }.expect(stringify!($name))
    };
}

/// The other library: its own objects, on the chosen device.
struct Theirs {
    functions: Functions,
    device: LevelZeroDevice,
    context: ze_context_handle_t,
    list: ze_command_list_handle_t,
    event: ze_event_handle_t,
}

fn driver() -> Result<PathBuf, String> {
    let path = std::env::var_os("USM_LEVEL_ZERO_DRIVER").map(PathBuf::from);
    path.ok_or_else(|| "USM_LEVEL_ZERO_DRIVER not set".to_owned())
}

impl Theirs {
    fn start() -> Result<Self, String> {
        let path = driver()?;
        let backend = LevelZero::open(&path).map_err(|error| error.to_string())?;
        let mut device = None;
        backend.for_each_device(&mut |found| device = device.or(Some(found))).expect("devices");
        let device = device.ok_or("no device")?;
        // SAFETY: the driver of the tests, which is open already.
        let library = unsafe { Library::open_at(&path) }.map_err(|error| error.to_string())?;
        let functions = *library.initialize(ze_init_flags_t(0)).expect("a driver").functions();
        let (context, list, event) = Default::default();
        let mut theirs = Self { functions, device, context, list, event };
        let description = ze_context_desc_t::default();
        let context = &raw mut theirs.context;
        call!(theirs, zeContextCreate(device.driver_as_raw(), &raw const description, context));
        let description =
            ze_command_queue_desc_t { flags: ZE_COMMAND_QUEUE_FLAG_IN_ORDER, ..Default::default() };
        let (context, list) = (theirs.context, &raw mut theirs.list);
        call!(theirs, zeCommandListCreateImmediate(context, device.as_raw(), &raw const description, list));
        let mut pool = ze_event_pool_handle_t::NULL;
        let description = ze_event_pool_desc_t { count: 1, ..Default::default() };
        call!(theirs, zeEventPoolCreate(context, &raw const description, 0, ptr::null_mut(), &raw mut pool));
        let (description, event) = (ze_event_desc_t::default(), &raw mut theirs.event);
        call!(theirs, zeEventCreate(pool, &raw const description, event));
        Ok(theirs)
    }

    fn adopt(&self) -> (Context<LevelZero>, Queue<LevelZero>) {
        // SAFETY: live objects of the driver that the backend opened, which outlive the case; the
        // list is in order.
        unsafe {
            let context = Context::from_raw(LevelZeroContext::from_raw(&self.device, self.context));
            let (queue, order) = LevelZeroQueue::from_raw(context.raw(), self.list, QueueOrder::InOrder);
            let queue = Queue::from_raw(&context, queue, order);
            (context, queue)
        }
    }

    fn allocate(&self, size: usize) -> NonNull<u8> {
        let description = ze_host_mem_alloc_desc_t::default();
        let mut pointer = ptr::null_mut();
        call!(self, zeMemAllocHost(self.context, &raw const description, size, 64, &raw mut pointer));
        NonNull::new(pointer.cast()).expect("memory")
    }

    /// Whether the driver knows the pointer.
    fn is_live(&self, pointer: NonNull<u8>) -> bool {
        let mut found = ze_memory_allocation_properties_t::default();
        let place = pointer.as_ptr().cast::<c_void>();
        call!(self, zeMemGetAllocProperties(self.context, place, &raw mut found, ptr::null_mut()));
        found.type_ != ZE_MEMORY_TYPE_UNKNOWN
    }
}

#[track_caller]
fn with(body: impl FnOnce(&Theirs)) {
    crate::run("level_zero", Theirs::start().map(|theirs| body(&theirs)));
}

#[test]
fn their_list_copies_our_memory_and_ours_theirs() {
    with(|theirs| {
        let (context, queue) = theirs.adopt();
        assert_eq!((context.raw().as_raw(), queue.raw().as_raw()), (theirs.context, theirs.list));
        let source = UsmVec::<u8, Host, _>::from_slice(&queue, &pattern(1000)).expect("memory");
        let mut target = UsmVec::<u8, Host, _>::zeroed(&queue, 1000).expect("memory");
        let (to, from) = (target.as_mut_ptr(), source.as_ptr());
        let functions = usm_level_zero::raw::functions(context.raw());
        let usages = [Usage::read(source.allocation()), Usage::write(target.allocation())];
        // SAFETY: both arrays are named as uses, and one append call gets list, event and waits.
        let event = unsafe {
            queue.submit(&usages, &[], |queue, after| {
                submit(queue, "zeCommandListAppendMemoryCopy", after, |list, signal, count, waits| {
                    let append = functions.zeCommandListAppendMemoryCopy.expect("a function of 1.0");
                    append(list, to.cast(), from.cast(), 1000, signal, count, waits)
                })
            })
        };
        event.expect("a copy").wait().expect("done");
        assert_eq!(target.read().expect("a view")[..], pattern(1000));
        drop((source, target, queue, context));
        // Borrowed: the other library's list and context still exist.
        let (_, queue) = theirs.adopt();
        queue.barrier(&[]).expect("a barrier").wait().expect("done");
    });
}

#[test]
fn their_event_is_waited_for() {
    with(|theirs| {
        let (context, _) = theirs.adopt();
        let queue = context.queue(QueueOrder::OutOfOrder).expect("a queue");
        // SAFETY: a live event that is signalled below and outlives the case.
        let event = unsafe { LevelZeroEvent::from_raw(context.raw(), theirs.event) };
        assert_eq!(event.as_raw(), theirs.event);
        // SAFETY: of this context.
        let event = unsafe { Event::from_raw(&context, event) };
        let barrier = queue.barrier(core::slice::from_ref(&event)).expect("a barrier");
        assert_eq!(barrier.status(), Ok(usm_core::EventStatus::Pending));
        call!(theirs, zeEventHostSignal(theirs.event));
        barrier.wait().expect("done");
        event.wait().expect("done");
    });
}

#[test]
fn their_memory_is_borrowed_or_taken() {
    with(|theirs| {
        let (context, queue) = theirs.adopt();
        let (borrowed, taken) = (theirs.allocate(500), theirs.allocate(600));
        let owner = Arc::new(());
        // SAFETY: live until the case ends, and otherwise unused.
        let ours = unsafe { borrow_allocation(&context, borrowed, Box::new(Arc::clone(&owner))) };
        let mut ours = ours.expect("host memory");
        assert_eq!((ours.kind(), ours.size()), (AllocKind::Host, 500));
        let _ = queue.fill_bytes(&mut ours, 0, 500, &[3]).expect("a fill");
        drop(ours);
        queue.wait().expect("idle");
        assert_eq!((Arc::strong_count(&owner), theirs.is_live(borrowed)), (1, true));
        // SAFETY: filled above, and unused since.
        assert_eq!(unsafe { core::slice::from_raw_parts(borrowed.as_ptr(), 500) }, [3; 500]);
        // SAFETY: this handle owns it from now on.
        let ours = unsafe { take_allocation(&context, taken) }.expect("host memory");
        assert_eq!((ours.size(), context.stats().sum.current), (600, 600));
        drop(ours);
        assert!(!theirs.is_live(taken));
        let local = [0_u8; 8];
        // SAFETY: refused.
        let refused = unsafe { take_allocation(&context, NonNull::from(&local[0])) };
        assert!(matches!(refused.expect_err("the stack").kind, ErrorKind::WrongContext { .. }));
    });
}

#[test]
fn contexts_over_one_native_context_reach_each_other() {
    with(|theirs| {
        let ((one, _), (two, _)) = (theirs.adopt(), theirs.adopt());
        assert_eq!(one.enable_peer_access(&two), Ok(()));
        let memory = one.allocate(&Request::new(AllocKind::Device, 64)).expect("memory");
        assert_eq!(two.query(memory.as_ptr()).expect("an answer").kind, AllocKind::Device);
    });
}

#[test]
fn an_exported_block_is_opened_and_closed() {
    with(|theirs| {
        let (context, queue) = theirs.adopt();
        let array = UsmVec::<u32, usm_core::Device, _>::from_slice(&queue, &[9; 100]).expect("memory");
        let handle = array.allocation().export_ipc().expect("device memory");
        let other = Context::from_raw(context.raw().clone());
        // SAFETY: the array outlives the opened memory, and both sides only read.
        let opened = unsafe { other.open_ipc(&handle) }.expect("the driver opens its own handles");
        assert_eq!((opened.kind(), opened.size()), (AllocKind::Device, 400));
        // SAFETY: as above, with a value.
        let opened = unsafe { UsmVec::<u32, usm_core::Device, _>::from_allocation(opened, 100) };
        let opened = opened.map_err(|(_, error)| error).expect("fits");
        assert_eq!(opened.to_vec(&queue).expect("the content"), [9; 100]);
        drop(opened);
        let mut altered = handle.to_bytes();
        altered[24] ^= 1;
        let altered = IpcHandle::from_bytes(&altered).expect("the driver's part is not checked");
        // SAFETY: refused, because the driver has no such memory.
        let refused = unsafe { other.open_ipc(&altered) }.expect_err("no memory");
        assert_eq!(refused.kind, ErrorKind::Native { operation: "zeMemOpenIpcHandle" });
        drop(array);
        // If the driver gives the memory out again, its part of the old handle is that of the new.
        let next = UsmVec::<u32, usm_core::Device, _>::from_slice(&queue, &[1; 100]).expect("memory");
        let mut reused = next.allocation().export_ipc().expect("device memory").to_bytes();
        let name = IpcHandle::BYTES - 16..;
        reused[name.clone()].copy_from_slice(&handle.to_bytes()[name]);
        for stale in [handle, IpcHandle::from_bytes(&reused).expect("a handle")] {
            // SAFETY: refused, because the memory was freed.
            let refused = unsafe { other.open_ipc(&stale) }.expect_err("gone");
            assert_eq!(refused.kind, ErrorKind::StaleIpcHandle);
        }
        let host = UsmVec::<u32, Host, _>::zeroed(&queue, 4).expect("memory");
        let refused = host.allocation().export_ipc().expect_err("host memory");
        assert!(matches!(refused.kind, ErrorKind::Unsupported { .. }));
    });
}
