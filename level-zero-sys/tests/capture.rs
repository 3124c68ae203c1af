//! The table against Intel's GPU driver in capture mode: real driver code without a GPU. Calls are
//! recorded and never executed, so nothing here waits without a limit.
//!
//! `USM_DEBIAN_LIBRARIES` names the folder with the loader and the driver (`cargo xtask setup`).

use std::process::{Command, ExitCode};

use level_zero_sys::*;
use skip::missing;

/// One environment of the driver, and the expected findings in it.
struct Configuration {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    devices: usize,
    /// Host, device, shared on one device, shared across devices, system.
    access: [u32; 5],
    max_alloc: u64,
    local_memory: u32,
    validated: bool,
}

const SKYLAKE: Configuration = Configuration {
    name: "skl",
    variables: &[("ProductFamilyOverride", "skl")],
    devices: 1,
    access: [3, 3, 3, 0, 0],
    max_alloc: 4_294_959_104,
    local_memory: 65_536,
    validated: false,
};

const CONFIGURATIONS: [Configuration; 6] = [
    SKYLAKE,
    Configuration { name: "tgllp", variables: &[("ProductFamilyOverride", "tgllp")], ..SKYLAKE },
    Configuration {
        name: "dg2",
        variables: &[("ProductFamilyOverride", "dg2"), ("HardwareInfoOverride", "2x4x16")],
        access: [1, 3, 3, 5, 0],
        ..SKYLAKE
    },
    Configuration {
        name: "pvc",
        variables: &[("ProductFamilyOverride", "pvc"), ("HardwareInfoOverride", "8x8x8")],
        access: [1, 3, 3, 15, 0],
        max_alloc: 27_487_789_056,
        local_memory: 131_072,
        ..SKYLAKE
    },
    Configuration {
        name: "three_devices",
        variables: &[("ProductFamilyOverride", "skl"), ("CreateMultipleRootDevices", "3")],
        devices: 3,
        ..SKYLAKE
    },
    Configuration {
        name: "validation_layer",
        variables: &[
            ("ProductFamilyOverride", "skl"),
            ("ZE_ENABLE_VALIDATION_LAYER", "1"),
            ("ZE_ENABLE_PARAMETER_VALIDATION", "1"),
        ],
        validated: true,
        ..SKYLAKE
    },
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var("CAPTURE_CONFIGURATION") {
        let wanted = CONFIGURATIONS.iter().find(|configuration| configuration.name == name);
        exercise(wanted.expect("a known configuration"));
        return ExitCode::SUCCESS;
    }
    let Some(libraries) = std::env::var_os("USM_DEBIAN_LIBRARIES") else {
        missing("level_zero", "USM_DEBIAN_LIBRARIES not set (cargo xtask setup): no driver in capture mode");
        println!("test result: ok. 0 passed; 0 failed; 1 skipped");
        return ExitCode::SUCCESS;
    };
    let mut failed = 0;
    for configuration in &CONFIGURATIONS {
        let output = Command::new(std::env::current_exe().expect("this program"))
            .env("CAPTURE_CONFIGURATION", configuration.name)
            .env("LD_LIBRARY_PATH", &libraries)
            .envs([("NEOReadDebugKeys", "1"), ("SetCommandStreamReceiver", "1")])
            .env("AUBDumpCaptureFileName", "/dev/null")
            .envs(configuration.variables.iter().copied())
            .output()
            .expect("this program runs again");
        if !output.status.success() {
            failed += 1;
            println!("capture {}: {}", configuration.name, output.status);
            println!("{}", String::from_utf8_lossy(&output.stderr));
        }
    }
    let verdict = if failed == 0 { "ok" } else { "FAILED" };
    println!("test result: {verdict}. {} passed; {failed} failed", CONFIGURATIONS.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Everything below is unsafe in the same way: the handles come from the driver, and every pointer
/// is to a local value that outlives the call.
macro_rules! call {
    ($functions:expr, $name:ident($($argument:expr),*)) => {
        // SAFETY: zeInit succeeded; see above for the arguments.
        unsafe { $functions.$name($($argument),*) }
    };
}

/// The handles that a counting function lists.
fn list<H: Default + Clone>(mut get: impl FnMut(*mut u32, *mut H) -> Result<ze_result_t, Error>) -> Vec<H> {
    let mut count = 0;
    get(&raw mut count, core::ptr::null_mut()).expect("a count");
    let mut handles = vec![H::default(); count as usize];
    get(&raw mut count, handles.as_mut_ptr()).expect("the handles");
    handles
}

fn exercise(expected: &Configuration) {
    let library = Library::open().expect("the loader is on LD_LIBRARY_PATH");
    let level_zero = library.initialize(ze_init_flags_t(0)).expect("a driver");
    let functions = level_zero.functions();
    let drivers: Vec<ze_driver_handle_t> = list(|count, out| call!(functions, zeDriverGet(count, out)));
    let driver = drivers[0];
    let version = call!(functions, check_driver(driver)).expect("a known version");
    assert_eq!(version, ZE_API_VERSION_1_3);
    let devices: Vec<ze_device_handle_t> =
        list(|count, out| call!(functions, zeDeviceGet(driver, count, out)));
    assert_eq!(devices.len(), expected.devices);
    let mut context = ze_context_handle_t::NULL;
    let description = ze_context_desc_t::default();
    call!(functions, zeContextCreate(driver, &raw const description, &raw mut context)).expect("a context");
    for device in &devices {
        properties(functions, *device, expected);
        memory(functions, context, *device, expected);
        recorded(functions, context, *device);
    }
    call!(functions, zeContextDestroy(context)).expect("destroyed");
}

fn properties(functions: &Functions, device: ze_device_handle_t, expected: &Configuration) {
    let mut general = ze_device_properties_t::default();
    call!(functions, zeDeviceGetProperties(device, &raw mut general)).expect("properties");
    assert_eq!((general.type_, general.vendorId), (ZE_DEVICE_TYPE_GPU, 0x8086));
    assert_eq!(general.maxMemAllocSize, expected.max_alloc);
    assert!(general.name.contains(&0), "the name ends");

    let mut compute = ze_device_compute_properties_t::default();
    call!(functions, zeDeviceGetComputeProperties(device, &raw mut compute)).expect("compute properties");
    assert_eq!(compute.maxSharedLocalMemory, expected.local_memory);
    assert!(compute.maxTotalGroupSize > 0 && compute.maxGroupSizeX > 0);
    assert!((1..=ZE_SUBGROUPSIZE_COUNT as u32).contains(&compute.numSubGroupSizes));

    let mut access = ze_device_memory_access_properties_t::default();
    call!(functions, zeDeviceGetMemoryAccessProperties(device, &raw mut access)).expect("access properties");
    let found = [
        access.hostAllocCapabilities,
        access.deviceAllocCapabilities,
        access.sharedSingleDeviceAllocCapabilities,
        access.sharedCrossDeviceAllocCapabilities,
        access.sharedSystemAllocCapabilities,
    ];
    assert_eq!(found.map(|flags| flags.0), expected.access);
}

/// Type and base of the allocation that a pointer lies in.
fn query(functions: &Functions, context: ze_context_handle_t, pointer: *const u8) -> ze_memory_type_t {
    let mut found = ze_memory_allocation_properties_t::default();
    let mut owner = ze_device_handle_t::NULL;
    call!(functions, zeMemGetAllocProperties(context, pointer.cast(), &raw mut found, &raw mut owner))
        .expect("a query is no error");
    found.type_
}

fn memory(
    functions: &Functions,
    context: ze_context_handle_t,
    device: ze_device_handle_t,
    expected: &Configuration,
) {
    const BYTES: usize = 4000;
    let on_device = ze_device_mem_alloc_desc_t::default();
    let on_host = ze_host_mem_alloc_desc_t::default();
    let allocate = |kind: ze_memory_type_t, bytes: usize, alignment: usize| {
        let mut pointer = core::ptr::null_mut();
        let out = &raw mut pointer;
        let (on_device, on_host) = (&raw const on_device, &raw const on_host);
        match kind {
            ZE_MEMORY_TYPE_HOST => call!(functions, zeMemAllocHost(context, on_host, bytes, alignment, out)),
            ZE_MEMORY_TYPE_DEVICE => {
                call!(functions, zeMemAllocDevice(context, on_device, bytes, alignment, device, out))
            }
            _ => {
                call!(functions, zeMemAllocShared(context, on_device, on_host, bytes, alignment, device, out))
            }
        }
        .map(|_| pointer)
    };
    for kind in [ZE_MEMORY_TYPE_HOST, ZE_MEMORY_TYPE_DEVICE, ZE_MEMORY_TYPE_SHARED] {
        let pointer = allocate(kind, BYTES, 64).expect("an allocation");
        assert_eq!(pointer as usize % 64, 0);
        let bytes = pointer.cast::<u8>();
        assert_eq!(query(functions, context, bytes.wrapping_add(100)), kind);
        let (mut base, mut size) = (core::ptr::null_mut(), 0);
        let interior = bytes.wrapping_add(100).cast();
        call!(functions, zeMemGetAddressRange(context, interior, &raw mut base, &raw mut size))
            .expect("a range");
        assert_eq!((base, size), (pointer, BYTES));
        call!(functions, zeMemFree(context, pointer)).expect("freed");
    }
    let local = 0_u8;
    assert_eq!(query(functions, context, &raw const local), ZE_MEMORY_TYPE_UNKNOWN);

    // The driver alone accepts calls that the validation layer refuses, so usm checks above both.
    for (bytes, alignment, refusal) in
        [(0, 64, ZE_RESULT_ERROR_UNSUPPORTED_SIZE), (64, 3, ZE_RESULT_ERROR_UNSUPPORTED_ALIGNMENT)]
    {
        let answer = allocate(ZE_MEMORY_TYPE_DEVICE, bytes, alignment);
        if expected.validated {
            let call = Error::Call { function: "zeMemAllocDevice", result: refusal };
            assert_eq!(answer, Err(call));
        } else {
            let pointer = answer.expect("the driver takes it");
            // The driver cannot even free its block of zero bytes.
            assert_eq!(call!(functions, zeMemFree(context, pointer)).is_ok(), bytes > 0);
        }
    }
}

/// A copy on an immediate list: recorded, and its event stays not ready.
fn recorded(functions: &Functions, context: ze_context_handle_t, device: ze_device_handle_t) {
    let pool_description =
        ze_event_pool_desc_t { flags: ZE_EVENT_POOL_FLAG_HOST_VISIBLE, count: 2, ..Default::default() };
    let (mut pool, mut device) = (ze_event_pool_handle_t::NULL, device);
    let (description, out) = (&raw const pool_description, &raw mut pool);
    call!(functions, zeEventPoolCreate(context, description, 1, &raw mut device, out)).expect("a pool");
    let event_description =
        ze_event_desc_t { index: 1, signal: ZE_EVENT_SCOPE_FLAG_HOST, ..Default::default() };
    let mut event = ze_event_handle_t::NULL;
    call!(functions, zeEventCreate(pool, &raw const event_description, &raw mut event)).expect("an event");
    assert_eq!(call!(functions, zeEventQueryStatus(event)), Ok(ZE_RESULT_NOT_READY));

    let queue = ze_command_queue_desc_t { mode: ZE_COMMAND_QUEUE_MODE_ASYNCHRONOUS, ..Default::default() };
    let mut commands = ze_command_list_handle_t::NULL;
    let (description, out) = (&raw const queue, &raw mut commands);
    call!(functions, zeCommandListCreateImmediate(context, device, description, out)).expect("a list");
    let description = ze_host_mem_alloc_desc_t::default();
    let mut pointer = core::ptr::null_mut();
    call!(functions, zeMemAllocHost(context, &raw const description, 8192, 64, &raw mut pointer))
        .expect("memory");
    let half = pointer.cast::<u8>().wrapping_add(4096).cast();
    let none = core::ptr::null_mut();
    call!(functions, zeCommandListAppendMemoryCopy(commands, pointer, half, 4096, event, 0, none))
        .expect("recorded");
    // A wait answers success at once in this mode, although nothing was executed: only the status
    // tells.
    assert_eq!(call!(functions, zeEventHostSynchronize(event, 1_000_000)), Ok(ZE_RESULT_SUCCESS));
    assert_eq!(call!(functions, zeEventQueryStatus(event)), Ok(ZE_RESULT_NOT_READY));

    call!(functions, zeCommandListDestroy(commands)).expect("destroyed");
    call!(functions, zeEventDestroy(event)).expect("destroyed");
    call!(functions, zeEventPoolDestroy(pool)).expect("destroyed");
    call!(functions, zeMemFree(context, pointer)).expect("freed");
}
