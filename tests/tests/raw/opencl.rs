//! OpenCL: direct calls of C functions on one side, adopted handles on the other.

mod buffers;

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{self, NonNull};
use std::sync::Arc;

use usm_core::backend::DeviceOps;
use usm_core::{
    AllocKind, Backend, Context, ErrorKind, Event, Fallback, Host, Memory, MemorySource, MemoryType, Queue,
    QueueOrder, Request, Usage, UsmVec,
};
use usm_opencl::raw::{
    borrow_allocation, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_uint, submit,
    take_allocation,
};
use usm_opencl::{OpenCl, OpenClContext, OpenClEvent, OpenClQueue};

use crate::{pattern, round_trip};

type Raw = *mut c_void;
type Status = cl_int;
type CreateContext =
    unsafe extern "C" fn(*const isize, cl_uint, *const Raw, Raw, Raw, *mut Status) -> cl_context;
type CreateQueue = unsafe extern "C" fn(cl_context, cl_device_id, u64, *mut Status) -> cl_command_queue;
type Release = unsafe extern "C" fn(Raw) -> Status;
type Info = unsafe extern "C" fn(Raw, cl_uint, usize, Raw, *mut usize) -> Status;
type Allocate = unsafe extern "C" fn(cl_context, cl_device_id, *const u64, usize, u32, *mut Status) -> Raw;
type Copy = unsafe extern "C" fn(
    cl_command_queue,
    cl_uint,
    Raw,
    *const c_void,
    usize,
    cl_uint,
    *const cl_event,
    *mut cl_event,
) -> Status;

/// The other library: its own objects, with the same loader and device.
struct Theirs {
    library: libloading::Library,
    device: cl_device_id,
    context: cl_context,
    queue: cl_command_queue,
}

impl Theirs {
    fn start(backend: &OpenCl) -> Result<Self, String> {
        let mut device = None;
        backend
            .for_each_device(&mut |found| {
                if !found.info().capabilities.shared.is_empty() {
                    device = device.or(Some(found.as_raw()));
                }
            })
            .map_err(|error| error.to_string())?;
        let device = device.ok_or("no device with unified shared memory")?;
        // SAFETY: the library is open already.
        let library =
            unsafe { libloading::Library::new(backend.path()) }.map_err(|error| error.to_string())?;
        let mut status = 0;
        // SAFETY: signatures of the specification; one device, no properties, no callback.
        let (context, queue) = unsafe {
            let create = library.get::<CreateContext>(b"clCreateContext").unwrap();
            let context =
                create(ptr::null(), 1, &raw const device, ptr::null_mut(), ptr::null_mut(), &raw mut status);
            assert_eq!(status, 0);
            let create = library.get::<CreateQueue>(b"clCreateCommandQueue").unwrap();
            (context, create(context, device, 0, &raw mut status))
        };
        assert_eq!(status, 0);
        Ok(Self { library, device, context, queue })
    }

    fn call<F: core::marker::Copy>(&self, name: &CStr) -> F {
        // SAFETY: the callers name the specification's signatures.
        *unsafe { self.library.get::<F>(name.to_bytes_with_nul()) }.unwrap()
    }

    /// A function of the USM extension.
    fn extension<F: core::marker::Copy>(&self, name: &CStr) -> F {
        type Lookup = unsafe extern "C" fn(Raw, *const c_char) -> Raw;
        let mut platform: Raw = ptr::null_mut();
        let (ask, lookup): (Info, Lookup) =
            (self.call(c"clGetDeviceInfo"), self.call(c"clGetExtensionFunctionAddressForPlatform"));
        // SAFETY: CL_DEVICE_PLATFORM of a live device; the platform has the extension.
        let address = unsafe {
            ask(self.device, 0x1031, size_of::<Raw>(), (&raw mut platform).cast(), ptr::null_mut());
            lookup(platform, name.as_ptr())
        };
        assert!(!address.is_null());
        // SAFETY: as `call`.
        unsafe { core::mem::transmute_copy::<Raw, F>(&address) }
    }

    fn references(&self, info: &CStr, object: Raw, query: cl_uint) -> cl_uint {
        let mut count: cl_uint = 0;
        let ask: Info = self.call(info);
        // SAFETY: a live object, room for the answer.
        assert_eq!(unsafe { ask(object, query, 4, (&raw mut count).cast(), ptr::null_mut()) }, 0);
        count
    }

    fn context_references(&self) -> cl_uint {
        self.references(c"clGetContextInfo", self.context, 0x1080)
    }

    fn queue_references(&self) -> cl_uint {
        self.references(c"clGetCommandQueueInfo", self.queue, 0x1092)
    }

    fn adopt(&self, backend: &OpenCl) -> (Context<OpenCl>, Queue<OpenCl>) {
        // SAFETY: live objects of the loader that the backend opened.
        unsafe {
            let context = Context::from_raw(OpenClContext::from_raw(backend, self.context).unwrap());
            let (queue, order) = OpenClQueue::from_raw(context.raw(), self.queue).unwrap();
            assert_eq!(order, QueueOrder::InOrder);
            let queue = Queue::from_raw(&context, queue, order);
            (context, queue)
        }
    }

    fn allocate(&self, name: &CStr, size: usize) -> NonNull<u8> {
        let mut status = 0;
        let allocate: Allocate = self.extension(name);
        // SAFETY: a live context and a device of it.
        let pointer = unsafe { allocate(self.context, self.device, ptr::null(), size, 64, &raw mut status) };
        assert_eq!(status, 0);
        NonNull::new(pointer.cast()).unwrap()
    }

    fn free(&self, pointer: NonNull<u8>) -> Status {
        let free: unsafe extern "C" fn(cl_context, Raw) -> Status = self.extension(c"clMemFreeINTEL");
        // SAFETY: a live context; the runtime refuses pointers that it does not know.
        unsafe { free(self.context, pointer.as_ptr().cast()) }
    }

    fn release(self) {
        let (queue, context): (Release, Release) =
            (self.call(c"clReleaseCommandQueue"), self.call(c"clReleaseContext"));
        // SAFETY: owned, released once.
        assert_eq!(unsafe { (queue(self.queue), context(self.context)) }, (0, 0));
    }
}

#[track_caller]
fn with(body: impl FnOnce(&OpenCl, Theirs)) {
    let outcome = OpenCl::load()
        .map_err(|error| error.to_string())
        .and_then(|backend| Theirs::start(&backend).map(|theirs| body(&backend, theirs)));
    crate::run("opencl", outcome);
}

#[test]
fn opencl_memory_of_ours_is_copied_by_their_calls() {
    with(|backend, theirs| {
        let before = (theirs.context_references(), theirs.queue_references());
        let (context, queue) = theirs.adopt(backend);
        assert_eq!((context.raw().as_raw(), queue.raw().as_raw()), (theirs.context, theirs.queue));
        let values = pattern(1000);
        let source = UsmVec::<u8, Host, _>::from_slice(&queue, &values).unwrap();
        let mut target = context.allocate(&Request::new(AllocKind::Device, 1000)).unwrap();
        let copy: Copy = theirs.extension(c"clEnqueueMemcpyINTEL");
        let (to, from) = (target.as_ptr(), source.as_ptr());
        let usages = [Usage::write(&target), Usage::read(source.allocation())];
        // SAFETY: the copy stays inside both allocations and waits for the given events.
        let event = unsafe {
            queue.submit(&usages, &[], |queue, after| {
                submit(queue, "their copy", after, |raw, count, list, event| {
                    copy(raw, 0, to.cast(), from.cast(), 1000, count, list, event)
                })
            })
        }
        .unwrap();
        // A second copy, whose event the other side holds. It counts like an event of the backend.
        let mut back = context.allocate(&Request::new(AllocKind::Shared, 1000)).unwrap();
        let mut theirs_event: cl_event = ptr::null_mut();
        let (to, from, waited) =
            (back.as_ptr().cast(), target.as_ptr().cast_const().cast(), event.raw().as_raw());
        // SAFETY: live ranges of that size, ordered after the first copy.
        let status =
            unsafe { copy(theirs.queue, 0, to, from, 1000, 1, &raw const waited, &raw mut theirs_event) };
        assert_eq!(status, 0);
        // SAFETY: a live event of the context; its own reference is released right after.
        let known = unsafe { OpenClEvent::from_raw(context.raw(), theirs_event) }.unwrap();
        let release: Release = theirs.call(c"clReleaseEvent");
        // SAFETY: owned, released once.
        assert_eq!(unsafe { release(theirs_event) }, 0);
        // SAFETY: an event of the context.
        let known = unsafe { Event::from_raw(&context, known) };
        known.wait().unwrap();
        let _ = queue.copy_bytes(&mut target, 0, &back, 0, 1000).unwrap();
        let _ = queue.copy_bytes(&mut back, 0, &target, 0, 1000).unwrap();
        let guard = back.wait_for_host(usm_core::Access::Read).unwrap();
        // SAFETY: shared memory, fully written, and all work has ended.
        assert_eq!(unsafe { core::slice::from_raw_parts(back.as_ptr(), 1000) }, values);
        drop(guard);
        assert!(theirs.context_references() > before.0);
        drop((source, target, back, event, known));
        context.synchronize(core::time::Duration::from_secs(10)).unwrap();
        drop((queue, context));
        // The backend releases queues some time after their work, so the test only checks that they
        // exist.
        assert!(theirs.queue_references() >= before.1);
        theirs.release();
    });
}

#[test]
fn opencl_memory_of_theirs_is_copied_by_ours() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        let (device, shared) = (
            theirs.allocate(c"clDeviceMemAllocINTEL", 4096),
            theirs.allocate(c"clSharedMemAllocINTEL", 4096),
        );
        let owner = Arc::new(());
        {
            // SAFETY: both are freed below, after the last use, and otherwise unused.
            let mut borrowed =
                unsafe { borrow_allocation(&context, device, Box::new(Arc::clone(&owner))) }.unwrap();
            assert_eq!((borrowed.kind(), borrowed.size()), (AllocKind::Device, 4096));
            // SAFETY: allocated by the extension; only this handle uses and frees it.
            let mut taken = unsafe { take_allocation(&context, shared) }.unwrap();
            assert_eq!((taken.kind(), taken.size()), (AllocKind::Shared, 4096));
            let row = *context.stats().of(MemoryType::UsmShared);
            assert_eq!((row.live, row.current), (1, 4096));
            assert_eq!(
                context.stats().of(MemoryType::UsmDevice).live,
                0,
                "the ledger does not count borrowed memory"
            );
            round_trip(&queue, &mut borrowed, &mut taken);
        }
        context.synchronize(core::time::Duration::from_secs(10)).unwrap();
        assert_eq!(Arc::strong_count(&owner), 1, "the owner of borrowed memory is dropped");
        assert_eq!(context.stats().of(MemoryType::UsmShared).live, 0);
        assert_eq!(theirs.free(device), 0, "borrowed memory is still theirs");
        assert_ne!(theirs.free(shared), 0, "taken memory is freed already");
        let stack = [0_u8; 16];
        // SAFETY: refused before anything is read.
        let refused = unsafe { borrow_allocation(&context, NonNull::from(&stack).cast(), Box::new(())) };
        assert!(matches!(refused.unwrap_err().kind, ErrorKind::WrongContext { .. }));
        drop((queue, context));
        theirs.release();
    });
}

/// The runtime's reference counts: every adopted or created object is released once.
#[test]
fn opencl_what_is_retained_or_made_is_released() {
    with(|backend, theirs| {
        let before = theirs.context_references();
        // SAFETY: a live context of the loader that the backend opened.
        let context = unsafe { OpenClContext::from_raw(backend, theirs.context) }.unwrap();
        let context = Context::<OpenCl>::from_raw(context);
        assert_eq!(theirs.context_references(), before + 1);
        let memory = context.allocate_memory(MemoryType::Buffer, 64, 0, Fallback::Refuse).unwrap();
        let Memory::Buffer(buffer) = memory else { panic!("a buffer was asked for") };
        let (raw, retain): (Raw, Release) = (buffer.raw().as_raw(), theirs.call(c"clRetainMemObject"));
        // SAFETY: a live memory object; the reference is released below.
        assert_eq!(unsafe { retain(raw) }, 0);
        let references = || theirs.references(c"clGetMemObjectInfo", raw, 0x1105);
        assert_eq!(references(), 2);
        drop(buffer);
        assert_eq!(references(), 1);
        let release: Release = theirs.call(c"clReleaseMemObject");
        // SAFETY: the reference from above, once.
        assert_eq!(unsafe { release(raw) }, 0);
        drop(context);
        assert_eq!(theirs.context_references(), before);
        theirs.release();
    });
}
