//! HIP's functions over the same memory, streams and events, with the signatures, numbers and
//! behaviour of `hip_runtime_api.h`.
//!
//! Written from the header and AMD's documentation, not from usm's table, so that an error there is
//! not repeated. HIP differs from CUDA: each thread has a current device instead of a context, and
//! an uninitialised driver initialises itself. Attributes have other numbers, and memory types
//! differ before release 6. The range attribute has only 32 bits, so the driver counts a query of
//! it as misuse. No function fills words with a stride.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicI32, Ordering};

use super::{context, device, kernel, memory, order, pool, sharing, transfer};
use crate::code::{Answer, Code, INVALID_DEVICE, INVALID_VALUE, SUCCESS};
use crate::context::stack;
use crate::export::{enter, put};
use crate::kernel::{MAX_GROUP, SHARED_MEMORY};
use crate::memory::Kind;
use crate::state::{State, lock};

const NO_DEVICE: Code = 100;
const NOT_FOUND: Code = 500;

/// The answer of `hipDriverGetVersion`. Releases before 6 have other memory types.
static VERSION: AtomicI32 = AtomicI32::new(60_241_134);

fn before_6() -> bool {
    VERSION.load(Ordering::Relaxed) < 60_000_000
}

/// Sets the HIP release that the driver imitates.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn usm_hip_version(version: i32) {
    VERSION.store(version, Ordering::Relaxed);
}

/// The primary context of a device. HIP never destroys it.
fn primary(state: &mut State, device: i32) -> Answer<usize> {
    if let Some(primary) = state.device(device)?.primary {
        return Ok(primary);
    }
    let created = state.create_context(device as usize);
    let device = state.device(device)?;
    (device.primary, device.holders) = (Some(created), 1);
    Ok(created)
}

/// A thread that chose no device uses the first.
fn have_device(state: &mut State) -> Answer {
    if state.devices.is_empty() || stack(|stack| stack.last().is_some()) {
        return Ok(());
    }
    let first = primary(state, 0)?;
    stack(|stack| stack.push(first))
}

fn hip(function: &str, body: impl FnOnce(&mut State) -> Answer) -> Code {
    lock().initialized = true;
    enter(function, |state| {
        have_device(state)?;
        body(state)
    })
}

/// Functions that only HIP has.
macro_rules! own {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) |$state:pat_param| $body:block)*) => {$(
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> Code {
            hip(stringify!($name), |$state| {
                // SAFETY: the caller keeps to the interface; what is written is checked for null.
                #[allow(unused_unsafe, reason = "some have no pointers")]
                unsafe { $body };
                Ok(())
            })
        }
    )*};
}

/// Functions that do the same as their CUDA counterparts, with the same arguments.
macro_rules! twins {
    ($($name:ident($($argument:ident: $type:ty),*) = $twin:path;)*) => {$(
        #[unsafe(no_mangle)]
        pub(crate) unsafe extern "C" fn $name($($argument: $type),*) -> Code {
            match hip(stringify!($name), |_| Ok(())) {
                // SAFETY: the caller's promise is the same.
                SUCCESS => unsafe { $twin($($argument),*) },
                code => code,
            }
        }
    )*};
}

twins! {
    hipInit(flags: u32) = device::cuInit;
    hipDeviceGet(device: *mut i32, ordinal: i32) = device::cuDeviceGet;
    hipDeviceGetName(name: *mut c_char, length: i32, device: i32) = device::cuDeviceGetName;
    hipDeviceTotalMem(bytes: *mut usize, device: i32) = device::cuDeviceTotalMem_v2;
    hipMemGetInfo(free: *mut usize, total: *mut usize) = memory::cuMemGetInfo_v2;
    hipDeviceCanAccessPeer(can: *mut i32, device: i32, peer: i32) = device::cuDeviceCanAccessPeer;
    hipGetDevice(device: *mut i32) = context::cuCtxGetDevice;
    hipMalloc(address: *mut usize, bytes: usize) = memory::cuMemAlloc_v2;
    hipMallocManaged(address: *mut usize, bytes: usize, flags: u32) = memory::cuMemAllocManaged;
    hipFree(address: usize) = memory::cuMemFree_v2;
    hipHostFree(address: usize) = memory::cuMemFreeHost;
    hipMallocAsync(address: *mut usize, bytes: usize, stream: usize) = pool::cuMemAllocAsync;
    hipMallocFromPoolAsync(address: *mut usize, bytes: usize, pool: usize, stream: usize) = pool::cuMemAllocFromPoolAsync;
    hipFreeAsync(address: usize, stream: usize) = pool::cuMemFreeAsync;
    hipMemPoolCreate(pool: *mut usize, properties: *const pool::Properties) = pool::cuMemPoolCreate;
    hipMemPoolDestroy(pool: usize) = pool::cuMemPoolDestroy;
    hipMemPoolTrimTo(pool: usize, keep: usize) = pool::cuMemPoolTrimTo;
    // hipMemPoolAttrReleaseThreshold is 4, as in CUDA.
    hipMemPoolSetAttribute(pool: usize, which: i32, value: *const c_void) = pool::cuMemPoolSetAttribute;
    hipStreamCreateWithFlags(stream: *mut usize, flags: u32) = order::cuStreamCreate;
    hipStreamDestroy(stream: usize) = order::cuStreamDestroy_v2;
    hipStreamQuery(stream: usize) = order::cuStreamQuery;
    hipStreamWaitEvent(stream: usize, event: usize, flags: u32) = order::cuStreamWaitEvent;
    hipStreamSynchronize(stream: usize) = order::cuStreamSynchronize;
    hipEventDestroy(event: usize) = order::cuEventDestroy_v2;
    hipEventRecord(event: usize, stream: usize) = order::cuEventRecord;
    hipEventElapsedTime(milliseconds: *mut f32, start: usize, end: usize) = order::cuEventElapsedTime;
    hipEventQuery(event: usize) = order::cuEventQuery;
    hipMemsetD8Async(to: usize, value: u8, count: usize, stream: usize) = transfer::cuMemsetD8Async;
    hipMemsetD16Async(to: usize, value: u16, count: usize, stream: usize) = transfer::cuMemsetD16Async;
    hipMemsetD32Async(to: usize, value: u32, count: usize, stream: usize) = transfer::cuMemsetD32Async;
    hipMemPrefetchAsync(address: usize, bytes: usize, device: i32, stream: usize) = transfer::cuMemPrefetchAsync;
    hipModuleUnload(module: usize) = kernel::cuModuleUnload;
    hipModuleGetFunction(function: *mut usize, module: usize, name: *const c_char) = kernel::cuModuleGetFunction;
    // HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, _SHARED_SIZE_BYTES and _LOCAL_SIZE_BYTES are 0, 1
    // and 3, as in CUDA.
    hipFuncGetAttribute(value: *mut i32, attribute: i32, function: usize) = kernel::cuFuncGetAttribute;
    hipModuleLaunchKernel(
        function: usize, groups_x: u32, groups_y: u32, groups_z: u32, group_x: u32, group_y: u32, group_z: u32,
        shared_bytes: u32, stream: usize, values: *const *const u8, extra: *const *mut c_void
    ) = kernel::cuLaunchKernel;
    hipMemAdvise(address: usize, bytes: usize, advice: i32, device: i32) = transfer::cuMemAdvise;
    hipIpcGetMemHandle(handle: *mut sharing::Handle, address: usize) = sharing::cuIpcGetMemHandle;
    hipIpcCloseMemHandle(address: usize) = sharing::cuIpcCloseMemHandle;
}

own! {
    hipDriverGetVersion(version: *mut i32) |_| { put(version, VERSION.load(Ordering::Relaxed))?; }
    hipGetDeviceCount(count: *mut i32) |state| {
        put(count, state.devices.len() as i32)?;
        if state.devices.is_empty() {
            return Err(NO_DEVICE);
        }
    }
    hipDeviceGetAttribute(value: *mut i32, attribute: i32, device: i32) |state| {
        state.device(device)?;
        put(value, match attribute {
            // hipDeviceAttributeConcurrentManagedAccess, _ManagedMemory
            9 => i32::from(state.settings.concurrent),
            24 => 1,
            // hipDeviceAttributeMaxThreadsPerBlock, _MaxSharedMemoryPerBlock
            56 => MAX_GROUP as i32,
            74 => SHARED_MEMORY as i32,
            // hipDeviceAttributeWarpSize: of a wavefront
            87 => 64,
            // hipDeviceAttributeMemoryPoolsSupported
            88 => 1,
            // hipDeviceAttributeHostNativeAtomicSupported, _Integrated, _PageableMemoryAccess
            15 => 1,
            16 | 65 => 0,
            // An attribute that is missing here is a wrong number, or must be added to this list.
            _ => {
                state.misuse(format_args!("attribute {attribute} of a device is asked for"));
                return Err(INVALID_VALUE);
            }
        })?;
    }
    hipSetDevice(device: i32) |state| {
        let chosen = primary(state, device)?;
        stack(|stack| {
            stack.clear();
            stack.push(chosen)
        })?;
    }
    hipStreamGetDevice(stream: usize, device: *mut i32) |state| {
        let stream = state.stream(stream)?;
        let context = state.streams.get(&stream).ok_or(INVALID_VALUE)?.context;
        put(device, state.contexts.get(&context).ok_or(INVALID_DEVICE)?.device as i32)?;
    }
    hipMemGetAddressRange(base: *mut usize, bytes: *mut usize, address: usize) |state| {
        let (start, live) = state.lookup(address).ok_or(NOT_FOUND)?;
        put(base, start)?;
        put(bytes, live.size)?;
    }
    // The call succeeds even if a single query fails.
    hipDrvPointerGetAttributes(
        count: u32, attributes: *const i32, answers: *const *mut c_void, address: usize,
    ) |state| {
        if count == 0 || attributes.is_null() || answers.is_null() || address == 0 {
            return Err(INVALID_VALUE);
        }
        let found = state.lookup(address).map(|(_, live)| (live.kind, live.device));
        let [host, device] = if before_6() { [0, 1] } else { [1, 2] };
        for index in 0..count as usize {
            let answer = answers.add(index).read();
            match attributes.add(index).read() {
                // HIP_POINTER_ATTRIBUTE_MEMORY_TYPE: managed memory counts as host memory. Before
                // release 6, unknown memory does too.
                2 => put(answer.cast::<u32>(), match found.map(|(kind, _)| kind) {
                    None => 0,
                    Some(Kind::Host | Kind::Managed) => host,
                    Some(Kind::Device) => device,
                })?,
                // _IS_MANAGED: one byte
                8 => put(answer.cast::<bool>(), found.is_some_and(|(kind, _)| kind == Kind::Managed))?,
                // _DEVICE_ORDINAL
                9 => put(answer.cast::<i32>(), found.map_or(-2, |(_, device)| device as i32))?,
                // _RANGE_SIZE has only 32 bits, so usm must not use it.
                11 | 12 => state.misuse(format_args!("the range of {address:#x} is asked for in 32 bits")),
                _ => {}
            }
        }
    }
    hipDeviceDisablePeerAccess(peer: i32) |state| {
        let current = state.current()?;
        let theirs = primary(state, peer)?;
        let own = state.contexts.get_mut(&current).ok_or(INVALID_DEVICE)?;
        if current == theirs {
            return Err(INVALID_DEVICE);
        }
        if !own.peers.remove(&theirs) {
            return Err(705); // hipErrorPeerAccessNotEnabled
        }
    }
    hipDeviceEnablePeerAccess(peer: i32, flags: u32) |state| {
        let current = state.current()?;
        let theirs = primary(state, peer)?;
        let own = state.contexts.get_mut(&current).ok_or(INVALID_DEVICE)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        if current == theirs {
            return Err(INVALID_DEVICE);
        }
        if !own.peers.insert(theirs) {
            return Err(704); // hipErrorPeerAccessAlreadyEnabled
        }
    }
}

/// Ignores the options and writes no log.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipModuleLoadDataEx(
    module: *mut usize,
    image: *const c_char,
    _count: u32,
    _options: *const i32,
    _values: *const *mut c_void,
) -> Code {
    checked("hipModuleLoadDataEx", true, || {
        // SAFETY: the caller's promise.
        unsafe { kernel::cuModuleLoadData(module, image) }
    })
}

/// Checks the arguments that only HIP has, then calls CUDA's function.
fn checked(function: &str, right: bool, then: impl FnOnce() -> Code) -> Code {
    let check = |_: &mut State| if right { Ok(()) } else { Err(INVALID_VALUE) };
    match hip(function, check) {
        SUCCESS => then(),
        code => code,
    }
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipHostMalloc(address: *mut usize, bytes: usize, flags: u32) -> Code {
    // hipHostMallocPortable, _Mapped, _WriteCombined, and AMD's flags for placement and coherence.
    const KNOWN: u32 = 7 | 0x2000_0000 | 0x4000_0000 | 0x8000_0000;
    checked("hipHostMalloc", flags & !KNOWN == 0, || {
        // SAFETY: the caller's promise.
        unsafe { memory::cuMemHostAlloc(address, bytes, flags & 7) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipEventCreateWithFlags(event: *mut usize, flags: u32) -> Code {
    // hipEventBlockingSync, _DisableTiming, _Interprocess, and AMD's flags for fences.
    const KNOWN: u32 = 7 | 0x2000_0000 | 0x4000_0000 | 0x8000_0000;
    checked("hipEventCreateWithFlags", flags & !KNOWN == 0, || {
        // SAFETY: the caller's promise.
        unsafe { order::cuEventCreate(event, flags & 7) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipMemcpyAsync(
    to: usize,
    from: usize,
    bytes: usize,
    kind: i32,
    stream: usize,
) -> Code {
    // hipMemcpyDefault
    checked("hipMemcpyAsync", kind == 4, || {
        // SAFETY: the caller's promise.
        unsafe { transfer::cuMemcpyAsync(to, from, bytes, stream) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipMemcpy2DAsync(
    to: usize,
    to_pitch: usize,
    from: usize,
    from_pitch: usize,
    width: usize,
    height: usize,
    kind: i32,
    stream: usize,
) -> Code {
    let right = kind == 4 && width <= to_pitch && width <= from_pitch;
    let copy = transfer::Copy2D::of([to, to_pitch], [from, from_pitch], [width, height]);
    checked("hipMemcpy2DAsync", right, || {
        // SAFETY: a description of what the caller promised.
        unsafe { transfer::cuMemcpy2DAsync_v2(&raw const copy, stream) }
    })
}

#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn hipIpcOpenMemHandle(
    address: *mut usize,
    handle: sharing::Handle,
    flags: u32,
) -> Code {
    // Only hipIpcMemLazyEnablePeerAccess.
    let lazy = if before_6() { 0 } else { 1 };
    checked("hipIpcOpenMemHandle", flags == lazy, || {
        // SAFETY: the caller's promise.
        unsafe { sharing::cuIpcOpenMemHandle_v2(address, handle, 1) }
    })
}
