//! Level Zero called directly, on the driver of the tests behind the unmodified loader.
//!
//! Loader and driver read their environment once, so this runs in a process of its own. The driver runs commands on the host when they are
//! appended, so that waits find them done. Launches are left out: the driver's compiler is a stand-in that knows the tests' kernels alone.

use std::ffi::{OsString, c_void};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use level_zero_sys::*;
use usm_core::Queue;
use usm_core::backend::level_zero::{LevelZero, raw};

use super::peer::{self, Peer, Raw};
use crate::row::Row;

/// What the process reads to know that it is the child.
const CHILD: &str = "USM_BENCH_LEVEL_ZERO";
const NAME: &str = "Level Zero on the host";

pub(super) fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// The rows of a child with the environment of the driver.
pub(super) fn from_child() -> Result<Vec<Row>, String> {
    let folder = variable("USM_DEBIAN_LIBRARIES", "cargo xtask setup")?;
    let driver = variable("USM_LEVEL_ZERO_DRIVER", "cargo build -p usm-level-zero-driver")?;
    let loader = Path::new(&folder).join("libze_loader.so.1");
    for path in [&loader, &PathBuf::from(&driver)] {
        if !path.exists() {
            return Err(format!("{} not found", path.display()));
        }
    }
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(own);
    child.args(["backends", "--json"]).env(CHILD, "1");
    child.env("USM_LEVEL_ZERO_LIBRARY", loader).env("ZE_ENABLE_ALT_DRIVERS", driver);
    let output = child.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()));
    }
    let rows: Vec<Row> = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    if rows.is_empty() { Err(String::from_utf8_lossy(&output.stderr).trim().into()) } else { Ok(rows) }
}

fn variable(name: &str, whence: &str) -> Result<OsString, String> {
    std::env::var_os(name).ok_or_else(|| format!("{name} not set ({whence})"))
}

/// In the child.
pub(super) fn rows() -> Result<Vec<Row>, String> {
    let context = peer::context(&LevelZero::load().map_err(|error| error.to_string())?)?;
    let queue = peer::queue(&context)?;
    let driver = Driver::of(&queue)?;
    Ok(peer::memory_rows(NAME, &queue, &driver))
}

/// What the peer calls, with an event of its own.
struct Driver {
    functions: &'static Functions,
    context: ze_context_handle_t,
    device: ze_device_handle_t,
    list: ze_command_list_handle_t,
    event: ze_event_handle_t,
}

impl Driver {
    fn of(queue: &Queue<LevelZero>) -> Result<Self, String> {
        let context = queue.context().raw();
        let (functions, mut device) = (raw::functions(context), raw::device(context));
        let (list, context) = (queue.raw().as_raw(), context.as_raw());
        let description =
            ze_event_pool_desc_t { flags: ZE_EVENT_POOL_FLAG_HOST_VISIBLE, count: 1, ..Default::default() };
        let mut pool = ze_event_pool_handle_t::NULL;
        // SAFETY: a live context and a device of it, room for the answer.
        unsafe {
            functions.zeEventPoolCreate(context, &raw const description, 1, &raw mut device, &raw mut pool)
        }
        .map_err(|error| error.to_string())?;
        let (signal, wait) = (ZE_EVENT_SCOPE_FLAG_HOST, ZE_EVENT_SCOPE_FLAG_DEVICE);
        let description = ze_event_desc_t { signal, wait, ..Default::default() };
        let mut event = ze_event_handle_t::NULL;
        // SAFETY: a live pool with one place, room for the answer.
        unsafe { functions.zeEventCreate(pool, &raw const description, &raw mut event) }
            .map_err(|error| error.to_string())?;
        Ok(Self { functions, context, device, list, event })
    }
}

impl Peer for Driver {
    fn allocate_and_free(&self, size: usize) {
        let (device, host) = (ze_device_mem_alloc_desc_t::default(), ze_host_mem_alloc_desc_t::default());
        let mut pointer = ptr::null_mut();
        // SAFETY: a live context and a device of it, room for the answer.
        let allocated = unsafe {
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
        allocated.expect("memory");
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
        // SAFETY: a live list, an event that is not signalled, disjoint live ranges of that size.
        let appended = unsafe {
            self.functions.zeCommandListAppendMemoryCopy(
                self.list,
                dst,
                src,
                len,
                self.event,
                0,
                ptr::null_mut(),
            )
        };
        appended.expect("a copy");
        self.event.0
    }

    fn poll(&self, event: Raw) {
        let event = ze_event_handle_t(event);
        // SAFETY: a live event.
        while unsafe { self.functions.zeEventQueryStatus(event) } != Ok(ZE_RESULT_SUCCESS) {
            std::thread::yield_now();
        }
    }

    fn release(&self, event: Raw) {
        // SAFETY: a live event that no command refers to any more.
        unsafe { self.functions.zeEventHostReset(ze_event_handle_t(event)) }.expect("reset");
    }
}
