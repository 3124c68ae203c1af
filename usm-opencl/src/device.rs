//! Platforms, devices and their descriptions.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::ptr;

use crate::error::{self, Status, check};
use crate::loader::{Bits, Library, Raw, Usm};
use usm_core::backend::DeviceOps;
use usm_core::driver::process;
use usm_core::driver::sync::sleeping::Mutex;
use usm_core::{AccessFlags, BackendKind, Capabilities, DeviceInfo, DeviceType, Name, Result};

/// Constants of the OpenCL headers.
mod query {
    pub(super) const TYPE: u32 = 0x1000;
    pub(super) const MAX_WORK_GROUP_SIZE: u32 = 0x1004;
    pub(super) const MAX_MEM_ALLOC_SIZE: u32 = 0x1010;
    pub(super) const GLOBAL_MEM_SIZE: u32 = 0x101F;
    pub(super) const LOCAL_MEM_SIZE: u32 = 0x1023;
    pub(super) const NAME: u32 = 0x102B;
    pub(super) const VENDOR: u32 = 0x102C;
    pub(super) const DRIVER_VERSION: u32 = 0x102D;
    pub(super) const PLATFORM: u32 = 0x1031;
    pub(super) const HOST_UNIFIED_MEMORY: u32 = 0x1035;
    pub(super) const HOST_MEM: u32 = 0x4190;
    pub(super) const DEVICE_MEM: u32 = 0x4191;
    pub(super) const SINGLE_SHARED_MEM: u32 = 0x4192;
    pub(super) const CROSS_SHARED_MEM: u32 = 0x4193;
    pub(super) const SYSTEM_MEM: u32 = 0x4194;
    /// A query of a platform.
    pub(super) const PLATFORM_NAME: u32 = 0x0902;
}

const ALL_TYPES: Bits = 0xFFFF_FFFF;
const TYPE_CPU: Bits = 1 << 1;
const TYPE_GPU: Bits = 1 << 2;

/// An OpenCL device. Root devices are never released, so this is plain data.
#[derive(Clone, Copy, Debug)]
pub struct OpenClDevice {
    library: &'static Library,
    raw: Raw,
    pub(super) usm: Option<Usm>,
    info: DeviceInfo,
}

// SAFETY: an id that the runtime accepts on any thread.
unsafe impl Send for OpenClDevice {}
// SAFETY: as above.
unsafe impl Sync for OpenClDevice {}

impl OpenClDevice {
    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    pub(super) fn native(&self) -> Raw {
        self.raw
    }
}

impl DeviceOps for OpenClDevice {
    fn info(&self) -> DeviceInfo {
        self.info
    }
}

/// Calls a list function twice: for the count, then for the objects.
fn list(
    operation: &'static str,
    none: Status,
    call: impl Fn(u32, *mut Raw, *mut u32) -> Status,
) -> Result<Vec<Raw>> {
    let mut count = 0;
    let status = call(0, ptr::null_mut(), &raw mut count);
    if status == none || (status == error::SUCCESS && count == 0) {
        return Ok(Vec::new());
    }
    check(operation, status)?;
    let mut handles = vec![ptr::null_mut(); count as usize];
    check(operation, call(count, handles.as_mut_ptr(), ptr::null_mut()))?;
    Ok(handles)
}

/// Calls `visit` with each device of each platform, in the loader's order. Skips a platform whose
/// query fails.
pub(super) fn for_each(library: &'static Library, visit: &mut dyn FnMut(OpenClDevice)) -> Result<()> {
    enumerate(library)?.into_iter().for_each(visit);
    Ok(())
}

/// One thread at a time: drivers initialise themselves at the first query, not all of them thread
/// safely.
fn enumerate(library: &'static Library) -> Result<Vec<OpenClDevice>> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _inside = process::work()?;
    let _guard = ONE_AT_A_TIME.lock();
    // SAFETY: pointer and count agree.
    let platforms = list("clGetPlatformIDs", error::PLATFORM_NOT_FOUND, |count, handles, total| unsafe {
        (library.platforms)(count, handles, total)
    })?;
    let mut devices_seen: Vec<OpenClDevice> = Vec::new();
    for platform in platforms {
        // SAFETY: a platform of this library; pointer and count agree.
        let devices = list("clGetDeviceIDs", error::DEVICE_NOT_FOUND, |count, handles, total| unsafe {
            (library.devices)(platform, ALL_TYPES, count, handles, total)
        });
        // SAFETY: a platform of this library.
        let usm = unsafe { library.usm(platform) };
        let platform_name = Name::new(&text(|bytes, answer, total| {
            // SAFETY: a platform of this library, space for as many bytes as passed.
            unsafe { (library.platform_info)(platform, query::PLATFORM_NAME, bytes, answer, total) }
        }));
        for raw in devices.unwrap_or_default() {
            let mut info = describe(library, raw, usm.is_some());
            let same_type = devices_seen.iter().filter(|other| other.info.device_type == info.device_type);
            info.index = same_type.count() as u32;
            info.ordinal = devices_seen.len() as u32;
            info.platform = platform_name;
            devices_seen.push(OpenClDevice { library, raw, usm, info });
        }
    }
    Ok(devices_seen)
}

/// The device with this id.
pub(super) fn find(library: &'static Library, raw: Raw) -> Result<OpenClDevice> {
    let mut match_of_id = None;
    for_each(library, &mut |device| {
        if device.raw == raw {
            match_of_id = Some(device);
        }
    })?;
    match_of_id.ok_or_else(|| error::of(usm_core::ErrorKind::NoDevice))
}

/// A value of fixed size; zero if the device does not know the query.
fn value<T: usm_core::bytemuck::Pod>(library: &Library, device: Raw, query: u32) -> T {
    let mut value = T::zeroed();
    let bytes = size_of::<T>();
    // SAFETY: a device of this library, space for the value.
    let status =
        unsafe { (library.device_info)(device, query, bytes, (&raw mut value).cast(), ptr::null_mut()) };
    if status == error::SUCCESS { value } else { T::zeroed() }
}

/// A string of which `call` first returns the size and then the bytes; empty if the runtime does
/// not know the query.
fn text(call: impl Fn(usize, *mut c_void, *mut usize) -> Status) -> String {
    let mut bytes = 0;
    let status = call(0, ptr::null_mut(), &raw mut bytes);
    if status != error::SUCCESS {
        return String::new();
    }
    let mut answer = vec![0_u8; bytes];
    let status = call(bytes, answer.as_mut_ptr().cast(), ptr::null_mut());
    if status != error::SUCCESS {
        return String::new();
    }
    answer.truncate(answer.iter().position(|byte| *byte == 0).unwrap_or(answer.len()));
    String::from_utf8_lossy(&answer).trim().into()
}

/// The platform of a device.
pub(super) fn platform(device: &OpenClDevice) -> isize {
    value(device.library, device.raw, query::PLATFORM)
}

fn describe(library: &Library, device: Raw, usm: bool) -> DeviceInfo {
    let bits = |query| value::<u64>(library, device, query);
    let device_type = match bits(query::TYPE) {
        bits if bits & TYPE_CPU != 0 => DeviceType::Cpu,
        bits if bits & TYPE_GPU != 0 => DeviceType::Gpu,
        _ => DeviceType::Accelerator,
    };
    let flags = |query| {
        if usm { AccessFlags::from_bits_truncate(bits(query) as u32) } else { AccessFlags::empty() }
    };
    let words = |query| {
        text(|bytes, answer, total| {
            // SAFETY: a device of this library, space for as many bytes as passed.
            unsafe { (library.device_info)(device, query, bytes, answer, total) }
        })
    };
    let mut info = DeviceInfo::new(BackendKind::OpenCl, device_type, &words(query::NAME));
    info.vendor = Name::new(&words(query::VENDOR));
    info.driver_version = Name::new(&words(query::DRIVER_VERSION));
    info.max_alloc_size = bits(query::MAX_MEM_ALLOC_SIZE);
    info.global_mem_size = bits(query::GLOBAL_MEM_SIZE);
    info.local_mem_size = bits(query::LOCAL_MEM_SIZE);
    info.max_work_group_size = value::<usize>(library, device, query::MAX_WORK_GROUP_SIZE) as u64;
    info.integrated = value::<u32>(library, device, query::HOST_UNIFIED_MEMORY) != 0;
    info.capabilities = Capabilities::NONE;
    info.capabilities.host = flags(query::HOST_MEM);
    info.capabilities.device = flags(query::DEVICE_MEM);
    info.capabilities.shared = flags(query::SINGLE_SHARED_MEM);
    info.capabilities.cross_device_shared = flags(query::CROSS_SHARED_MEM);
    info.capabilities.system = flags(query::SYSTEM_MEM);
    info
}
