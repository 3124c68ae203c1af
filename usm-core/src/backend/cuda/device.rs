//! Devices and what the driver says of them.

use alloc::format;
use core::ffi::CStr;

use super::error::{self, check};
use super::loader::{DeviceId, Driver};
use crate::error::Result;
use crate::{AccessFlags, BackendKind, Capabilities, DeviceInfo, DeviceType, Name};

/// `CUdevice_attribute`.
mod attribute {
    pub(super) const MAX_THREADS_PER_BLOCK: i32 = 1;
    pub(super) const MAX_SHARED_MEMORY_PER_BLOCK: i32 = 8;
    pub(super) const INTEGRATED: i32 = 18;
    pub(super) const MANAGED_MEMORY: i32 = 83;
    pub(super) const HOST_NATIVE_ATOMIC_SUPPORTED: i32 = 86;
    pub(super) const PAGEABLE_MEMORY_ACCESS: i32 = 88;
    pub(super) const CONCURRENT_MANAGED_ACCESS: i32 = 89;
}

/// A CUDA device.
#[derive(Clone, Copy, Debug)]
pub struct CudaDevice {
    driver: &'static Driver,
    id: DeviceId,
    info: DeviceInfo,
}

impl CudaDevice {
    pub(super) fn info(&self) -> DeviceInfo {
        self.info
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(super) fn id(&self) -> DeviceId {
        self.id
    }
}

pub(super) fn for_each(driver: &'static Driver, visit: &mut dyn FnMut(CudaDevice)) -> Result<()> {
    let mut count = 0;
    // SAFETY: room for the answer.
    match unsafe { (driver.device_count)(&raw mut count) } {
        error::NO_DEVICE => return Ok(()),
        code => check("cuDeviceGetCount", code)?,
    }
    for ordinal in 0..count {
        let mut id = 0;
        // SAFETY: room for the answer, an ordinal below the count.
        check("cuDeviceGet", unsafe { (driver.device_get)(&raw mut id, ordinal) })?;
        visit(CudaDevice { driver, id, info: describe(driver, id, ordinal as u32)? });
    }
    Ok(())
}

fn describe(driver: &Driver, id: DeviceId, ordinal: u32) -> Result<DeviceInfo> {
    let mut name = [0_u8; 128];
    // SAFETY: room for as many bytes as said.
    check("cuDeviceGetName", unsafe { (driver.device_name)(name.as_mut_ptr().cast(), 127, id) })?;
    let mut memory = 0;
    // SAFETY: room for the answer.
    check("cuDeviceTotalMem", unsafe { (driver.device_memory)(&raw mut memory, id) })?;
    let attribute = |which| {
        let mut value = 0;
        // SAFETY: room for the answer; a driver that does not know the attribute says so and leaves 0.
        let code = unsafe { (driver.device_attribute)(&raw mut value, which, id) };
        if code == error::SUCCESS { value } else { 0 }
    };
    let name = CStr::from_bytes_until_nul(&name).ok().and_then(|name| name.to_str().ok()).unwrap_or("");
    let mut info = DeviceInfo::new(BackendKind::Cuda, DeviceType::Gpu, name);
    info.vendor = Name::new("NVIDIA Corporation");
    info.platform = Name::new("NVIDIA CUDA");
    let mut version = 0;
    // SAFETY: room for the answer.
    check("cuDriverGetVersion", unsafe { (driver.driver_version)(&raw mut version) })?;
    // 1000 times the major and 10 times the minor version.
    info.driver_version = Name::new(&format!("CUDA {}.{}", version / 1000, version % 1000 / 10));
    info.index = ordinal;
    info.ordinal = ordinal;
    info.global_mem_size = memory as u64;
    // The driver names no limit of a single allocation but the memory itself.
    info.max_alloc_size = memory as u64;
    info.local_mem_size = attribute(attribute::MAX_SHARED_MEMORY_PER_BLOCK) as u64;
    info.max_work_group_size = attribute(attribute::MAX_THREADS_PER_BLOCK) as u64;
    info.integrated = attribute(attribute::INTEGRATED) != 0;
    let has = |which| attribute(which) != 0;
    let host_atomics = has(attribute::HOST_NATIVE_ATOMIC_SUPPORTED);
    info.capabilities = Capabilities::NONE;
    info.capabilities.device = AccessFlags::ACCESS | AccessFlags::ATOMIC;
    info.capabilities.host = level(true, true, host_atomics);
    info.capabilities.shared =
        level(has(attribute::MANAGED_MEMORY), has(attribute::CONCURRENT_MANAGED_ACCESS), host_atomics);
    info.capabilities.cross_device_shared = info.capabilities.shared;
    info.capabilities.system = level(has(attribute::PAGEABLE_MEMORY_ACCESS), true, host_atomics);
    Ok(info)
}

fn level(present: bool, concurrent: bool, host_atomics: bool) -> AccessFlags {
    let mut flags = AccessFlags::empty();
    flags.set(AccessFlags::ACCESS | AccessFlags::ATOMIC, present);
    flags.set(AccessFlags::CONCURRENT, present && concurrent);
    flags.set(AccessFlags::CONCURRENT_ATOMIC, present && concurrent && host_atomics);
    flags
}
