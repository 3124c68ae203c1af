//! Drivers, devices and their descriptions.

use alloc::vec::Vec;
use alloc::{format, vec};
use core::ffi::CStr;
use core::ptr;

use level_zero_sys::*;

use crate::error;
use crate::loader::Library;
use usm_core::backend::DeviceOps;
use usm_core::driver::process;
use usm_core::{AccessFlags, BackendKind, Capabilities, DeviceInfo, DeviceType, Name, Result};

/// A Level Zero root device. Devices live as long as the process, so this is plain data.
#[derive(Clone, Copy, Debug)]
pub struct LevelZeroDevice {
    library: &'static Library,
    functions: &'static Functions,
    driver: ze_driver_handle_t,
    raw: ze_device_handle_t,
    pub(super) engine: Engine,
    info: DeviceInfo,
}

/// The queue group for submissions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Engine {
    pub(super) ordinal: u32,
    /// Maximum bytes of a fill pattern.
    pub(super) max_pattern: usize,
}

impl LevelZeroDevice {
    pub(super) fn library(&self) -> &'static Library {
        self.library
    }

    pub(super) fn functions(&self) -> &'static Functions {
        self.functions
    }

    pub(super) fn driver(&self) -> ze_driver_handle_t {
        self.driver
    }

    pub(super) fn handle(&self) -> ze_device_handle_t {
        self.raw
    }
}

impl DeviceOps for LevelZeroDevice {
    fn info(&self) -> DeviceInfo {
        self.info
    }
}

/// Calls a list function twice: for the count, then for the handles.
fn list<H: Copy + Default>(
    call: impl Fn(*mut u32, *mut H) -> core::result::Result<ze_result_t, Error>,
) -> Result<Vec<H>> {
    let mut count = 0;
    call(&raw mut count, ptr::null_mut()).map_err(error::call)?;
    let mut handles = vec![H::default(); count as usize];
    if count > 0 {
        call(&raw mut count, handles.as_mut_ptr()).map_err(error::call)?;
    }
    handles.truncate(count as usize);
    Ok(handles)
}

/// Calls `visit` with each root device of each driver, in the loader's order. Skips a driver whose
/// query fails or that has another major version of the interface.
pub(super) fn for_each(library: &'static Library, visit: &mut dyn FnMut(LevelZeroDevice)) -> Result<()> {
    let Some(functions) = library.functions() else { return Ok(()) };
    let _inside = process::work()?;
    // SAFETY: `zeInit` succeeded; count and array agree.
    let drivers: Vec<ze_driver_handle_t> =
        list(|count, handles| unsafe { functions.zeDriverGet(count, handles) })?;
    let mut devices_seen: Vec<LevelZeroDevice> = Vec::new();
    for driver in drivers {
        // SAFETY: a driver of this loader.
        let Ok(version) = (unsafe { functions.check_driver(driver) }) else { continue };
        // Drivers have no name.
        let platform = Name::new(&format!("Level Zero {}.{}", version.major(), version.minor()));
        let driver_version = driver_version(functions, driver);
        // SAFETY: as above; count and array agree.
        let devices: Result<Vec<ze_device_handle_t>> =
            list(|count, handles| unsafe { functions.zeDeviceGet(driver, count, handles) });
        for raw in devices.unwrap_or_default() {
            let Ok(mut info) = describe(functions, raw) else { continue };
            let Ok(engine) = compute_engine(functions, raw) else { continue };
            let same_type = devices_seen.iter().filter(|other| other.info.device_type == info.device_type);
            info.index = same_type.count() as u32;
            info.ordinal = devices_seen.len() as u32;
            (info.platform, info.driver_version) = (platform, driver_version);
            devices_seen.push(LevelZeroDevice { library, functions, driver, raw, engine, info });
        }
    }
    devices_seen.into_iter().for_each(visit);
    Ok(())
}

/// The device with this handle; for pointers that belong to another device of the context.
pub(super) fn ordinal_of(library: &'static Library, raw: ze_device_handle_t) -> Option<u32> {
    let mut match_of_id = None;
    for_each(library, &mut |device| {
        if device.raw == raw {
            match_of_id = Some(device.info.ordinal);
        }
    })
    .ok()?;
    match_of_id
}

/// The first compute group, which also copies and fills with wide patterns. Copy groups often lack
/// wide patterns.
fn compute_engine(functions: &Functions, device: ze_device_handle_t) -> Result<Engine> {
    let mut count = 0;
    // SAFETY: a device of this loader; this queries only the count.
    unsafe { functions.zeDeviceGetCommandQueueGroupProperties(device, &raw mut count, ptr::null_mut()) }
        .map_err(error::call)?;
    let mut groups = vec![ze_command_queue_group_properties_t::default(); count as usize];
    // SAFETY: as many structures as passed.
    unsafe { functions.zeDeviceGetCommandQueueGroupProperties(device, &raw mut count, groups.as_mut_ptr()) }
        .map_err(error::call)?;
    let computes = |group: &ze_command_queue_group_properties_t| {
        group.flags.contains(ZE_COMMAND_QUEUE_GROUP_PROPERTY_FLAG_COMPUTE)
    };
    let ordinal =
        groups.iter().position(computes).ok_or_else(|| error::unsupported("a queue that computes"))?;
    Ok(Engine { ordinal: ordinal as u32, max_pattern: groups[ordinal].maxMemoryFillPatternSize })
}

/// The specification says only that this number grows. Written in the parts that Intel's driver and
/// SYCL use.
fn driver_version(functions: &Functions, driver: ze_driver_handle_t) -> Name {
    let mut properties = ze_driver_properties_t::default();
    // SAFETY: a driver of this loader, space for the value.
    match unsafe { functions.zeDriverGetProperties(driver, &raw mut properties) } {
        Ok(_) => {
            let number = properties.driverVersion;
            Name::new(&format!("{}.{}.{}", number >> 24, number >> 16 & 0xff, number & 0xffff))
        }
        Err(_) => Name::new(""),
    }
}

fn describe(functions: &Functions, device: ze_device_handle_t) -> Result<DeviceInfo> {
    let mut general = ze_device_properties_t::default();
    // SAFETY: a device of this loader, space for the value; the same for each call below.
    unsafe { functions.zeDeviceGetProperties(device, &raw mut general) }.map_err(error::call)?;
    let mut compute = ze_device_compute_properties_t::default();
    // SAFETY: as above.
    unsafe { functions.zeDeviceGetComputeProperties(device, &raw mut compute) }.map_err(error::call)?;
    let mut access = ze_device_memory_access_properties_t::default();
    // SAFETY: as above.
    unsafe { functions.zeDeviceGetMemoryAccessProperties(device, &raw mut access) }.map_err(error::call)?;

    let device_type = match general.type_ {
        ZE_DEVICE_TYPE_GPU => DeviceType::Gpu,
        ZE_DEVICE_TYPE_CPU => DeviceType::Cpu,
        _ => DeviceType::Accelerator,
    };
    let name = general.name.map(|letter| letter as u8);
    let name = CStr::from_bytes_until_nul(&name).ok().and_then(|name| name.to_str().ok()).unwrap_or("");
    let mut info = DeviceInfo::new(BackendKind::LevelZero, device_type, name);
    info.vendor = match general.vendorId {
        0x8086 => Name::new("Intel(R) Corporation"),
        other => Name::new(&format!("PCI vendor {other:#06x}")),
    };
    info.max_alloc_size = general.maxMemAllocSize;
    info.global_mem_size = memory_size(functions, device)?;
    info.local_mem_size = u64::from(compute.maxSharedLocalMemory);
    info.max_work_group_size = u64::from(compute.maxTotalGroupSize);
    info.integrated = general.flags.contains(ZE_DEVICE_PROPERTY_FLAG_INTEGRATED);
    // The four bits equal ours, which come from Level Zero.
    let flags = |capabilities: ze_memory_access_cap_flags_t| AccessFlags::from_bits_truncate(capabilities.0);
    info.capabilities = Capabilities::NONE;
    info.capabilities.host = flags(access.hostAllocCapabilities);
    info.capabilities.device = flags(access.deviceAllocCapabilities);
    info.capabilities.shared = flags(access.sharedSingleDeviceAllocCapabilities);
    info.capabilities.cross_device_shared = flags(access.sharedCrossDeviceAllocCapabilities);
    info.capabilities.system = flags(access.sharedSystemAllocCapabilities);
    Ok(info)
}

/// Total bytes of a device's memories. A device that lists none shares the host's memory.
fn memory_size(functions: &Functions, device: ze_device_handle_t) -> Result<u64> {
    let mut count = 0;
    // SAFETY: a device of this loader; this queries only the count.
    unsafe { functions.zeDeviceGetMemoryProperties(device, &raw mut count, ptr::null_mut()) }
        .map_err(error::call)?;
    if count == 0 {
        return Ok(u64::MAX);
    }
    let mut memories = vec![ze_device_memory_properties_t::default(); count as usize];
    // SAFETY: as many structures as passed.
    unsafe { functions.zeDeviceGetMemoryProperties(device, &raw mut count, memories.as_mut_ptr()) }
        .map_err(error::call)?;
    Ok(memories.iter().fold(0_u64, |sum, memory| sum.saturating_add(memory.totalSize)))
}
