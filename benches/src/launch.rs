//! Launches through the safe API beside the driver calls that do the same: same context, same queue, same kernel source.
//!
//! Both set the three arguments of every launch and ask for its event. One row waits for each launch, the other for the last of 32, which on an
//! in-order queue is the cost of a submission and little else.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::hint::black_box;
use std::ptr::{self, NonNull};

use usm_core::backend::dpctl::{self, Dpctl};
use usm_core::backend::opencl::{self, OpenCl};
use usm_core::{Backend, Context, Device, Event, Queue, QueueOrder, UsmVec};
use usm_kernel::{ArgumentError, Code, Declared, Launch, Local, Module, NdRange, Programmable, Value, Write};

use crate::row::{Row, microseconds};

type Raw = *mut c_void;
type Scale<B> = Declared<(Write<f32>, Value<f32>), (Local<f32>,), B, 1>;

const SOURCE: &CStr = c"__kernel void scale(__global float *a, float by, __local float *lm) {
    const size_t i = get_global_id(0), l = get_local_id(0);
    lm[l] = a[i] * by;
    a[i] = lm[l];
}";
const ITEMS: usize = 64;
const GROUP: usize = 16;
const IN_A_ROW: usize = 32;

pub(crate) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, measured) in [("OpenCL", on_opencl()), ("SYCL", on_sycl())] {
        match measured {
            Ok(more) => rows.extend(more),
            Err(reason) => eprintln!("skipped: launches on {name}: {reason}"),
        }
    }
    rows
}

fn context<B: Backend>(backend: &B) -> Result<Context<B>, String> {
    let mut device = None;
    let visited = backend.for_each_device(&mut |candidate| {
        if !B::device_info(&candidate).capabilities.device.is_empty() {
            device.get_or_insert(candidate);
        }
    });
    visited.map_err(|error| error.to_string())?;
    let device = device.ok_or("no device with unified shared memory")?;
    Context::new(backend, &device).map_err(|error| error.to_string())
}

/// What both sides launch, ours by a declared signature.
struct Bench<B: Programmable> {
    queue: Queue<B>,
    a: UsmVec<f32, Device, B>,
    scale: Scale<B>,
}

impl<B: Programmable> Bench<B> {
    fn new(context: &Context<B>) -> Result<Self, String> {
        let source = SOURCE.to_str().map_err(|error| error.to_string())?;
        let module = Module::build(context, Code::OpenClC(source)).map_err(|error| error.to_string())?;
        let function = module.function("scale").map_err(|error| error.to_string())?;
        // SAFETY: an item has its own element of the array and of local memory.
        let scale = unsafe {
            Scale::new(&function, |range, lengths, locals| {
                ArgumentError::at_least(lengths, 0, range.global().items())?;
                ArgumentError::local_at_least(locals, 0, range.local().items())
            })
        };
        let queue = context.queue(QueueOrder::InOrder).map_err(|error| error.to_string())?;
        let a = UsmVec::zeroed(&queue, ITEMS).map_err(|error| error.to_string())?;
        Ok(Self { queue, a, scale: scale.map_err(|error| error.to_string())? })
    }

    fn launch(&mut self) -> Event<B> {
        let range = NdRange::new([ITEMS as u64], [GROUP as u64]).expect("a range");
        let launch = Launch::new(&self.queue, range);
        launch.declared(&self.scale, (&mut self.a, 1.0), [GROUP]).expect("a launch")
    }

    /// Both rows; `launch` gives a native event, `wait` waits for it and releases it, `release` releases another.
    fn rows(
        mut self,
        name: &str,
        launch: impl Fn(Raw) -> Raw,
        wait: impl Fn(Raw),
        release: impl Fn(Raw),
    ) -> Vec<Row> {
        let other: UsmVec<f32, Device, B> = UsmVec::zeroed(&self.queue, ITEMS).expect("an array");
        let address = other.as_ptr().cast_mut().cast::<c_void>();
        self.queue.wait().expect("idle");
        let mut row = |case: &str, count: usize| {
            let (ours, theirs) = microseconds(
                || {
                    for _ in 1..count {
                        drop(black_box(self.launch()));
                    }
                    self.launch().wait().expect("done");
                },
                || {
                    for _ in 1..count {
                        release(black_box(launch(address)));
                    }
                    wait(launch(address));
                },
            );
            Row::new(&format!("{name}: {case}"), "driver calls", "us", ours, theirs)
        };
        vec![row("launch and wait", 1), row("32 launches and wait", IN_A_ROW)]
    }
}

/// A function of a runtime, by its address.
fn needed(found: Option<NonNull<c_void>>) -> Result<Raw, String> {
    found.map(NonNull::as_ptr).ok_or_else(|| "a function is missing".into())
}

/// A function with the signature that its variable declares.
macro_rules! function {
    ($find:expr, $name:literal, fn($($argument:ty),* $(,)?) -> $result:ty) => {{
        let address = needed($find($name))?;
        // SAFETY: the function of that name has this signature by specification.
        unsafe { std::mem::transmute::<Raw, unsafe extern "C" fn($($argument),*) -> $result>(address) }
    }};
}

fn on_opencl() -> Result<Vec<Row>, String> {
    let context = context(&OpenCl::load().map_err(|error| error.to_string())?)?;
    let bench = Bench::new(&context)?;
    let find = |name| opencl::raw::function(context.raw(), name);
    let extension = |name| opencl::raw::extension_function(context.raw(), name);
    let create = function!(
        find,
        c"clCreateProgramWithSource",
        fn(Raw, u32, *const *const c_char, *const usize, *mut i32) -> Raw
    );
    let build = function!(find, c"clBuildProgram", fn(Raw, u32, *const Raw, *const c_char, Raw, Raw) -> i32);
    let kernel_of = function!(find, c"clCreateKernel", fn(Raw, *const c_char, *mut i32) -> Raw);
    let set = function!(find, c"clSetKernelArg", fn(Raw, u32, usize, *const c_void) -> i32);
    let set_pointer =
        function!(extension, c"clSetKernelArgMemPointerINTEL", fn(Raw, u32, *const c_void) -> i32);
    let set_info = function!(find, c"clSetKernelExecInfo", fn(Raw, u32, usize, *const c_void) -> i32);
    let enqueue = function!(
        find,
        c"clEnqueueNDRangeKernel",
        fn(Raw, Raw, u32, *const usize, *const usize, *const usize, u32, *const Raw, *mut Raw) -> i32
    );
    let flush = function!(find, c"clFlush", fn(Raw) -> i32);
    let event_info = function!(find, c"clGetEventInfo", fn(Raw, u32, usize, Raw, *mut usize) -> i32);
    let release = function!(find, c"clReleaseEvent", fn(Raw) -> i32);
    let (native, device) = (context.raw().as_raw(), opencl::raw::device(context.raw()));
    let queue = bench.queue.raw().as_raw();
    let source = SOURCE.as_ptr();
    let yes = 1_u32;
    // SAFETY: live context and device, a source that ends in NUL; the kernel exists in it.
    let kernel = unsafe {
        let program = create(native, 1, &raw const source, ptr::null(), ptr::null_mut());
        build(program, 1, &raw const device, ptr::null(), ptr::null_mut(), ptr::null_mut());
        let kernel = kernel_of(program, c"scale".as_ptr(), ptr::null_mut());
        for flag in [0x4200, 0x4201, 0x4202] {
            set_info(kernel, flag, 4, (&raw const yes).cast());
        }
        kernel
    };
    let launch = |address: Raw| {
        let (by, global, local, mut event) = (1.0_f32, ITEMS, GROUP, ptr::null_mut());
        // SAFETY: live queue and kernel, arguments of its types, an array with an element for each item.
        unsafe {
            set_pointer(kernel, 0, address);
            set(kernel, 1, 4, (&raw const by).cast());
            set(kernel, 2, 4 * GROUP, ptr::null());
            enqueue(
                queue,
                kernel,
                1,
                ptr::null(),
                &raw const global,
                &raw const local,
                0,
                ptr::null(),
                &raw mut event,
            );
        }
        event
    };
    let release = |event| {
        // SAFETY: owned, once.
        unsafe { release(event) };
    };
    let wait = |event| {
        // SAFETY: live queue.
        unsafe { flush(queue) };
        loop {
            let mut status = 0_i32;
            // SAFETY: live event, room for the answer.
            unsafe { event_info(event, 0x11D3, 4, (&raw mut status).cast(), ptr::null_mut()) };
            if status <= 0 {
                break;
            }
            std::thread::yield_now();
        }
        release(event);
    };
    Ok(bench.rows("OpenCL", launch, wait, release))
}

fn on_sycl() -> Result<Vec<Row>, String> {
    #[repr(C)]
    struct LocalAccessor {
        dimensions: usize,
        element: c_int,
        sizes: [usize; 3],
    }

    let context = context(&Dpctl::load().map_err(|error| error.to_string())?)?;
    let bench = Bench::new(&context)?;
    let find = |name| dpctl::raw::function(context.raw(), name);
    let build = function!(
        find,
        c"DPCTLKernelBundle_CreateFromOCLSource",
        fn(Raw, Raw, *const c_char, *const c_char) -> Raw
    );
    let kernel_of = function!(find, c"DPCTLKernelBundle_GetKernel", fn(Raw, *const c_char) -> Raw);
    let submit = function!(
        find,
        c"DPCTLQueue_SubmitNDRange",
        fn(
            Raw,
            Raw,
            *const Raw,
            *const c_int,
            usize,
            *const usize,
            *const usize,
            usize,
            *const Raw,
            usize,
        ) -> Raw
    );
    let status = function!(find, c"DPCTLEvent_GetCommandExecutionStatus", fn(Raw) -> c_int);
    let delete = function!(find, c"DPCTLEvent_Delete", fn(Raw) -> ());
    let (native, device) = (dpctl::raw::context(context.raw()), dpctl::raw::device(context.raw()));
    let queue = bench.queue.raw().as_raw().as_ptr();
    // SAFETY: live context and device, texts that end in NUL; the kernel exists in the source.
    let kernel =
        unsafe { kernel_of(build(native, device, SOURCE.as_ptr(), c"".as_ptr()), c"scale".as_ptr()) };
    let launch = |address: Raw| {
        let mut by = 1.0_f32;
        let mut local = LocalAccessor { dimensions: 1, element: 8, sizes: [GROUP, 1, 1] };
        let arguments = [address, (&raw mut by).cast(), (&raw mut local).cast()];
        // Pointer, 32-bit float, local accessor.
        let (kinds, global, group) = ([10, 8, 11], [ITEMS, 1, 1], [GROUP, 1, 1]);
        // SAFETY: live queue and kernel, arguments of its types, an array with an element for each item.
        unsafe {
            let (arguments, kinds) = (arguments.as_ptr(), kinds.as_ptr());
            submit(kernel, queue, arguments, kinds, 3, global.as_ptr(), group.as_ptr(), 1, ptr::null(), 0)
        }
    };
    let release = |event| {
        // SAFETY: owned, once.
        unsafe { delete(event) };
    };
    let wait = |event| {
        // SAFETY: a live event; 3 is complete.
        while unsafe { status(event) } != 3 {
            std::thread::yield_now();
        }
        release(event);
    };
    Ok(bench.rows("SYCL", launch, wait, release))
}
