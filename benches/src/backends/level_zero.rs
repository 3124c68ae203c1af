//! Direct calls of Level Zero: on the test driver behind the unmodified loader, and on Intel's GPU
//! driver in capture mode.
//!
//! Loader and drivers read their environment once, so each combination runs in its own process. The
//! test driver runs commands on the host at their submission, so that waits find them complete. Its
//! calls cost almost nothing, so its rows show our overhead. Intel's driver does all its work for a
//! GPU but has none, so nothing runs: its calls have their real cost. The host signals each event
//! on both sides, so that the work after a completed operation is measured too.

use std::cell::Cell;
use std::ffi::{OsString, c_void};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use level_zero_sys::*;
use usm_core::{Event, Queue};
use usm_kernel::Code;
use usm_level_zero::{LevelZero, raw};

use super::peer::{self, Events, GROUP, ITEMS, Peer, Raw, SPIR_V, Turn, Undone};
use crate::row::Row;

/// The child's variable for its driver.
const CHILD: &str = "USM_BENCH_LEVEL_ZERO";
const ON_THE_HOST: &str = "Level Zero on the host";
const CAPTURE: &str = "Level Zero, Intel's driver";
/// A Skylake that records no calls: capture of an empty range of calls.
const CAPTURE_VARIABLES: [(&str, &str); 5] = [
    ("NEOReadDebugKeys", "1"),
    ("ProductFamilyOverride", "skl"),
    ("SetCommandStreamReceiver", "1"),
    ("AUBDumpCaptureFileName", "/dev/null"),
    ("AUBDumpSubCaptureMode", "2"),
];

pub(super) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// The rows of a child with the environment of the driver.
pub(super) fn on_the_host() -> Result<Vec<Row>, String> {
    let driver = variable("USM_LEVEL_ZERO_DRIVER", "cargo build -p usm-level-zero-driver")?;
    if !Path::new(&driver).exists() {
        return Err(format!("{} not found", PathBuf::from(driver).display()));
    }
    child(ON_THE_HOST, &[("ZE_ENABLE_ALT_DRIVERS", driver)])
}

/// The rows of a child on Intel's driver.
pub(super) fn in_capture() -> Result<Vec<Row>, String> {
    let mut variables: Vec<(&str, OsString)> =
        CAPTURE_VARIABLES.iter().map(|(name, value)| (*name, value.into())).collect();
    variables.push(("LD_LIBRARY_PATH", variable("USM_DEBIAN_LIBRARIES", "cargo xtask setup")?));
    child(CAPTURE, &variables)
}

fn child(name: &str, variables: &[(&str, OsString)]) -> Result<Vec<Row>, String> {
    let folder = variable("USM_DEBIAN_LIBRARIES", "cargo xtask setup")?;
    let loader = Path::new(&folder).join("libze_loader.so.1");
    if !loader.exists() {
        return Err(format!("{} not found", loader.display()));
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(own);
    child.args(["backends", "--json"]).env(CHILD, name).env("USM_LEVEL_ZERO_LIBRARY", loader);
    let output = child.envs(variables.iter().cloned()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    let rows: Vec<Row> = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    if rows.is_empty() { Err(String::from_utf8_lossy(&output.stderr).trim().into()) } else { Ok(rows) }
}

fn variable(name: &str, whence: &str) -> Result<OsString, String> {
    std::env::var_os(name).ok_or_else(|| format!("{name} not set ({whence})"))
}

/// Runs in the child.
pub(super) fn rows() -> Result<Vec<Row>, String> {
    let name = std::env::var(CHILD).map_err(|error| error.to_string())?;
    let context = peer::context(&LevelZero::load().map_err(|error| error.to_string())?)?;
    let queue = peer::queue(&context)?;
    let mut driver = Driver::of(&queue)?;
    if name == CAPTURE {
        driver.signals = true;
        return all(&name, &queue, &driver, &Signals(driver.functions));
    }
    all(&name, &queue, &driver, &())
}

fn all(
    name: &str,
    queue: &Queue<LevelZero>,
    driver: &Driver,
    undone: &impl Undone<LevelZero>,
) -> Result<Vec<Row>, String> {
    let mut rows = peer::memory_rows(name, queue, driver, undone);
    let kernel = driver.kernel(queue).map_err(|error| error.to_string())?;
    // A list may run its commands in any order, so each names the previous one.
    let launch = |turn: Turn| driver.launch(kernel, turn).expect("a launch");
    let peers = ("same calls", Events::Kept);
    rows.extend(peer::launch_rows(name, queue, Code::SpirV(SPIR_V), (driver, undone), peers, launch)?);
    Ok(rows)
}

/// Signals events from the host.
struct Signals(&'static Functions);

impl Undone<LevelZero> for Signals {
    const ALONE: bool = true;

    fn complete(&self, event: &Event<LevelZero>) {
        // SAFETY: a live event.
        unsafe { self.0.zeEventHostSignal(event.raw().as_raw()) }.expect("signalled");
    }
}

/// The peer, with its own events.
struct Driver {
    functions: &'static Functions,
    context: ze_context_handle_t,
    device: ze_device_handle_t,
    list: ze_command_list_handle_t,
    /// Reset and used in turn, as in a program with a fixed number of pending events.
    events: Vec<ze_event_handle_t>,
    next: Cell<usize>,
    /// Whether the host signals them.
    signals: bool,
}

impl Driver {
    fn of(queue: &Queue<LevelZero>) -> Result<Self, String> {
        const COUNT: u32 = 64;
        let context = queue.context().raw();
        let (functions, mut device) = (raw::functions(context), raw::device(context));
        let (list, context) = (queue.raw().as_raw(), context.as_raw());
        let description = ze_event_pool_desc_t {
            flags: ZE_EVENT_POOL_FLAG_HOST_VISIBLE,
            count: COUNT,
            ..Default::default()
        };
        let mut pool = ze_event_pool_handle_t::NULL;
        // SAFETY: a live context and a device of it, room for the answer.
        unsafe {
            functions.zeEventPoolCreate(context, &raw const description, 1, &raw mut device, &raw mut pool)
        }
        .map_err(|error| error.to_string())?;
        let (signal, wait) = (ZE_EVENT_SCOPE_FLAG_HOST, ZE_EVENT_SCOPE_FLAG_DEVICE);
        let mut events = Vec::new();
        for index in 0..COUNT {
            let description = ze_event_desc_t { index, signal, wait, ..Default::default() };
            let mut event = ze_event_handle_t::NULL;
            // SAFETY: a live pool with that place, room for the answer.
            unsafe { functions.zeEventCreate(pool, &raw const description, &raw mut event) }
                .map_err(|error| error.to_string())?;
            events.push(event);
        }
        Ok(Self { functions, context, device, list, events, next: Cell::new(0), signals: false })
    }

    /// An event that is not signalled.
    fn event(&self) -> ze_event_handle_t {
        let next = self.next.get();
        self.next.set((next + 1) % self.events.len());
        // SAFETY: a live event that no command refers to any more.
        unsafe { self.functions.zeEventHostReset(self.events[next]) }.expect("reset");
        self.events[next]
    }

    fn kernel(&self, queue: &Queue<LevelZero>) -> Result<ze_kernel_handle_t, Error> {
        let description = ze_module_desc_t {
            format: ZE_MODULE_FORMAT_IL_SPIRV,
            inputSize: SPIR_V.len(),
            pInputModule: SPIR_V.as_ptr(),
            ..Default::default()
        };
        let (context, log) = (queue.context().raw().as_raw(), ptr::null_mut());
        let (mut module, mut kernel) = (ze_module_handle_t::NULL, ze_kernel_handle_t::NULL);
        let (module_description, place) = (&raw const description, &raw mut module);
        // SAFETY: live context and device, as many bytes as said, room for the answer; a log is not
        // asked for.
        unsafe { self.functions.zeModuleCreate(context, self.device, module_description, place, log) }?;
        let description = ze_kernel_desc_t { pKernelName: c"scale".as_ptr(), ..Default::default() };
        // SAFETY: a live module that is never destroyed, a name that ends in NUL, room for the
        // answer.
        unsafe { self.functions.zeKernelCreate(module, &raw const description, &raw mut kernel) }?;
        let indirect = ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST
            | ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE
            | ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED;
        // SAFETY: a live kernel.
        unsafe { self.functions.zeKernelSetIndirectAccess(kernel, indirect) }?;
        Ok(kernel)
    }

    fn launch(&self, kernel: ze_kernel_handle_t, turn: Turn) -> Result<Raw, Error> {
        let (address, by, event) = (turn.address, 1.0_f32, self.event());
        let groups = ze_group_count_t { groupCountX: (ITEMS / GROUP) as u32, groupCountY: 1, groupCountZ: 1 };
        let mut before = turn.before.map(ze_event_handle_t);
        let (count, waits) = match &mut before {
            Some(before) => (1, ptr::from_mut(before)),
            None => (0, ptr::null_mut()),
        };
        let functions = self.functions;
        // SAFETY: live list, kernel and events, arguments of its types, an array with an element
        // for each item.
        unsafe {
            functions.zeKernelSetGroupSize(kernel, GROUP as u32, 1, 1)?;
            functions.zeKernelSetArgumentValue(kernel, 0, size_of::<Raw>(), (&raw const address).cast())?;
            functions.zeKernelSetArgumentValue(kernel, 1, 4, (&raw const by).cast())?;
            functions.zeKernelSetArgumentValue(kernel, 2, 4 * GROUP, ptr::null())?;
            let groups = &raw const groups;
            functions.zeCommandListAppendLaunchKernel(self.list, kernel, groups, event, count, waits)?;
        }
        Ok(event.0)
    }
}

impl Peer for Driver {
    fn allocate_and_free(&self, size: usize) {
        let (device, host) = (ze_device_mem_alloc_desc_t::default(), ze_host_mem_alloc_desc_t::default());
        let mut pointer = ptr::null_mut();
        // SAFETY: a live context and a device of it, room for the answer.
        let status = unsafe {
            self.functions.zeMemAllocShared(
                self.context,
                &raw const device,
                &raw const host,
                size,
                64,
                self.device,
                &raw mut pointer,
            )
        };
        status.expect("memory");
        // SAFETY: just allocated, unused.
        unsafe { self.functions.zeMemFree(self.context, black_box(pointer)) }.expect("freed");
    }

    /// Two calls.
    fn query(&self, address: *const c_void) {
        let mut properties = ze_memory_allocation_properties_t::default();
        let (mut device, mut base, mut size) = (ze_device_handle_t::NULL, ptr::null_mut(), 0);
        // SAFETY: a live context, room for the answers; the address is not read.
        let _ = unsafe {
            self.functions.zeMemGetAllocProperties(
                self.context,
                address,
                &raw mut properties,
                &raw mut device,
            )
        };
        // SAFETY: as above.
        let _ = unsafe {
            self.functions.zeMemGetAddressRange(self.context, address, &raw mut base, &raw mut size)
        };
        black_box((properties, device, base, size));
    }

    fn copy(&self, dst: Raw, src: *const c_void, len: usize) -> Raw {
        let event = self.event();
        // SAFETY: a live list, an event that is not signalled, disjoint live ranges of that size.
        let status = unsafe {
            self.functions.zeCommandListAppendMemoryCopy(self.list, dst, src, len, event, 0, ptr::null_mut())
        };
        status.expect("a copy");
        event.0
    }

    fn poll(&self, event: Raw) {
        let event = ze_event_handle_t(event);
        // SAFETY: a live event.
        while unsafe { self.functions.zeEventQueryStatus(event) } != Ok(ZE_RESULT_SUCCESS) {
            std::thread::yield_now();
        }
    }

    /// The events are reused.
    fn release(&self, _: Raw) {}

    fn complete(&self, event: Raw) {
        if self.signals {
            // SAFETY: a live event.
            unsafe { self.functions.zeEventHostSignal(ze_event_handle_t(event)) }.expect("signalled");
        }
    }
}
