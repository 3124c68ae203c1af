//! CUDA: direct driver calls on one side, adopted handles on the other.

use core::ffi::{CStr, c_void};
use core::ptr::{self, NonNull};
use std::sync::Arc;

use usm_core::{
    AllocKind, Context, ErrorKind, Event, Host, MemorySource, MemoryType, Queue, Request, Usage, UsmVec,
};
use usm_cuda::raw::{CUcontext, CUevent, CUresult, CUstream, borrow_allocation, submit, take_allocation};
use usm_cuda::{Cuda, CudaContext, CudaEvent, CudaQueue};
use usm_kernel::{Argument, BuildError, Code, Launch, Module, NdRange};
use usm_tests::skip;

use crate::{pattern, round_trip};

type Create = unsafe extern "C" fn(*mut *mut c_void, u32) -> CUresult;
type Destroy = unsafe extern "C" fn(*mut c_void) -> CUresult;
type Copy = unsafe extern "C" fn(usize, usize, usize, CUstream) -> CUresult;

/// The other library: a context that is not the device's primary one, and its stream.
struct Theirs {
    library: libloading::Library,
    context: CUcontext,
    stream: CUstream,
}

impl Theirs {
    fn start(backend: &Cuda) -> Result<Self, String> {
        // SAFETY: the driver is open already.
        let library =
            unsafe { libloading::Library::new(backend.path()) }.map_err(|error| error.to_string())?;
        let mut theirs = Self { library, context: ptr::null_mut(), stream: ptr::null_mut() };
        let (mut count, mut device) = (0, 0);
        let counts: unsafe extern "C" fn(*mut i32) -> CUresult = theirs.call(c"cuDeviceGetCount");
        let get: unsafe extern "C" fn(*mut i32, i32) -> CUresult = theirs.call(c"cuDeviceGet");
        let create: unsafe extern "C" fn(*mut CUcontext, u32, i32) -> CUresult =
            theirs.call(c"cuCtxCreate_v2");
        let stream: Create = theirs.call(c"cuStreamCreate");
        // SAFETY: signatures of the header, room for every answer. A new context is current on this
        // thread.
        unsafe {
            if counts(&raw mut count) != 0 || count == 0 {
                return Err("no CUDA device".into());
            }
            assert_eq!(get(&raw mut device, 0), 0);
            assert_eq!(create(&raw mut theirs.context, 0, device), 0);
            assert_eq!(stream(&raw mut theirs.stream, 1), 0);
        }
        Ok(theirs)
    }

    fn call<F: core::marker::Copy>(&self, name: &CStr) -> F {
        // SAFETY: the callers name the signatures of the header.
        *unsafe { self.library.get::<F>(name.to_bytes_with_nul()) }.unwrap()
    }

    fn adopt(&self, backend: &Cuda) -> (Context<Cuda>, Queue<Cuda>) {
        // SAFETY: live objects of the driver, which outlive the adopted handles.
        unsafe {
            let context = Context::from_raw(CudaContext::from_raw(backend, self.context).unwrap());
            let (queue, order) = CudaQueue::from_raw(context.raw(), self.stream);
            let queue = Queue::from_raw(&context, queue, order);
            (context, queue)
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let (stream, context): (Destroy, Destroy) =
            (self.call(c"cuStreamDestroy_v2"), self.call(c"cuCtxDestroy_v2"));
        // SAFETY: owned, destroyed once, the stream first.
        unsafe { (stream(self.stream), context(self.context)) };
    }
}

#[track_caller]
fn with(body: impl FnOnce(&Cuda, &Theirs)) {
    let outcome =
        crate::cuda().and_then(|backend| Theirs::start(&backend).map(|theirs| body(&backend, &theirs)));
    crate::run("cuda", outcome);
}

#[test]
fn cuda_memory_of_ours_is_copied_by_their_calls() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        assert_eq!((context.raw().as_raw(), queue.raw().as_raw()), (theirs.context, theirs.stream));
        let values = pattern(1000);
        let source = UsmVec::<u8, Host, _>::from_slice(&queue, &values).unwrap();
        let target = context.allocate(&Request::new(AllocKind::Device, 1000)).unwrap();
        let mut back = context.allocate(&Request::new(AllocKind::Host, 1000)).unwrap();
        let copy: Copy = theirs.call(c"cuMemcpyAsync");
        let (to, from) = (target.as_ptr() as usize, source.as_ptr() as usize);
        let usages = [Usage::write(&target), Usage::read(source.allocation())];
        // SAFETY: the copy stays inside both allocations, and its stream waits for earlier work.
        let event = unsafe {
            queue.submit(&usages, &[], |queue, after| {
                submit(queue, "their copy", after, |stream| copy(to, from, 1000, stream))
            })
        }
        .unwrap();
        let mut theirs_event: CUevent = ptr::null_mut();
        let create: Create = theirs.call(c"cuEventCreate");
        let record: unsafe extern "C" fn(CUevent, CUstream) -> CUresult = theirs.call(c"cuEventRecord");
        // SAFETY: live ranges of that size, on the same stream as the first copy; the event is
        // destroyed below.
        unsafe {
            assert_eq!(create(&raw mut theirs_event, 2), 0);
            assert_eq!(copy(back.as_ptr() as usize, to, 1000, theirs.stream), 0);
            assert_eq!(record(theirs_event, theirs.stream), 0);
        }
        // SAFETY: a live, recorded event of the context, destroyed after its last use.
        let known = unsafe { Event::from_raw(&context, CudaEvent::from_raw(context.raw(), theirs_event)) };
        known.wait().unwrap();
        event.wait().unwrap();
        let _ = queue.copy_bytes(&mut back, 0, &target, 0, 1000).unwrap();
        let guard = back.wait_for_host(usm_core::Access::Read).unwrap();
        // SAFETY: host memory, fully written, and all work has ended.
        assert_eq!(unsafe { core::slice::from_raw_parts(back.as_ptr(), 1000) }, values);
        drop(guard);
        drop(known);
        let destroy: Destroy = theirs.call(c"cuEventDestroy_v2");
        // SAFETY: owned, destroyed once.
        assert_eq!(unsafe { destroy(theirs_event) }, 0);
    });
}

#[test]
fn cuda_memory_of_theirs_is_copied_by_ours() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        let (mut device, mut managed) = (0_usize, 0_usize);
        let allocate: unsafe extern "C" fn(*mut usize, usize) -> CUresult = theirs.call(c"cuMemAlloc_v2");
        let managed_allocate: unsafe extern "C" fn(*mut usize, usize, u32) -> CUresult =
            theirs.call(c"cuMemAllocManaged");
        // SAFETY: the context is current on this thread; room for the answers.
        unsafe {
            assert_eq!(allocate(&raw mut device, 4096), 0);
            assert_eq!(managed_allocate(&raw mut managed, 4096, 1), 0);
        }
        let pointer = |address| NonNull::new(ptr::with_exposed_provenance_mut::<u8>(address)).unwrap();
        let owner = Arc::new(());
        {
            // SAFETY: freed below, after the last use, and otherwise unused.
            let mut borrowed =
                unsafe { borrow_allocation(&context, pointer(device), Box::new(Arc::clone(&owner))) }
                    .unwrap();
            // SAFETY: allocated by the driver; only this handle uses and frees it.
            let mut taken = unsafe { take_allocation(&context, pointer(managed)) }.unwrap();
            assert_eq!((borrowed.kind(), taken.kind()), (AllocKind::Device, AllocKind::Shared));
            assert_eq!(context.stats().of(MemoryType::UsmShared).live, 1);
            round_trip(&queue, &mut borrowed, &mut taken);
        }
        context.synchronize(core::time::Duration::from_secs(10)).unwrap();
        assert_eq!(Arc::strong_count(&owner), 1, "the owner of borrowed memory is dropped");
        let free: unsafe extern "C" fn(usize) -> CUresult = theirs.call(c"cuMemFree_v2");
        // SAFETY: owned by the other library, freed once. The driver refuses an unknown address.
        assert_eq!(unsafe { free(device) }, 0, "borrowed memory is still theirs");
        let stack = [0_u8; 16];
        // SAFETY: refused before any read.
        let refused = unsafe { borrow_allocation(&context, NonNull::from(&stack).cast(), Box::new(())) };
        assert!(matches!(refused.unwrap_err().kind, ErrorKind::WrongContext { .. }));
    });
}

/// Machine code of `source` for devices of this compute capability, by NVRTC.
fn machine_code(source: &CStr, capability: [i32; 2]) -> Result<Vec<u8>, String> {
    type Program = *mut c_void;
    let named = std::env::var("USM_NVRTC_LIBRARY").into_iter().filter(|named| !named.is_empty());
    let usual = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", "/usr/local/cuda/lib64/libnvrtc.so"]
        .map(str::to_owned);
    // SAFETY: loading runs only the initialisers of the library.
    let library = named.chain(usual).find_map(|file| unsafe { libloading::Library::new(file) }.ok());
    let library = library.ok_or("no NVRTC")?;
    macro_rules! call {
        ($name:literal($($value:expr => $type:ty),*)) => {{
            // SAFETY: the signature of the header.
            let function = unsafe { library.get::<unsafe extern "C" fn($($type),*) -> i32>($name.to_bytes_with_nul()) };
            let function = function.map_err(|error| error.to_string())?;
            // SAFETY: live texts and a live program, room for every answer.
            let code = unsafe { function($($value),*) };
            if code != 0 {
                return Err(format!("{:?}: {code}", $name));
            }
        }};
    }
    let (mut program, mut size) = (ptr::null_mut::<c_void>(), 0_usize);
    let none = ptr::null::<*const core::ffi::c_char>();
    call!(c"nvrtcCreateProgram"(
        &raw mut program => *mut Program, source.as_ptr() => *const core::ffi::c_char,
        ptr::null() => *const core::ffi::c_char, 0 => i32,
        none => *const *const core::ffi::c_char, none => *const *const core::ffi::c_char
    ));
    let option = format!("--gpu-architecture=sm_{}{}\0", capability[0], capability[1]);
    let options = [option.as_ptr().cast::<core::ffi::c_char>()];
    call!(c"nvrtcCompileProgram"(program => Program, 1 => i32, options.as_ptr() => *const *const core::ffi::c_char));
    call!(c"nvrtcGetCUBINSize"(program => Program, &raw mut size => *mut usize));
    let mut code = vec![0_u8; size];
    call!(c"nvrtcGetCUBIN"(program => Program, code.as_mut_ptr() => *mut u8));
    call!(c"nvrtcDestroyProgram"(&raw mut program => *mut Program));
    Ok(code)
}

const SCALE: &CStr = c"extern \"C\" __global__ void scale(float *a, float by) { a[blockIdx.x * blockDim.x + threadIdx.x] *= by; }";

/// Needs no device: the code is for compute capability 9.0.
#[test]
fn machine_code_is_an_elf_image() {
    match machine_code(SCALE, [9, 0]) {
        Ok(code) => assert_eq!(code.get(..4), Some(&b"\x7FELF"[..])),
        Err(reason) => skip::missing("nvrtc", reason),
    }
}

/// The other library's compiler builds the code, and the backend loads and launches it. Every
/// truncated image is refused.
#[test]
fn cuda_machine_code_runs() {
    with(|backend, theirs| {
        let (context, queue) = theirs.adopt(backend);
        let ask: unsafe extern "C" fn(*mut i32, i32, i32) -> CUresult = theirs.call(c"cuDeviceGetAttribute");
        let mut capability = [0; 2];
        for (answer, attribute) in capability.iter_mut().zip([75, 76]) {
            // SAFETY: the first device, room for the answer.
            assert_eq!(unsafe { ask(answer, attribute, 0) }, 0);
        }
        let code = match machine_code(SCALE, capability) {
            Ok(code) => code,
            Err(reason) => return crate::run("cuda", Err(format!("machine code: {reason}"))),
        };
        let module = Module::build(&context, Code::Cubin(&code)).unwrap();
        let scale = module.function("scale").unwrap();
        let mut a = UsmVec::<f32, Host, _>::from_slice(&queue, &[1.5; 64]).unwrap();
        let arguments = [Argument::write(&mut a), Argument::value(&4.0_f32)];
        let launch = Launch::new(&queue, NdRange::new([64], [32]).unwrap());
        // SAFETY: an item has its own element.
        drop(unsafe { launch.call(&scale, &arguments) }.unwrap());
        assert_eq!(a.read().unwrap()[..], [6.0; 64]);
        for len in [4, 64, code.len() / 2, code.len() - 1] {
            let refused = Module::build(&context, Code::Cubin(&code[..len]));
            assert!(matches!(refused, Err(BuildError::Compile { .. })), "{len}");
        }
    });
}
