//! The CUDA backend with HIP's names, on the same driver, whose HIP half follows HIP's header.
//! Nothing here ran on an AMD GPU.

use core::ffi::{CStr, c_void};
use std::path::{Path, PathBuf};

use libloading::Library;
use usm_core::backend::Dyn;
use usm_core::backend::{ContextOps, DeviceOps};
use usm_core::{
    AccessFlags, AllocKind, Backend, BackendKind, Context, Device, ErrorKind, Host, MemorySource, QueueOrder,
    Request, Selector, Shared, UsmVec,
};
use usm_cuda::{Cuda, raw};
use usm_kernel::{BuildError, Code, Module};
use usm_tests::{Fixture, Provider, conformance_suite, skip};

use crate::driver::{Driver, RUNTIME, calls_of, fail};

fn start(settings: &str) -> Result<Driver, String> {
    Driver::start(settings, Cuda::open_hip)
}

/// Work starts when its state is queried, the newest ready operation first.
struct Late;

impl Provider for Late {
    type Backend = Dyn;
    const RUNTIME: &'static str = RUNTIME;

    fn with(case: impl FnOnce(Fixture<'_, Dyn>)) -> Result<(), String> {
        let driver = start("late")?;
        let (context, other) = (driver.erased_context(), driver.erased_context());
        case(Fixture { context: &context, other: &other, separate: false, failing: None });
        Ok(())
    }
}

conformance_suite!(hip_on_host_late, Late);

/// The driver, or `None` after a report.
#[track_caller]
fn driver() -> Option<Driver> {
    Driver::find_with("", Cuda::open_hip)
}

fn function<F: Copy>(context: &Context<Cuda>, name: &CStr) -> F {
    let found = raw::function(context.raw(), name).expect("a function of the driver");
    // SAFETY: the callers name the signatures of the header.
    unsafe { core::mem::transmute_copy::<_, F>(&found) }
}

/// HIP's current device of this thread.
fn current_device(context: &Context<Cuda>) -> i32 {
    let ask: unsafe extern "C" fn(*mut i32) -> i32 = function(context, c"hipGetDevice");
    let mut device = -1;
    // SAFETY: room for the answer.
    assert_eq!(unsafe { ask(&raw mut device) }, 0);
    device
}

#[test]
fn a_device_of_hip_reports_hip() {
    let Some(driver) = driver() else { return };
    let info = driver.device.info();
    assert_eq!((driver.backend.kind(), info.backend), (BackendKind::Hip, BackendKind::Hip));
    assert_eq!((info.vendor.as_str(), info.platform.as_str()), ("Advanced Micro Devices, Inc.", "AMD HIP"));
    assert_eq!(info.driver_version.as_str(), "HIP 6.2.41134");
    assert_eq!(Selector::of(&info).to_string(), format!("hip:gpu:{}", info.index));
    assert_eq!((info.max_work_group_size, info.local_mem_size, info.integrated), (1024, 49_152, false));
    assert_eq!((info.capabilities.host, info.capabilities.shared), (AccessFlags::all(), AccessFlags::all()));
    assert!(info.capabilities.system.is_empty() && info.queue_memory);
    drop(driver);
    // Without concurrent access, shared memory is managed memory too.
    let apart = start("exclusive").unwrap().device.info().capabilities.shared;
    assert!(apart.contains(AccessFlags::ACCESS) && !apart.contains(AccessFlags::CONCURRENT), "{apart:?}");
}

#[test]
fn a_thread_keeps_the_device_that_it_chose() {
    let Some(driver) = driver() else { return };
    let context = driver.context();
    let device = raw::device(context.raw());
    assert_ne!(device, 0, "a device of this test's own");
    assert_eq!(current_device(&context), 0);
    let queue = context.queue(QueueOrder::OutOfOrder).unwrap();
    let mut array = UsmVec::<u32, Device, _>::zeroed(&queue, 100).unwrap();
    let _ = queue.fill(&mut array, 7).unwrap();
    assert_eq!(array.to_vec(&queue).unwrap(), [7; 100]);
    assert_eq!(context.raw().query(array.as_ptr() as usize).unwrap().size, 400);
    assert_eq!(current_device(&context), 0);
    assert_eq!(raw::with_current(context.raw(), || current_device(&context)), Ok(device));
    assert_eq!(current_device(&context), 0);
}

#[test]
fn wide_patterns_fill_as_on_other_backends() {
    let Some(driver) = driver() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    for count in [1_usize, 2, 3, 7, 64, 1000] {
        let (a, b) = (0x0123_4567_89AB_CDEF_u64, [1_u32, 2, 3, 4]);
        let mut wide = UsmVec::<u64, Device, _>::zeroed(&queue, count).unwrap();
        let mut wider = UsmVec::<[u32; 4], Shared, _>::zeroed(&queue, count).unwrap();
        let _ = queue.fill(&mut wide, a).unwrap();
        let _ = queue.fill(&mut wider, b).unwrap();
        assert_eq!(wide.to_vec(&queue).unwrap(), vec![a; count]);
        assert_eq!(wider.to_vec(&queue).unwrap(), vec![b; count]);
    }
}

#[test]
fn a_fill_that_fails_on_the_way_is_never_taken_to_be_complete() {
    let Some(driver) = driver() else { return };
    let context = driver.context();
    context.set_wait_limit(core::time::Duration::from_millis(50));
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let mut array = UsmVec::<u64, Device, _>::zeroed(&queue, 100).unwrap();
    // The operation did nothing: an error, and the array is unchanged.
    fail("hipMemsetD32Async=1");
    let refused = queue.fill(&mut array, 1).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Native { operation: "hipMemsetD32Async" });
    assert_eq!((refused.backend, refused.native), (Some(BackendKind::Hip), Some(1)));
    fail("");
    assert_eq!(array.to_vec(&queue).unwrap(), [0; 100]);
    fail("hipMemcpyAsync=1@2");
    let lost = queue.fill(&mut array, 1).unwrap();
    fail("");
    assert!(lost.wait().is_err() && lost.status().is_err());
}

#[test]
fn errors_have_hip_s_names() {
    let Some(driver) = driver() else { return };
    let context = driver.context();
    for (kind, name) in [
        (AllocKind::Device, "hipMalloc"),
        (AllocKind::Host, "hipHostMalloc"),
        (AllocKind::Shared, "hipMallocManaged"),
    ] {
        fail(&format!("{name}=999"));
        let error = context.allocate(&Request::new(kind, 64)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Native { operation: name });
        assert_eq!((error.backend, error.native), (Some(BackendKind::Hip), Some(999)));
        fail(&format!("{name}=2"));
        let error = context.allocate(&Request::new(kind, 64)).unwrap_err();
        assert!(matches!(error.kind, ErrorKind::OutOfMemory { requested: 64, .. }), "{error}");
    }
    fail("");
}

#[test]
fn memory_of_a_queue_is_of_a_pool_by_hip_s_names() {
    let Some(driver) = driver() else { return };
    let context = driver.context();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let request = Request::new(AllocKind::Device, 4096);
    let pair = || calls_of(|| drop(MemorySource::allocate(&queue, &request).unwrap())).1;
    let first = pair();
    assert!(
        ["hipMemPoolCreate", "hipMemPoolSetAttribute"]
            .iter()
            .all(|name| first.iter().any(|call| call == name))
    );
    drop((pair(), pair()));
    for _ in 0..3 {
        let made: Vec<String> = pair().into_iter().filter(|call| call.starts_with("hip")).collect();
        assert_eq!(made, ["hipMallocFromPoolAsync", "hipEventRecord", "hipFreeAsync"]);
    }
    fail("hipMallocFromPoolAsync=999");
    let refused = MemorySource::allocate(&queue, &request).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Native { operation: "hipMallocFromPoolAsync" });
    assert_eq!((refused.backend, refused.native), (Some(BackendKind::Hip), Some(999)));
    fail("hipMalloc=2");
    let (refused, made) = calls_of(|| context.allocate(&request).unwrap_err());
    assert!(matches!(refused.kind, ErrorKind::OutOfMemory { requested: 4096, .. }), "{refused}");
    let times = |name| made.iter().filter(|call| *call == name).count();
    assert_eq!((times("hipMalloc"), times("hipMemPoolTrimTo")), (3, 2));
    fail("");
    drop((queue, context));
    assert_eq!(driver.live("pools"), 0);
}

#[test]
fn peers_are_devices() {
    let Some(driver) = driver() else { return };
    let mut devices = Vec::new();
    driver.backend.for_each_device(&mut |device| devices.push(device)).unwrap();
    let (own, other) = (driver.context(), Context::new(&driver.backend, &devices[0]).unwrap());
    assert_ne!(own.raw().as_raw(), other.raw().as_raw());
    own.enable_peer_access(&other).unwrap();
    own.enable_peer_access(&other).unwrap();
    own.disable_peer_access(&other).unwrap();
    own.disable_peer_access(&other).unwrap();
    fail("hipDeviceEnablePeerAccess=101");
    let refused = own.enable_peer_access(&other).unwrap_err();
    assert!(matches!(refused.kind, ErrorKind::Unsupported { .. }), "{refused}");
    fail("");
}

/// CUDA's and HIP's contexts have one type, but one driver's handles mean nothing to the other.
#[test]
fn what_is_of_another_driver_is_refused() {
    let Some(hip) = driver() else { return };
    let backend = Cuda::open(hip.backend.path()).unwrap();
    let mut devices = Vec::new();
    backend.for_each_device(&mut |device| devices.push(device)).unwrap();
    let same_number = devices.iter().find(|device| device.as_raw() == hip.device.as_raw()).unwrap();
    let contexts = [hip.context(), Context::new(&backend, same_number).unwrap()];
    let queues = contexts.each_ref().map(|context| context.queue(QueueOrder::InOrder).unwrap());
    for (own, other) in [(0, 1), (1, 0)] {
        let event = queues[other].barrier(&[]).unwrap();
        assert!(!contexts[own].can_access_peer(&contexts[other]).unwrap());
        let calls = [Context::enable_peer_access, Context::disable_peer_access];
        let (refused, made) = calls_of(|| {
            let followed = queues[own].barrier(core::slice::from_ref(&event)).unwrap_err().kind;
            (followed, calls.map(|call| call(&contexts[own], &contexts[other]).unwrap_err().kind))
        });
        let [expected, found] = [own, other].map(|index| contexts[index].id());
        assert_eq!(refused.0, ErrorKind::WrongContext { expected, found });
        assert!(refused.1.iter().all(|kind| matches!(kind, ErrorKind::Unsupported { .. })), "{refused:?}");
        assert!(!made.iter().any(|call| call.contains("Peer") || call.contains("Wait")), "{made:?}");
    }
}

/// Within one process a driver refuses its own handle (201, invalid context), and before that wrong
/// flags (1).
fn opens_its_own(context: &Context<Cuda>) -> usm_core::Error {
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    let array = UsmVec::<u32, Device, _>::zeroed(&queue, 100).unwrap();
    let handle = array.allocation().export_ipc().unwrap();
    // SAFETY: nothing is opened.
    unsafe { context.open_ipc(&handle) }.unwrap_err()
}

#[test]
fn memory_is_shared_with_the_flags_of_the_release() {
    let Some(driver) = driver() else { return };
    let refused = opens_its_own(&driver.context());
    assert_eq!(refused.kind, ErrorKind::Native { operation: "hipIpcOpenMemHandle" });
    assert_eq!((refused.backend, refused.native), (Some(BackendKind::Hip), Some(201)));
}

#[test]
fn a_function_knows_its_wavefront() {
    let Some(driver) = driver() else { return };
    let context = driver.context();
    match Module::build(&context, Code::CudaC("extern \"C\" __global__ void nothing() {}")) {
        Ok(module) => assert_eq!(module.function("nothing").unwrap().info().preferred_multiple, 64),
        Err(BuildError::Runtime(error)) => skip::missing("nvrtc", format_args!("a wavefront: {error}")),
        Err(error) => panic!("{error}"),
    }
    let refused = Module::build(&context, Code::Ptx("a module")).unwrap_err();
    assert_eq!(refused.to_string(), "hip: PTX given, this device takes cubin, CUDA C");
}

/// A copy of the file is a separate driver.
fn older(driver_file: &Path, version: i32) -> (Cuda, PathBuf) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("libamdhip64.so.{}", std::process::id()));
    std::fs::copy(driver_file, &path).unwrap();
    // SAFETY: its initialisers do nothing.
    let library = unsafe { Library::new(&path) }.unwrap();
    // SAFETY: the signature of the driver.
    let make = unsafe { library.get::<unsafe extern "C" fn(i32)>(b"usm_hip_version") }.unwrap();
    // SAFETY: a number.
    unsafe { make(version) };
    let backend = Cuda::open_hip(&path).unwrap();
    drop(library);
    (backend, path)
}

#[test]
fn memory_types_of_hip_5_are_understood() {
    let Some(driver) = driver() else { return };
    let (backend, path) = older(driver.backend.path(), 50_221_153);
    let mut devices = Vec::new();
    backend.for_each_device(&mut |device| devices.push(device)).unwrap();
    assert_eq!(devices[0].info().driver_version.as_str(), "HIP 5.2.21153");
    let context = Context::new(&backend, &devices[0]).unwrap();
    let queue = context.queue(QueueOrder::InOrder).unwrap();
    assert_eq!(opens_its_own(&context).native, Some(201));
    let host = UsmVec::<u8, Host, _>::zeroed(&queue, 8).unwrap();
    let device = UsmVec::<u8, Device, _>::zeroed(&queue, 8).unwrap();
    let shared = UsmVec::<u8, Shared, _>::zeroed(&queue, 8).unwrap();
    let local = [0_u8; 8];
    for (pointer, kind) in [
        (host.as_ptr().cast::<c_void>(), AllocKind::Host),
        (device.as_ptr().cast(), AllocKind::Device),
        (shared.as_ptr().cast(), AllocKind::Shared),
        (local.as_ptr().cast(), AllocKind::Unknown),
    ] {
        assert_eq!(context.raw().query(pointer as usize).unwrap().kind, kind);
    }
    std::fs::remove_file(path).unwrap();
}
