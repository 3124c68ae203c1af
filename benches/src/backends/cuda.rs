//! Direct calls of the CUDA driver.

use std::cell::Cell;
use std::ffi::{c_char, c_void};
use std::hint::black_box;
use std::ptr;

use usm_core::{AllocKind, MemorySource, Queue, Request};
use usm_cuda::{Cuda, raw};
use usm_kernel::Code;

use super::peer::{self, Events, GROUP, ITEMS, Peer, Raw, Turn, function};
use super::strided;
use crate::pairs::{Clock, pairs};
use crate::row::Row;

const NON_DEFAULT_ALLOCATION: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const NOT_READY: i32 = 600;
/// Memory type, whether managed, start and size of the range.
const ATTRIBUTES: [i32; 4] = [2, 8, 11, 12];

/// The peer, with the context always current on the measuring thread. It makes no events during the
/// measurement.
struct Driver {
    stream: Raw,
    allocate: unsafe extern "C" fn(*mut u64, usize, u32) -> i32,
    free: unsafe extern "C" fn(u64) -> i32,
    attributes: unsafe extern "C" fn(u32, *const i32, *const Raw, u64) -> i32,
    copy: unsafe extern "C" fn(u64, u64, usize, Raw) -> i32,
    record: unsafe extern "C" fn(Raw, Raw) -> i32,
    ask: unsafe extern "C" fn(Raw) -> i32,
    /// Made once and used in turn, as in a program with a fixed number of pending events.
    events: [Raw; 4],
    next: Cell<usize>,
}

pub(super) fn rows() -> Result<Vec<Row>, String> {
    let context = peer::context(&Cuda::load().map_err(|error| error.to_string())?)?;
    let queue = peer::queue(&context)?;
    let driver = Driver::of(&queue)?;
    let result = raw::with_current(context.raw(), || -> Result<Vec<Row>, String> {
        let mut rows = peer::memory_rows("CUDA", &queue, &driver, &());
        rows.extend(driver.in_order(&queue)?);
        rows.extend(strided::rows("CUDA", &queue, &driver));
        let launch = driver.launcher(&queue)?;
        for peers in [("same calls", Events::Kept), ("one event a wait", Events::Dropped)] {
            let launch = |turn: Turn| launch(turn);
            rows.extend(peer::launch_rows("CUDA", &queue, Code::Ptx(PTX), (&driver, &()), peers, launch)?);
        }
        Ok(rows)
    });
    result.map_err(|error| error.to_string())?
}

impl Driver {
    fn of(queue: &Queue<Cuda>) -> Result<Self, String> {
        let context = queue.context().raw();
        let find = |name| raw::function(context, name);
        let create = function!(find, c"cuEventCreate", fn(*mut Raw, u32) -> i32);
        let mut events = [ptr::null_mut(); 4];
        raw::with_current(context, || {
            for event in &mut events {
                // SAFETY: the context is current, room for the answer.
                unsafe { create(&raw mut *event, DISABLE_TIMING) };
            }
        })
        .map_err(|error| error.to_string())?;
        Ok(Self {
            stream: queue.raw().as_raw(),
            allocate: function!(find, c"cuMemAllocManaged", fn(*mut u64, usize, u32) -> i32),
            free: function!(find, c"cuMemFree_v2", fn(u64) -> i32),
            attributes: function!(
                find,
                c"cuPointerGetAttributes",
                fn(u32, *const i32, *const Raw, u64) -> i32
            ),
            copy: function!(find, c"cuMemcpyAsync", fn(u64, u64, usize, Raw) -> i32),
            record: function!(find, c"cuEventRecord", fn(Raw, Raw) -> i32),
            ask: function!(find, c"cuEventQuery", fn(Raw) -> i32),
            events,
            next: Cell::new(0),
        })
    }

    /// An event after all earlier work.
    fn event(&self) -> Raw {
        let next = self.next.get();
        self.next.set((next + 1) % self.events.len());
        // SAFETY: live event and stream.
        unsafe { (self.record)(self.events[next], self.stream) };
        self.events[next]
    }

    /// Memory of the queue, from the same pool as ours. The event after the allocation lets other
    /// queues use it; a program with one stream needs none.
    fn in_order(&self, queue: &Queue<Cuda>) -> Result<Vec<Row>, String> {
        if !queue.context().info().queue_memory {
            eprintln!("skipped: memory in the order of a CUDA stream: the device has none");
            return Ok(Vec::new());
        }
        let find = |name| raw::function(queue.context().raw(), name);
        let allocate = function!(find, c"cuMemAllocFromPoolAsync", fn(*mut u64, usize, Raw, Raw) -> i32);
        let pool = raw::memory_pool(queue.context().raw()).map_err(|error| error.to_string())?;
        let free = function!(find, c"cuMemFreeAsync", fn(u64, Raw) -> i32);
        let row = |size: usize, event: bool| {
            let request = Request::new(AllocKind::Device, size);
            let ours = || drop(black_box(MemorySource::allocate(queue, &request).expect("memory")));
            let theirs = || {
                let mut address = 0;
                // SAFETY: a live pool and stream, room for the answer.
                unsafe { allocate(&raw mut address, size, pool, self.stream) };
                if event {
                    black_box(self.event());
                }
                // SAFETY: just allocated on this stream, unused.
                unsafe { free(black_box(address), self.stream) };
            };
            let peer_name = if event { "same calls" } else { "no event" };
            let case = format!("CUDA: allocate and free {size} B of a queue");
            pairs(Clock::Thread, ours, theirs).row(&case, peer_name, "us", peer::MICROSECOND)
        };
        Ok([4096, 1 << 20].into_iter().flat_map(|size| [row(size, true), row(size, false)]).collect())
    }

    fn launcher(&self, queue: &Queue<Cuda>) -> Result<impl Fn(Turn) -> Raw + '_, String> {
        let context = queue.context().raw();
        let find = |name| raw::function(context, name);
        let load = function!(find, c"cuModuleLoadData", fn(*mut Raw, *const c_void) -> i32);
        let get = function!(find, c"cuModuleGetFunction", fn(*mut Raw, Raw, *const c_char) -> i32);
        let launch = function!(
            find,
            c"cuLaunchKernel",
            fn(Raw, u32, u32, u32, u32, u32, u32, u32, Raw, *mut Raw, *mut Raw) -> i32
        );
        let text = std::ffi::CString::new(PTX).map_err(|error| error.to_string())?;
        let (mut module, mut kernel) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the context is current, a text that ends in NUL, room for the answer.
        let code = unsafe { load(&raw mut module, text.as_ptr().cast()) };
        if code != 0 {
            return Err(format!("cuModuleLoadData: {code}"));
        }
        // SAFETY: a live module that is never unloaded, a name that ends in NUL, room for the
        // answer.
        unsafe { get(&raw mut kernel, module, c"scale".as_ptr()) };
        Ok(move |Turn { address, last, .. }: Turn| {
            let (mut address, mut by, mut offset) = (address as u64, 1.0_f32, 0_u32);
            let mut arguments: [Raw; 3] =
                [(&raw mut address).cast(), (&raw mut by).cast(), (&raw mut offset).cast()];
            let (blocks, threads) = ((ITEMS / GROUP) as u32, GROUP as u32);
            let (local, arguments, extra) = (4 * threads, arguments.as_mut_ptr(), ptr::null_mut());
            // SAFETY: live function and stream, arguments of its types, an array with an element
            // for each item.
            unsafe { launch(kernel, blocks, 1, 1, threads, 1, 1, local, self.stream, arguments, extra) };
            if last { self.event() } else { ptr::null_mut() }
        })
    }
}

impl Peer for Driver {
    fn allocate_and_free(&self, size: usize) {
        let mut address = 0;
        // SAFETY: the context is current, room for the answer.
        unsafe { (self.allocate)(&raw mut address, size, NON_DEFAULT_ALLOCATION) };
        // SAFETY: just allocated, unused.
        unsafe { (self.free)(black_box(address)) };
    }

    fn query(&self, address: *const c_void) {
        let mut answer = [0_u64; ATTRIBUTES.len()];
        let places: [Raw; ATTRIBUTES.len()] = answer.each_mut().map(|place| (&raw mut *place).cast());
        // SAFETY: room for each answer; the address is not read.
        unsafe {
            let count = ATTRIBUTES.len() as u32;
            (self.attributes)(count, ATTRIBUTES.as_ptr(), places.as_ptr(), address as u64)
        };
        black_box(answer);
    }

    fn copy(&self, dst: Raw, src: *const c_void, len: usize) -> Raw {
        // SAFETY: live stream, disjoint live ranges of that size.
        unsafe { (self.copy)(dst as u64, src as u64, len, self.stream) };
        self.event()
    }

    fn poll(&self, event: Raw) {
        // SAFETY: a live event.
        while unsafe { (self.ask)(event) } == NOT_READY {
            std::thread::yield_now();
        }
    }

    /// The events are reused.
    fn release(&self, _: Raw) {}
}

/// The kernel of the other runtimes; the local array is an offset in the block's dynamic shared
/// memory.
const PTX: &str = ".version 6.0
.target sm_50
.address_size 64
.extern .shared .align 16 .b8 memory[];
.visible .entry scale(.param .u64 param_a, .param .f32 param_by, .param .u32 param_lm)
{
    .reg .b32 %r<9>;
    .reg .b64 %rd<5>;
    .reg .f32 %f<5>;
    ld.param.u64 %rd1, [param_a];
    ld.param.f32 %f1, [param_by];
    ld.param.u32 %r1, [param_lm];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r5, %r2, %r3, %r4;
    cvta.to.global.u64 %rd2, %rd1;
    mul.wide.u32 %rd3, %r5, 4;
    add.s64 %rd4, %rd2, %rd3;
    ld.global.f32 %f2, [%rd4];
    mul.f32 %f3, %f2, %f1;
    mov.u32 %r6, memory;
    add.s32 %r7, %r6, %r1;
    mad.lo.s32 %r8, %r4, 4, %r7;
    st.shared.f32 [%r8], %f3;
    ld.shared.f32 %f4, [%r8];
    st.global.f32 [%rd4], %f4;
    ret;
}
";
