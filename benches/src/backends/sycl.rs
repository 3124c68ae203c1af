//! Direct calls of SYCL through dpctl's C library.

use std::ffi::{c_char, c_int, c_void};
use std::hint::black_box;
use std::ptr;

use usm_core::Queue;
use usm_kernel::Code;
use usm_sycl::{Dpctl, raw};

use super::peer::{self, Events, GROUP, ITEMS, OPENCL_C, Peer, Raw, Turn, function};
use super::strided;
use crate::row::Row;

/// The argument type of `DPCTL_LOCAL_ACCESSOR`.
#[repr(C)]
struct LocalAccessor {
    dimensions: usize,
    element: c_int,
    sizes: [usize; 3],
}

/// The peer.
struct Driver {
    context: Raw,
    queue: Raw,
    allocate: unsafe extern "C" fn(usize, usize, Raw) -> Raw,
    free: unsafe extern "C" fn(Raw, Raw),
    pointer_type: unsafe extern "C" fn(*const c_void, Raw) -> c_int,
    copy: unsafe extern "C" fn(Raw, Raw, *const c_void, usize, *const Raw, usize) -> Raw,
    status: unsafe extern "C" fn(Raw) -> c_int,
    delete: unsafe extern "C" fn(Raw),
}

pub(super) fn rows() -> Result<Vec<Row>, String> {
    let context = peer::context(&Dpctl::load().map_err(|error| error.to_string())?)?;
    let queue = peer::queue(&context)?;
    let driver = Driver::of(&queue)?;
    let mut rows = peer::memory_rows("SYCL", &queue, &driver, &());
    rows.extend(strided::rows("SYCL", &queue, &driver));
    let launch = driver.launcher(&queue)?;
    let source = OPENCL_C.to_str().map_err(|error| error.to_string())?;
    // The runtime forgets failures of an in-order queue's operations, so each event is queried.
    for peers in [("same calls", Events::Asked), ("no failures, no events", Events::Dropped)] {
        let launch = |turn: Turn| launch(turn.address);
        rows.extend(peer::launch_rows("SYCL", &queue, Code::OpenClC(source), (&driver, &()), peers, launch)?);
    }
    Ok(rows)
}

impl Driver {
    fn of(queue: &Queue<Dpctl>) -> Result<Self, String> {
        let context = queue.context().raw();
        let find = |name| raw::function(context, name);
        Ok(Self {
            context: raw::context(context),
            queue: queue.raw().as_raw().as_ptr(),
            allocate: function!(find, c"DPCTLaligned_alloc_shared", fn(usize, usize, Raw) -> Raw),
            free: function!(find, c"DPCTLfree_with_context", fn(Raw, Raw) -> ()),
            pointer_type: function!(find, c"DPCTLUSM_GetPointerType", fn(*const c_void, Raw) -> c_int),
            copy: function!(
                find,
                c"DPCTLQueue_MemcpyWithEvents",
                fn(Raw, Raw, *const c_void, usize, *const Raw, usize) -> Raw
            ),
            status: function!(find, c"DPCTLEvent_GetCommandExecutionStatus", fn(Raw) -> c_int),
            delete: function!(find, c"DPCTLEvent_Delete", fn(Raw) -> ()),
        })
    }

    fn launcher(&self, queue: &Queue<Dpctl>) -> Result<impl Fn(Raw) -> Raw, String> {
        let context = queue.context().raw();
        let find = |name| raw::function(context, name);
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
        let device = raw::device(context);
        // SAFETY: live context and device, texts that end in NUL; the kernel exists in the source.
        let kernel = unsafe {
            kernel_of(build(self.context, device, OPENCL_C.as_ptr(), c"".as_ptr()), c"scale".as_ptr())
        };
        let queue = self.queue;
        Ok(move |address: Raw| {
            let mut by = 1.0_f32;
            let mut local = LocalAccessor { dimensions: 1, element: 8, sizes: [GROUP, 1, 1] };
            let arguments = [address, (&raw mut by).cast(), (&raw mut local).cast()];
            // Pointer, 32-bit float, local accessor.
            let (kinds, global, group) = ([10, 8, 11], [ITEMS, 1, 1], [GROUP, 1, 1]);
            // SAFETY: live queue and kernel, arguments of its types, an array with an element for
            // each item.
            unsafe {
                let (arguments, kinds) = (arguments.as_ptr(), kinds.as_ptr());
                submit(kernel, queue, arguments, kinds, 3, global.as_ptr(), group.as_ptr(), 1, ptr::null(), 0)
            }
        })
    }
}

impl Peer for Driver {
    fn allocate_and_free(&self, size: usize) {
        // SAFETY: a live queue, a power of two, a size that is not zero.
        let pointer = unsafe { (self.allocate)(64, size, self.queue) };
        // SAFETY: just allocated in this context, unused.
        unsafe { (self.free)(black_box(pointer), self.context) };
    }

    /// Only the kind: SYCL does not report base and size.
    fn query(&self, address: *const c_void) {
        // SAFETY: a live context; the address is not read.
        black_box(unsafe { (self.pointer_type)(address, self.context) });
    }

    fn copy(&self, dst: Raw, src: *const c_void, len: usize) -> Raw {
        // SAFETY: live queue, disjoint live ranges of that size.
        unsafe { (self.copy)(self.queue, dst, src, len, ptr::null(), 0) }
    }

    fn poll(&self, event: Raw) {
        // SAFETY: a live event; 3 is complete.
        while unsafe { (self.status)(event) } != 3 {
            std::thread::yield_now();
        }
    }

    fn release(&self, event: Raw) {
        // SAFETY: owned, once.
        unsafe { (self.delete)(event) };
    }
}
