//! Devices and their descriptions.

use core::ffi::CStr;

use crate::error;
use crate::loader::Driver;
use crate::table::DeviceId;
use usm_core::backend::DeviceOps;
use usm_core::driver::process;
use usm_core::{AccessFlags, Capabilities, DeviceInfo, DeviceType, Name, Result};

/// A device of CUDA, or of HIP.
#[derive(Clone, Copy, Debug)]
pub struct CudaDevice {
    driver: &'static Driver,
    id: DeviceId,
    info: DeviceInfo,
}

impl CudaDevice {
    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(super) fn id(&self) -> DeviceId {
        self.id
    }
}

impl DeviceOps for CudaDevice {
    fn info(&self) -> DeviceInfo {
        self.info
    }
}

pub(super) fn for_each(driver: &'static Driver, visit: &mut dyn FnMut(CudaDevice)) -> Result<()> {
    let _inside = process::work()?;
    let names = driver.names();
    let mut count = 0;
    // SAFETY: space for the value.
    match unsafe { (driver.device_count)(&raw mut count) } {
        error::NO_DEVICE => return Ok(()),
        code => driver.check(names.device_count, code)?,
    }
    for ordinal in 0..count {
        let mut id = 0;
        // SAFETY: space for the value, an ordinal below the count.
        driver.check(names.device_get, unsafe { (driver.device_get)(&raw mut id, ordinal) })?;
        visit(CudaDevice { driver, id, info: describe(driver, id, ordinal as u32)? });
    }
    Ok(())
}

fn describe(driver: &Driver, id: DeviceId, ordinal: u32) -> Result<DeviceInfo> {
    let (vendor, names) = (driver.vendor, driver.names());
    let mut name = [0_u8; 128];
    // SAFETY: room for as many bytes as passed.
    driver.check(names.device_name, unsafe { (driver.device_name)(name.as_mut_ptr().cast(), 127, id) })?;
    let mut memory = 0;
    // SAFETY: space for the value.
    driver.check(names.device_memory, unsafe { (driver.device_memory)(&raw mut memory, id) })?;
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: space for the value; a driver that does not know the attribute returns an error
        // and leaves 0.
        let code = unsafe { (driver.device_attribute)(&raw mut value, which, id) };
        if code == error::SUCCESS { value } else { 0 }
    };
    let name = CStr::from_bytes_until_nul(&name).ok().and_then(|name| name.to_str().ok()).unwrap_or("");
    let mut info = DeviceInfo::new(vendor.backend, DeviceType::Gpu, name);
    info.vendor = Name::new(vendor.company);
    info.platform = Name::new(vendor.platform);
    let mut version = 0;
    // SAFETY: space for the value.
    driver.check(names.driver_version, unsafe { (driver.driver_version)(&raw mut version) })?;
    info.driver_version = Name::new(&(vendor.version)(version));
    info.index = ordinal;
    info.ordinal = ordinal;
    info.global_mem_size = memory as u64;
    // The driver reports no limit for a single allocation, so the memory size is the limit.
    info.max_alloc_size = memory as u64;
    let attributes = &vendor.attributes;
    info.local_mem_size = attribute(attributes.max_shared_memory_per_block) as u64;
    info.max_work_group_size = attribute(attributes.max_threads_per_block) as u64;
    info.integrated = attribute(attributes.is_integrated) != 0;
    let has = |which| attribute(which) != 0;
    info.queue_memory = has(attributes.memory_pools_supported) && driver.in_order.is_some();
    let host_atomics = has(attributes.host_native_atomic_supported);
    info.capabilities = Capabilities::NONE;
    info.capabilities.device = AccessFlags::ACCESS | AccessFlags::ATOMIC;
    info.capabilities.host = access_flags(true, true, host_atomics);
    info.capabilities.shared =
        access_flags(has(attributes.managed_memory), has(attributes.concurrent_managed_access), host_atomics);
    info.capabilities.cross_device_shared = info.capabilities.shared;
    info.capabilities.system = access_flags(has(attributes.pageable_memory_access), true, host_atomics);
    Ok(info)
}

fn access_flags(present: bool, concurrent: bool, host_atomics: bool) -> AccessFlags {
    let mut flags = AccessFlags::empty();
    flags.set(AccessFlags::ACCESS | AccessFlags::ATOMIC, present);
    flags.set(AccessFlags::CONCURRENT, present && concurrent);
    flags.set(AccessFlags::CONCURRENT_ATOMIC, present && concurrent && host_atomics);
    flags
}
