//! The safe handles beside the shortest sequence of driver calls that does the same, and the registry at size.
//!
//! The peer opens the same OpenCL loader and calls it with nothing in between. Where OpenCL USM is not here, its rows are left out
//! with the reason on standard error.

use std::ffi::{c_char, c_void};
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use usm_core::backend::host::HostHeap;
use usm_core::backend::opencl::OpenCl;
use usm_core::{
    AllocKind, Backend, Context, MemorySource, PointerInfo, Queue, QueueOrder, Registry, Request,
};

use crate::row::{Row, microseconds};

const PEER: &str = "driver calls";

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = vec![registry(), books()];
    match opencl() {
        Ok(more) => rows.extend(more),
        Err(reason) => eprintln!("skipped: backends on OpenCL: {reason}"),
    }
    rows.extend(crate::launch::rows());
    rows
}

/// A lookup among 10,000 live allocations; the peer searches a sorted slice that never changes and has no lock.
fn registry() -> Row {
    const LIVE: usize = 10_000;
    let info = |slot: usize| PointerInfo {
        kind: AllocKind::Shared,
        // Spread as an allocator would: 4 KiB blocks with gaps.
        base: 0x7000_0000_0000 + slot * 12_288,
        size: 4096,
        device: Some(0),
        context: 1,
    };
    let registry = Registry::new();
    (0..LIVE).for_each(|slot| registry.insert(info(slot)));
    let sorted: Vec<PointerInfo> = (0..LIVE).map(info).collect();
    let mut addresses = (0..LIVE).map(|step| info(step * 7919 % LIVE).base + 100).collect::<Vec<_>>();
    addresses.rotate_left(17);
    let (mut one, mut two) = (addresses.iter().cycle(), addresses.iter().cycle());
    let (ours, theirs) = microseconds(
        || {
            black_box(registry.find(*one.next().expect("endless")));
        },
        || {
            let address = *two.next().expect("endless");
            let index = sorted.partition_point(|info| info.base <= address);
            black_box(sorted[index - 1].contains(address));
        },
    );
    Row::new("registry query, 10,000 live", "binary search", "ns", ours * 1e3, theirs * 1e3)
}

/// What accounting costs: an allocation of host memory beside the allocator's own call.
fn books() -> Row {
    let context = HostHeap::new().context();
    let request = Request::new(AllocKind::Host, 4096);
    let layout = std::alloc::Layout::from_size_align(4096, 64).expect("a valid layout");
    let (ours, theirs) = microseconds(
        || drop(black_box(context.allocate(&request).expect("memory"))),
        || {
            // SAFETY: the size is not zero.
            let pointer = black_box(unsafe { std::alloc::alloc(layout) });
            // SAFETY: just allocated with this layout.
            unsafe { std::alloc::dealloc(pointer, layout) };
        },
    );
    Row::new("allocate and free 4096 B host", "global allocator", "ns", ours * 1e3, theirs * 1e3)
}

type Raw = *mut c_void;

/// What the peer calls.
struct Driver {
    allocate: unsafe extern "C" fn(Raw, Raw, *const u64, usize, u32, *mut i32) -> Raw,
    free: unsafe extern "C" fn(Raw, Raw) -> i32,
    info: unsafe extern "C" fn(Raw, *const c_void, u32, usize, Raw, *mut usize) -> i32,
    copy: unsafe extern "C" fn(Raw, u32, Raw, *const c_void, usize, u32, *const Raw, *mut Raw) -> i32,
    flush: unsafe extern "C" fn(Raw) -> i32,
    event_info: unsafe extern "C" fn(Raw, u32, usize, Raw, *mut usize) -> i32,
    release_event: unsafe extern "C" fn(Raw) -> i32,
    wait: unsafe extern "C" fn(u32, *const Raw) -> i32,
}

impl Driver {
    fn open(backend: &OpenCl, device: Raw) -> Result<Self, String> {
        type Lookup = unsafe extern "C" fn(Raw, *const c_char) -> Raw;
        type DeviceInfo = unsafe extern "C" fn(Raw, u32, usize, Raw, *mut usize) -> i32;
        // SAFETY: the library is open already.
        let library =
            unsafe { libloading::Library::new(backend.path()) }.map_err(|error| error.to_string())?;
        let library = Box::leak(Box::new(library));
        let mut platform: Raw = ptr::null_mut();
        // SAFETY: the functions have these signatures by specification; CL_DEVICE_PLATFORM of a live device.
        unsafe {
            let ask = library.get::<DeviceInfo>(b"clGetDeviceInfo").map_err(|error| error.to_string())?;
            ask(device, 0x1031, size_of::<Raw>(), (&raw mut platform).cast(), ptr::null_mut());
            let lookup = library
                .get::<Lookup>(b"clGetExtensionFunctionAddressForPlatform")
                .map_err(|error| error.to_string())?;
            let find = |name: &std::ffi::CStr| lookup(platform, name.as_ptr());
            Ok(Self {
                allocate: std::mem::transmute::<
                    Raw,
                    unsafe extern "C" fn(Raw, Raw, *const u64, usize, u32, *mut i32) -> Raw,
                >(find(c"clSharedMemAllocINTEL")),
                free: std::mem::transmute::<Raw, unsafe extern "C" fn(Raw, Raw) -> i32>(find(
                    c"clMemFreeINTEL",
                )),
                info: std::mem::transmute::<
                    Raw,
                    unsafe extern "C" fn(Raw, *const c_void, u32, usize, Raw, *mut usize) -> i32,
                >(find(c"clGetMemAllocInfoINTEL")),
                copy: std::mem::transmute::<
                    Raw,
                    unsafe extern "C" fn(
                        Raw,
                        u32,
                        Raw,
                        *const c_void,
                        usize,
                        u32,
                        *const Raw,
                        *mut Raw,
                    ) -> i32,
                >(find(c"clEnqueueMemcpyINTEL")),
                flush: *library.get(b"clFlush").map_err(|error| error.to_string())?,
                event_info: *library.get(b"clGetEventInfo").map_err(|error| error.to_string())?,
                release_event: *library.get(b"clReleaseEvent").map_err(|error| error.to_string())?,
                wait: *library.get(b"clWaitForEvents").map_err(|error| error.to_string())?,
            })
        }
    }
}

fn opencl() -> Result<Vec<Row>, String> {
    let backend = OpenCl::load().map_err(|error| error.to_string())?;
    let mut device = None;
    backend
        .for_each_device(&mut |candidate| {
            if !OpenCl::device_info(&candidate).capabilities.shared.is_empty() {
                device = device.or(Some(candidate));
            }
        })
        .map_err(|error| error.to_string())?;
    let device = device.ok_or("no device with unified shared memory")?;
    let context = Context::new(&backend, &device).map_err(|error| error.to_string())?;
    let queue = context.queue(QueueOrder::InOrder).map_err(|error| error.to_string())?;
    let driver = Driver::open(&backend, device.as_raw())?;
    let sizes = [4096, 1 << 20];
    let allocations = sizes.map(|size| allocate_and_free(&context, &driver, device.as_raw(), size));
    let idle = sizes.map(|size| copy_and_wait(&queue, &driver, size, Machine::Idle));
    let busy = sizes.map(|size| on_busy_machine(|| copy_and_wait(&queue, &driver, size, Machine::Busy)));
    Ok(allocations.into_iter().chain([query(&context, &driver)]).chain(idle).chain(busy).collect())
}

fn allocate_and_free(context: &Context<OpenCl>, driver: &Driver, device: Raw, size: usize) -> Row {
    let request = Request::new(AllocKind::Shared, size);
    let raw = context.raw().as_raw();
    let (ours, theirs) = microseconds(
        || drop(black_box(context.allocate(&request).expect("memory"))),
        || {
            let mut status = 0;
            // SAFETY: live context and device.
            let pointer = unsafe { (driver.allocate)(raw, device, ptr::null(), size, 64, &raw mut status) };
            // SAFETY: just allocated, unused.
            unsafe { (driver.free)(raw, black_box(pointer)) };
        },
    );
    Row::new(&format!("allocate and free {size} B shared"), PEER, "us", ours, theirs)
}

/// Kind, base and size of an interior pointer; the driver needs three calls for it.
fn query(context: &Context<OpenCl>, driver: &Driver) -> Row {
    let allocation = context.allocate(&Request::new(AllocKind::Shared, 4096)).expect("memory");
    let pointer = allocation.as_ptr().wrapping_add(100);
    let raw = context.raw().as_raw();
    let (ours, theirs) = microseconds(
        || {
            black_box(context.query(black_box(pointer)).expect("an answer"));
        },
        || {
            let mut answer = [0_usize; 3];
            for (place, (what, bytes)) in answer.iter_mut().zip([(0x419A, 4), (0x419B, 8), (0x419C, 8)]) {
                let place = (&raw mut *place).cast();
                // SAFETY: live context, room for the answer.
                unsafe { (driver.info)(raw, pointer.cast(), what, bytes, place, ptr::null_mut()) };
            }
            black_box(answer);
        },
    );
    Row::new("query kind, base and size", PEER, "us", ours, theirs)
}

/// What the rest of the machine does.
#[derive(Clone, Copy)]
enum Machine {
    Idle,
    Busy,
}

/// Measures beside two threads for each processor that never rest.
fn on_busy_machine<T>(measure: impl FnOnce() -> T) -> T {
    let threads = std::thread::available_parallelism().map_or(2, usize::from) * 2;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let measured = measure();
        done.store(true, Ordering::Relaxed);
        measured
    })
}

/// Submission and wait. On an idle machine the peer polls the event as we do, because a wait with a limit has no call of its own;
/// on a busy one that starves the runtime, and the peer waits without a limit.
fn copy_and_wait(queue: &Queue<OpenCl>, driver: &Driver, size: usize, machine: Machine) -> Row {
    let context = queue.context();
    let allocate = || context.allocate(&Request::new(AllocKind::Device, size)).expect("memory");
    let (mut dst, src, raw_dst) = (allocate(), allocate(), allocate());
    let raw = queue.raw().as_raw();
    let poll = |event| {
        // SAFETY: live queue.
        unsafe { (driver.flush)(raw) };
        loop {
            let mut status = 0_i32;
            // SAFETY: live event, room for the answer.
            unsafe { (driver.event_info)(event, 0x11D3, 4, (&raw mut status).cast(), ptr::null_mut()) };
            if status <= 0 {
                break;
            }
            std::thread::yield_now();
        }
    };
    let (ours, theirs) = microseconds(
        || {
            let event = queue.copy_bytes(&mut dst, 0, &src, 0, size).expect("a copy");
            event.wait().expect("done");
        },
        || {
            let mut event = ptr::null_mut();
            let (to, from) = (raw_dst.as_ptr().cast(), src.as_ptr().cast());
            // SAFETY: live queue, disjoint live ranges of that size.
            unsafe { (driver.copy)(raw, 0, to, from, size, 0, ptr::null(), &raw mut event) };
            match machine {
                // SAFETY: a live event.
                Machine::Busy => _ = unsafe { (driver.wait)(1, &raw const event) },
                Machine::Idle => poll(event),
            }
            // SAFETY: owned, once.
            unsafe { (driver.release_event)(event) };
        },
    );
    let (place, peer) = match machine {
        Machine::Idle => ("", PEER),
        Machine::Busy => (", busy machine", "clWaitForEvents"),
    };
    Row::new(&format!("copy {size} B and wait{place}"), peer, "us", ours, theirs)
}
