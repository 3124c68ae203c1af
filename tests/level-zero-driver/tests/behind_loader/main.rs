//! The driver behind the real, unmodified loader: tests level-zero-sys, the loader and the driver
//! together.
//!
//! Each case runs in a process of its own. `USM_DEBIAN_LIBRARIES` names the folder with the loader
//! (`cargo xtask setup`).

use core::ffi::{CStr, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use level_zero_sys::*;

use harness::{Tally, is_wanted};
use kernels::{kernel, kernels_run, launch, memory_behind_pointers_needs_its_flag};

/// The harness of all test programs with a `main` of their own. usm-tests exports it for tests that
/// depend on usm-core.
#[allow(dead_code, unreachable_pub, reason = "for the others")]
#[path = "../../../src/harness.rs"]
mod harness;
mod kernels;

/// Name, environment and body of a case.
type Case = (&'static str, &'static [(&'static str, &'static str)], fn(&Session));

const CASES: [Case; 10] = [
    ("bytes_move_and_events_signal", &[], bytes_move_and_events_signal),
    ("lists_run_when_submitted", &[], lists_run_when_submitted),
    ("lazy_work_is_in_flight", &[("USM_ZE_LAZY", "1")], lazy_work_is_in_flight),
    ("boxes_are_copied_row_by_row", &[], boxes_are_copied_row_by_row),
    ("kernels_run", &[], kernels_run),
    ("memory_behind_pointers_needs_its_flag", &[], memory_behind_pointers_needs_its_flag),
    ("a_wait_has_a_limit", &[], a_wait_has_a_limit),
    ("misuse_is_an_error", &[("USM_ZE_DEVICES", "2")], misuse_is_an_error),
    (
        "faults_come_as_ordered",
        &[("USM_ZE_FAULTS", "zeMemAllocDevice=0x70000003@2,memory-type=77,null-device")],
        faults_come_as_ordered,
    ),
    ("a_lost_device_stays_lost", &[], a_lost_device_stays_lost),
];

fn main() -> ExitCode {
    if let Ok(name) = std::env::var("BEHIND_LOADER_CASE") {
        let (.., body) = CASES.iter().find(|(known, ..)| *known == name).expect("a known case");
        body(&Session::new());
        return ExitCode::SUCCESS;
    }
    let mut tally = Tally::default();
    let libraries = std::env::var_os("USM_DEBIAN_LIBRARIES");
    let driver = libraries.as_ref().map(|_| driver()).unwrap_or_default();
    for (name, variables, _) in CASES.iter().filter(|(name, ..)| is_wanted(name)) {
        let Some(libraries) = &libraries else {
            tally.miss("level_zero", name, "no loader: USM_DEBIAN_LIBRARIES not set (cargo xtask setup)");
            continue;
        };
        let output = Command::new(std::env::current_exe().expect("this program"))
            .env("BEHIND_LOADER_CASE", name)
            .env("LD_LIBRARY_PATH", libraries)
            .env("ZE_ENABLE_ALT_DRIVERS", &driver)
            .envs(variables.iter().copied())
            .output()
            .expect("this program runs again");
        if output.status.success() {
            tally.pass();
        } else {
            let errors = String::from_utf8_lossy(&output.stderr);
            tally.fail(name, format_args!("{}\n{errors}", output.status));
        }
    }
    tally.end()
}

/// The driver: `USM_LEVEL_ZERO_DRIVER`, or built for this test.
fn driver() -> PathBuf {
    if let Some(path) = std::env::var_os("USM_LEVEL_ZERO_DRIVER") {
        return path.into();
    }
    // A separate folder: the cargo that runs this test may hold the lock of its own target folder.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("driver");
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--lib", "--manifest-path"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status();
    assert!(status.expect("cargo runs").success());
    target.join("debug").join("libusm_level_zero_driver.so")
}

/// Everything a case starts from.
struct Session {
    level_zero: LevelZero,
    driver: ze_driver_handle_t,
    devices: Vec<ze_device_handle_t>,
    context: ze_context_handle_t,
    /// An immediate list on the first device.
    commands: ze_command_list_handle_t,
    pool: ze_event_pool_handle_t,
}

/// Every call below is unsafe for the same reasons. Handles come from the driver. Every pointer is
/// to a local value that outlives the work, or deliberately wrong in a way that this driver checks.
macro_rules! call {
    ($session:expr, $name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: zeInit succeeded; see above for the arguments.
        unsafe { $session.level_zero.functions().$name($($argument),*) }
    };
}
use call;

const NO_EVENT: ze_event_handle_t = ze_event_handle_t::NULL;
const NO_WAITS: *mut ze_event_handle_t = core::ptr::null_mut();
const SECOND: u64 = 1_000_000_000;

impl Session {
    fn new() -> Self {
        let library = Library::open().expect("the loader is on LD_LIBRARY_PATH");
        let level_zero = library.initialize(ze_init_flags_t(0)).expect("the driver");
        let mut session = Self {
            level_zero,
            driver: ze_driver_handle_t::NULL,
            devices: vec![ze_device_handle_t::NULL; 8],
            context: ze_context_handle_t::NULL,
            commands: ze_command_list_handle_t::NULL,
            pool: ze_event_pool_handle_t::NULL,
        };
        let (mut one, mut many) = (1, 8);
        let (driver, devices) = (&raw mut session.driver, session.devices.as_mut_ptr());
        call!(session, zeDriverGet(&raw mut one, driver)).expect("a driver");
        assert_eq!(call!(session, check_driver(session.driver)), Ok(ZE_API_VERSION_1_4));
        call!(session, zeDeviceGet(session.driver, &raw mut many, devices)).expect("devices");
        session.devices.truncate(many as usize);
        let context = &raw mut session.context;
        let description = ze_context_desc_t::default();
        call!(session, zeContextCreate(session.driver, &raw const description, context)).expect("a context");
        let pool = &raw mut session.pool;
        let description = ze_event_pool_desc_t { count: 8, ..Default::default() };
        let none = core::ptr::null_mut();
        call!(session, zeEventPoolCreate(session.context, &raw const description, 0, none, pool))
            .expect("a pool");
        let commands = &raw mut session.commands;
        let description = ze_command_queue_desc_t::default();
        let device = session.devices[0];
        call!(
            session,
            zeCommandListCreateImmediate(session.context, device, &raw const description, commands)
        )
        .expect("a list");
        session
    }

    fn event(&self, index: u32) -> ze_event_handle_t {
        let mut event = NO_EVENT;
        let description = ze_event_desc_t { index, ..Default::default() };
        call!(self, zeEventCreate(self.pool, &raw const description, &raw mut event)).expect("an event");
        event
    }

    fn device_memory(&self, bytes: usize) -> Result<*mut c_void, Error> {
        let mut pointer = core::ptr::null_mut();
        let description = ze_device_mem_alloc_desc_t::default();
        let (device, out) = (self.devices[0], &raw mut pointer);
        call!(self, zeMemAllocDevice(self.context, &raw const description, bytes, 64, device, out))?;
        Ok(pointer)
    }

    fn status(&self, event: ze_event_handle_t) -> Result<ze_result_t, Error> {
        call!(self, zeEventQueryStatus(event))
    }

    /// The error of a function with that code.
    fn refusal<T>(function: &'static str, result: ze_result_t) -> Result<T, Error> {
        Err(Error::Call { function, result })
    }
}

fn bytes_move_and_events_signal(session: &Session) {
    let memory = session.device_memory(4096).expect("memory");
    let pattern = [1_u8, 2, 3, 4];
    let (first, second) = (session.event(0), session.event(1));
    // The copy out waits for the fill by its event.
    let mut out = [0_u8; 8];
    let mut waits = [first];
    let to = out.as_mut_ptr().cast();
    call!(
        session,
        zeCommandListAppendMemoryCopy(session.commands, to, memory, 8, second, 1, waits.as_mut_ptr())
    )
    .expect("a copy");
    assert_eq!((session.status(second), out), (Ok(ZE_RESULT_NOT_READY), [0; 8]));
    let queue = ze_command_queue_desc_t::default();
    let mut other = ze_command_list_handle_t::NULL;
    let (device, list) = (session.devices[0], &raw mut other);
    call!(session, zeCommandListCreateImmediate(session.context, device, &raw const queue, list))
        .expect("a list");
    let from = pattern.as_ptr().cast();
    call!(session, zeCommandListAppendMemoryFill(other, memory, from, 4, 4096, first, 0, NO_WAITS))
        .expect("a fill");
    assert_eq!(call!(session, zeEventHostSynchronize(second, SECOND)), Ok(ZE_RESULT_SUCCESS));
    assert_eq!(out, [1, 2, 3, 4, 1, 2, 3, 4]);
}

fn lists_run_when_submitted(session: &Session) {
    let (context, device) = (session.context, session.devices[0]);
    let (mut queue, mut list, mut fence) =
        (ze_command_queue_handle_t::NULL, ze_command_list_handle_t::NULL, ze_fence_handle_t::NULL);
    let description = ze_command_queue_desc_t::default();
    call!(session, zeCommandQueueCreate(context, device, &raw const description, &raw mut queue))
        .expect("a queue");
    let description = ze_command_list_desc_t::default();
    call!(session, zeCommandListCreate(context, device, &raw const description, &raw mut list))
        .expect("a list");
    let description = ze_fence_desc_t::default();
    call!(session, zeFenceCreate(queue, &raw const description, &raw mut fence)).expect("a fence");
    let (mut value, step) = (0_u32, 7_u32);
    let (to, from) = ((&raw mut value).cast(), (&raw const step).cast());
    call!(session, zeCommandListAppendMemoryCopy(list, to, from, 4, NO_EVENT, 0, NO_WAITS)).expect("a copy");
    let mut lists = [list];
    let mut submit =
        || call!(session, zeCommandQueueExecuteCommandLists(queue, 1, lists.as_mut_ptr(), fence));
    let open =
        Session::refusal("zeCommandQueueExecuteCommandLists", ZE_RESULT_ERROR_INVALID_COMMAND_LIST_TYPE);
    assert_eq!(submit(), open);
    call!(session, zeCommandListClose(list)).expect("closed");
    assert_eq!(value, 0);
    // The same list twice.
    for _ in 0..2 {
        value = 0;
        submit().expect("submitted");
        assert_eq!(call!(session, zeFenceHostSynchronize(fence, SECOND)), Ok(ZE_RESULT_SUCCESS));
        assert_eq!(call!(session, zeCommandQueueSynchronize(queue, SECOND)), Ok(ZE_RESULT_SUCCESS));
        assert_eq!(value, 7);
    }
}

fn lazy_work_is_in_flight(session: &Session) {
    let memory = session.device_memory(64).expect("memory");
    let (zero, event) = (0_u8, session.event(0));
    for _ in 0..3 {
        let from = (&raw const zero).cast();
        call!(
            session,
            zeCommandListAppendMemoryFill(session.commands, memory, from, 1, 64, NO_EVENT, 0, NO_WAITS)
        )
        .expect("a fill");
    }
    call!(session, zeCommandListAppendSignalEvent(session.commands, event)).expect("a signal");
    // Each query executes one command: three fills and the signal.
    let answers: Vec<_> = (0..4).map(|_| session.status(event).expect("a status")).collect();
    assert_eq!(answers, [ZE_RESULT_NOT_READY, ZE_RESULT_NOT_READY, ZE_RESULT_NOT_READY, ZE_RESULT_SUCCESS]);
}

fn boxes_are_copied_row_by_row(session: &Session) {
    let from: Vec<u8> = (0..64).collect();
    let mut to = [0_u8; 64];
    let source = ze_copy_region_t { originX: 2, originY: 1, width: 3, height: 2, ..Default::default() };
    let target = ze_copy_region_t { originX: 1, width: 3, height: 2, ..Default::default() };
    let (to_pointer, from_pointer) = (to.as_mut_ptr().cast(), from.as_ptr().cast());
    let (to_region, from_region) = (&raw const target, &raw const source);
    call!(
        session,
        zeCommandListAppendMemoryCopyRegion(
            session.commands,
            to_pointer,
            to_region,
            16,
            0,
            from_pointer,
            from_region,
            8,
            0,
            NO_EVENT,
            0,
            NO_WAITS,
        )
    )
    .expect("a copy");
    assert_eq!((&to[1..4], &to[17..20]), (&[10, 11, 12][..], &[18, 19, 20][..]));
    assert_eq!(to.iter().filter(|byte| **byte != 0).count(), 6);
}

fn a_wait_has_a_limit(session: &Session) {
    let spin = kernel(session, c"spin").expect("a kernel");
    let event = session.event(0);
    launch(session, spin, 1, event).expect("launched");
    for limit in [0, 1, 1_000_000] {
        assert_eq!(call!(session, zeEventHostSynchronize(event, limit)), Ok(ZE_RESULT_NOT_READY));
    }
    assert_eq!(session.status(event), Ok(ZE_RESULT_NOT_READY));
    call!(session, zeEventHostSignal(event)).expect("signalled");
    assert_eq!(call!(session, zeEventHostSynchronize(event, 0)), Ok(ZE_RESULT_SUCCESS));
}

fn misuse_is_an_error(session: &Session) {
    assert_eq!(session.devices.len(), 2);
    let free = |pointer: *mut c_void| call!(session, zeMemFree(session.context, pointer));
    let refused = Session::refusal("zeMemFree", ZE_RESULT_ERROR_INVALID_ARGUMENT);
    let memory = session.device_memory(100).expect("memory");
    assert_eq!(free(memory.cast::<u8>().wrapping_add(1).cast()), refused);
    free(memory).expect("freed");
    assert_eq!(free(memory), refused);
    for (bytes, code) in
        [(0, ZE_RESULT_ERROR_UNSUPPORTED_SIZE), ((1 << 30) + 1, ZE_RESULT_ERROR_UNSUPPORTED_SIZE)]
    {
        assert_eq!(session.device_memory(bytes), Session::refusal("zeMemAllocDevice", code));
    }
    let event = session.event(3);
    let description = ze_event_desc_t { index: 3, ..Default::default() };
    let mut twice = NO_EVENT;
    let again = call!(session, zeEventCreate(session.pool, &raw const description, &raw mut twice));
    assert_eq!(again, Session::refusal("zeEventCreate", ZE_RESULT_ERROR_INVALID_ARGUMENT));
    call!(session, zeEventDestroy(event)).expect("destroyed");
    assert_eq!(
        session.status(event),
        Session::refusal("zeEventQueryStatus", ZE_RESULT_ERROR_INVALID_ARGUMENT)
    );
    let null = session.status(NO_EVENT);
    assert_eq!(null, Session::refusal("zeEventQueryStatus", ZE_RESULT_ERROR_INVALID_NULL_HANDLE));
    // A structure with the tag of another function.
    let mut wrong = ze_context_desc_t { stype: ZE_STRUCTURE_TYPE_EVENT_DESC, ..Default::default() };
    let mut context = ze_context_handle_t::NULL;
    let made = call!(session, zeContextCreate(session.driver, &raw mut wrong, &raw mut context));
    assert_eq!(made, Session::refusal("zeContextCreate", ZE_RESULT_ERROR_INVALID_ENUMERATION));
}

fn faults_come_as_ordered(session: &Session) {
    let memory = session.device_memory(64).expect("the first call goes well");
    for _ in 0..2 {
        let full = Session::refusal("zeMemAllocDevice", ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
        assert_eq!(session.device_memory(64), full);
    }
    let mut found = ze_memory_allocation_properties_t::default();
    let mut owner = session.devices[0];
    let out = &raw mut found;
    call!(session, zeMemGetAllocProperties(session.context, memory, out, &raw mut owner)).expect("a query");
    assert_eq!((found.type_, owner.is_null()), (ze_memory_type_t(77), true));
}

fn a_lost_device_stays_lost(session: &Session) {
    let event = session.event(0);
    assert_eq!(faults(c"device-lost"), 0);
    let lost = |function| Session::refusal(function, ZE_RESULT_ERROR_DEVICE_LOST);
    let no_memory: Result<*mut c_void, Error> =
        Session::refusal("zeMemAllocDevice", ZE_RESULT_ERROR_DEVICE_LOST);
    assert_eq!(session.status(event), lost("zeEventQueryStatus"));
    assert_eq!(call!(session, zeEventHostSynchronize(event, SECOND)), lost("zeEventHostSynchronize"));
    assert_eq!(session.device_memory(64), no_memory);
    let signal = call!(session, zeCommandListAppendSignalEvent(session.commands, event));
    assert_eq!(signal, lost("zeCommandListAppendSignalEvent"));
    assert_eq!(faults(c"nonsense"), 1);
    assert_eq!(faults(c""), 0);
    assert_eq!(session.status(event), Ok(ZE_RESULT_NOT_READY));
}

/// Replaces the faults of the driver, which the loader opened from the same file.
fn faults(text: &CStr) -> u32 {
    let path = std::env::var_os("ZE_ENABLE_ALT_DRIVERS").expect("set by the parent");
    // SAFETY: the library is already open; this adds a reference.
    let library = unsafe { libloading::Library::new(path) }.expect("the driver");
    // SAFETY: exported by the driver with this signature.
    let function = unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> u32>(b"usm_ze_faults\0") };
    // SAFETY: the text ends with a zero.
    unsafe { function.expect("exported")(text.as_ptr()) }
}
