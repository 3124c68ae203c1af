//! Direct calls of OpenCL.

use std::ffi::{c_char, c_void};
use std::hint::black_box;
use std::ptr;

use usm_core::{Fallback, MemoryType, Queue};
use usm_kernel::Code;
use usm_opencl::{OpenCl, raw};

use super::peer::{self, Events, GROUP, ITEMS, OPENCL_C, Peer, Raw, Turn, function};
use super::strided;
use crate::pairs::{Clock, pairs};
use crate::row::Row;

/// Nanoseconds.
const MICROSECOND: f64 = 1e3;

/// The peer.
struct Driver {
    context: Raw,
    device: Raw,
    queue: Raw,
    allocate: unsafe extern "C" fn(Raw, Raw, *const u64, usize, u32, *mut i32) -> Raw,
    free: unsafe extern "C" fn(Raw, Raw) -> i32,
    info: unsafe extern "C" fn(Raw, *const c_void, u32, usize, Raw, *mut usize) -> i32,
    copy: unsafe extern "C" fn(Raw, u32, Raw, *const c_void, usize, u32, *const Raw, *mut Raw) -> i32,
    flush: unsafe extern "C" fn(Raw) -> i32,
    event_info: unsafe extern "C" fn(Raw, u32, usize, Raw, *mut usize) -> i32,
    release: unsafe extern "C" fn(Raw) -> i32,
    wait: unsafe extern "C" fn(u32, *const Raw) -> i32,
}

pub(super) fn rows() -> Result<Vec<Row>, String> {
    let context = peer::context(&OpenCl::load().map_err(|error| error.to_string())?)?;
    let queue = peer::queue(&context)?;
    let driver = Driver::of(&queue)?;
    let mut rows = peer::memory_rows("OpenCL", &queue, &driver, &());
    rows.extend(buffer_rows(&queue, &driver)?);
    rows.extend(strided::rows("OpenCL", &queue, &driver));
    rows.extend(peer::busy_rows("OpenCL", &queue, &driver, |event| driver.wait_without_limit(event)));
    let kernel = driver.kernel(&queue)?;
    let source = OPENCL_C.to_str().map_err(|error| error.to_string())?;
    let code = Code::OpenClC(source);
    // Without the event of the previous launch, the runtime runs an operation of an in-order queue
    // although the previous one failed.
    let launch = |turn: Turn| kernel.launch(turn.address, turn.before.as_slice());
    rows.extend(peer::launch_rows(
        "OpenCL",
        &queue,
        code,
        (&driver, &()),
        ("same calls", Events::Kept),
        launch,
    )?);
    let launch = |turn: Turn| kernel.launch(turn.address, &[]);
    let bare = ("no failures, no events", Events::Dropped);
    rows.extend(peer::launch_rows("OpenCL", &queue, code, (&driver, &()), bare, launch)?);
    Ok(rows)
}

/// Makes and releases a buffer: ours, which is zero, beside the driver's with arbitrary content,
/// and beside one that the driver fills with zeros on a queue.
fn buffer_rows(queue: &Queue<OpenCl>, driver: &Driver) -> Result<Vec<Row>, String> {
    let context = queue.context();
    let find = |name| raw::function(context.raw(), name);
    let create = function!(find, c"clCreateBuffer", fn(Raw, u64, usize, Raw, *mut i32) -> Raw);
    let fill = function!(
        find,
        c"clEnqueueFillBuffer",
        fn(Raw, Raw, *const c_void, usize, usize, usize, u32, *const Raw, *mut Raw) -> i32
    );
    let finish = function!(find, c"clFinish", fn(Raw) -> i32);
    let release = function!(find, c"clReleaseMemObject", fn(Raw) -> i32);
    let mut rows = Vec::new();
    for size in [4096, 1 << 20] {
        let make = || {
            // SAFETY: a live context, no host pointer.
            unsafe { create(driver.context, 1, size, ptr::null_mut(), ptr::null_mut()) }
        };
        let ours = || {
            let memory = context.allocate_memory(MemoryType::Buffer, size, 0, Fallback::Refuse);
            drop(black_box(memory.expect("a buffer")));
        };
        let theirs = || {
            // SAFETY: just made, unused.
            unsafe { release(black_box(make())) };
        };
        let fill_and_release = || {
            let (buffer, zero) = (make(), 0_u128);
            // SAFETY: a live queue and buffer of that size; it is released once nothing uses it.
            unsafe {
                let pattern = (&raw const zero).cast();
                fill(driver.queue, buffer, pattern, 16, 0, size, 0, ptr::null(), ptr::null_mut());
                finish(driver.queue);
                release(black_box(buffer));
            }
        };
        let case = format!("OpenCL: create and release a buffer of {size} B");
        rows.push(pairs(Clock::Thread, ours, theirs).row(&case, "without zeros", "us", MICROSECOND));
        rows.push(pairs(Clock::Process, ours, fill_and_release).row(
            &case,
            "zeros by a fill",
            "us",
            MICROSECOND,
        ));
    }
    Ok(rows)
}

impl Driver {
    fn of(queue: &Queue<OpenCl>) -> Result<Self, String> {
        let context = queue.context().raw();
        let find = |name| raw::function(context, name);
        let extension = |name| raw::extension_function(context, name);
        Ok(Self {
            context: context.as_raw(),
            device: raw::device(context),
            queue: queue.raw().as_raw(),
            allocate: function!(
                extension,
                c"clSharedMemAllocINTEL",
                fn(Raw, Raw, *const u64, usize, u32, *mut i32) -> Raw
            ),
            free: function!(extension, c"clMemFreeINTEL", fn(Raw, Raw) -> i32),
            info: function!(
                extension,
                c"clGetMemAllocInfoINTEL",
                fn(Raw, *const c_void, u32, usize, Raw, *mut usize) -> i32
            ),
            copy: function!(
                extension,
                c"clEnqueueMemcpyINTEL",
                fn(Raw, u32, Raw, *const c_void, usize, u32, *const Raw, *mut Raw) -> i32
            ),
            flush: function!(find, c"clFlush", fn(Raw) -> i32),
            event_info: function!(find, c"clGetEventInfo", fn(Raw, u32, usize, Raw, *mut usize) -> i32),
            release: function!(find, c"clReleaseEvent", fn(Raw) -> i32),
            wait: function!(find, c"clWaitForEvents", fn(u32, *const Raw) -> i32),
        })
    }

    fn wait_without_limit(&self, event: Raw) {
        // SAFETY: a live event.
        unsafe { (self.wait)(1, &raw const event) };
        self.release(event);
    }

    fn kernel(&self, queue: &Queue<OpenCl>) -> Result<Kernel<'_>, String> {
        let context = queue.context().raw();
        let find = |name| raw::function(context, name);
        let extension = |name| raw::extension_function(context, name);
        let create = function!(
            find,
            c"clCreateProgramWithSource",
            fn(Raw, u32, *const *const c_char, *const usize, *mut i32) -> Raw
        );
        let build =
            function!(find, c"clBuildProgram", fn(Raw, u32, *const Raw, *const c_char, Raw, Raw) -> i32);
        let kernel_of = function!(find, c"clCreateKernel", fn(Raw, *const c_char, *mut i32) -> Raw);
        let set_info = function!(find, c"clSetKernelExecInfo", fn(Raw, u32, usize, *const c_void) -> i32);
        let source = OPENCL_C.as_ptr();
        let yes = 1_u32;
        // SAFETY: live context and device, a source that ends in NUL; the kernel exists in it.
        let kernel = unsafe {
            let program = create(self.context, 1, &raw const source, ptr::null(), ptr::null_mut());
            build(program, 1, &raw const self.device, ptr::null(), ptr::null_mut(), ptr::null_mut());
            let kernel = kernel_of(program, c"scale".as_ptr(), ptr::null_mut());
            for flag in [0x4200, 0x4201, 0x4202] {
                set_info(kernel, flag, 4, (&raw const yes).cast());
            }
            kernel
        };
        Ok(Kernel {
            driver: self,
            kernel,
            set: function!(find, c"clSetKernelArg", fn(Raw, u32, usize, *const c_void) -> i32),
            set_pointer: function!(
                extension,
                c"clSetKernelArgMemPointerINTEL",
                fn(Raw, u32, *const c_void) -> i32
            ),
            enqueue: function!(
                find,
                c"clEnqueueNDRangeKernel",
                fn(Raw, Raw, u32, *const usize, *const usize, *const usize, u32, *const Raw, *mut Raw) -> i32
            ),
        })
    }
}

impl Peer for Driver {
    fn allocate_and_free(&self, size: usize) {
        let mut status = 0;
        // SAFETY: live context and device.
        let pointer =
            unsafe { (self.allocate)(self.context, self.device, ptr::null(), size, 64, &raw mut status) };
        // SAFETY: just allocated, unused.
        unsafe { (self.free)(self.context, black_box(pointer)) };
    }

    /// Three calls.
    fn query(&self, address: *const c_void) {
        let mut answer = [0_usize; 3];
        for (place, (what, bytes)) in answer.iter_mut().zip([(0x419A, 4), (0x419B, 8), (0x419C, 8)]) {
            let place = (&raw mut *place).cast();
            // SAFETY: live context, room for the answer.
            unsafe { (self.info)(self.context, address, what, bytes, place, ptr::null_mut()) };
        }
        black_box(answer);
    }

    fn copy(&self, dst: Raw, src: *const c_void, len: usize) -> Raw {
        let mut event = ptr::null_mut();
        // SAFETY: live queue, disjoint live ranges of that size.
        unsafe { (self.copy)(self.queue, 0, dst, src, len, 0, ptr::null(), &raw mut event) };
        event
    }

    fn poll(&self, event: Raw) {
        // SAFETY: live queue.
        unsafe { (self.flush)(self.queue) };
        loop {
            let mut status = 0_i32;
            // SAFETY: live event, room for the answer.
            unsafe { (self.event_info)(event, 0x11D3, 4, (&raw mut status).cast(), ptr::null_mut()) };
            if status <= 0 {
                break;
            }
            std::thread::yield_now();
        }
    }

    fn release(&self, event: Raw) {
        // SAFETY: owned, once.
        unsafe { (self.release)(event) };
    }
}

struct Kernel<'d> {
    driver: &'d Driver,
    kernel: Raw,
    set: unsafe extern "C" fn(Raw, u32, usize, *const c_void) -> i32,
    set_pointer: unsafe extern "C" fn(Raw, u32, *const c_void) -> i32,
    enqueue: unsafe extern "C" fn(
        Raw,
        Raw,
        u32,
        *const usize,
        *const usize,
        *const usize,
        u32,
        *const Raw,
        *mut Raw,
    ) -> i32,
}

impl Kernel<'_> {
    fn launch(&self, address: Raw, after: &[Raw]) -> Raw {
        let (by, global, local, mut event) = (1.0_f32, ITEMS, GROUP, ptr::null_mut());
        let list = if after.is_empty() { ptr::null() } else { after.as_ptr() };
        // SAFETY: live queue, kernel and events, arguments of its types, an array with an element
        // for each item.
        unsafe {
            (self.set_pointer)(self.kernel, 0, address);
            (self.set)(self.kernel, 1, 4, (&raw const by).cast());
            (self.set)(self.kernel, 2, 4 * GROUP, ptr::null());
            (self.enqueue)(
                self.driver.queue,
                self.kernel,
                1,
                ptr::null(),
                &raw const global,
                &raw const local,
                after.len() as u32,
                list,
                &raw mut event,
            );
        }
        event
    }
}
