//! Devices and their descriptions.

use alloc::sync::Arc;
use core::ffi::c_int;
use core::ptr::NonNull;

use crate::error::not_null;
use crate::loader::{Handle, Library, Raw};
use usm_core::backend::DeviceOps;
use usm_core::driver::process;
use usm_core::{AccessFlags, AllocKind, BackendKind, Capabilities, DeviceInfo, DeviceType, Name, Result};

/// `DPCTL_ALL_BACKENDS | DPCTL_ALL` of the C headers.
const EVERY_DEVICE: c_int = (0x1f << 16) | 0x3f;

/// Aspects, as the C headers number them.
mod aspect {
    use core::ffi::c_int;

    pub(super) const USM_DEVICE: c_int = 12;
    pub(super) const USM_HOST: c_int = 13;
    pub(super) const USM_SHARED: c_int = 14;
    pub(super) const USM_SYSTEM: c_int = 15;
    pub(super) const USM_ATOMIC_HOST: c_int = 16;
    pub(super) const USM_ATOMIC_SHARED: c_int = 17;
}

/// A SYCL device.
#[derive(Clone, Debug)]
pub struct DpctlDevice {
    handle: Arc<Handle>,
    info: DeviceInfo,
}

impl DpctlDevice {
    /// Describes a device and takes ownership of its reference.
    ///
    /// # Safety
    /// `raw` is a device reference of `library` that the caller owns.
    pub(super) unsafe fn take(library: &'static Library, raw: NonNull<core::ffi::c_void>) -> Result<Self> {
        // SAFETY: the caller's promise.
        let handle = Arc::new(unsafe { Handle::new(library, raw, library.device_delete) });
        let ordinal = ordinal(&handle)?;
        let info = describe(&handle, ordinal);
        Ok(Self { handle, info })
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether the device has memory of `kind`; without it a request makes the library throw.
    pub(super) fn allocates(&self, kind: AllocKind) -> bool {
        self.info.capabilities.of(kind).contains(AccessFlags::ACCESS) && kind != AllocKind::Unknown
    }
}

impl DeviceOps for DpctlDevice {
    fn info(&self) -> DeviceInfo {
        self.info
    }
}

/// Whether two device references name the same device.
pub(super) fn is_same_device(one: &Handle, other: &Handle) -> bool {
    core::ptr::eq(one.library(), other.library())
        // SAFETY: both are live device references of this library.
        && unsafe { (one.library().device_equal)(one.raw(), other.raw()) }
}

/// Calls `visit` with a handle of each root device of every platform, in the runtime's order, until
/// `visit` returns true.
fn scan(library: &'static Library, mut visit: impl FnMut(Handle) -> Result<bool>) -> Result<()> {
    let _inside = process::work()?;
    // SAFETY: the mask consists of the headers' flags.
    let vector = not_null("DPCTLDeviceMgr_GetDevices", unsafe { (library.devices)(EVERY_DEVICE) })?;
    // SAFETY: we own the vector.
    let vector = unsafe { Handle::new(library, vector, library.device_vector_delete) };
    // SAFETY: a live vector.
    let count = unsafe { (library.device_vector_size)(vector.raw()) };
    for index in 0..count {
        // SAFETY: a live vector, a valid index; the element is a copy that we own.
        let raw =
            not_null("DPCTLDeviceVector_GetAt", unsafe { (library.device_vector_at)(vector.raw(), index) })?;
        // SAFETY: as above.
        if visit(unsafe { Handle::new(library, raw, library.device_delete) })? {
            break;
        }
    }
    Ok(())
}

pub(super) fn for_each(library: &'static Library, visit: &mut dyn FnMut(DpctlDevice)) -> Result<()> {
    let mut ordinal = 0;
    scan(library, |handle| {
        let info = describe(&handle, ordinal);
        ordinal += 1;
        visit(DpctlDevice { handle: Arc::new(handle), info });
        Ok(false)
    })
}

/// Position of a device in the runtime's order. Sub-devices come after all root devices.
fn ordinal(device: &Handle) -> Result<u32> {
    let mut position = 0;
    scan(device.library(), |candidate| {
        let is_same = is_same_device(&candidate, device);
        position += u32::from(!is_same);
        Ok(is_same)
    })?;
    Ok(position)
}

/// Calls a function of the library that takes only a live device.
fn query_device<T>(device: &Handle, get: unsafe extern "C" fn(Raw) -> T) -> T {
    // SAFETY: a live device reference.
    unsafe { get(device.raw()) }
}

fn describe(device: &Handle, ordinal: u32) -> DeviceInfo {
    let library = device.library();
    let text = |get| {
        let text = query_device(device, get);
        // SAFETY: we own the string and delete it.
        unsafe { library.take_string(text) }
    };
    let bytes = |get| query_device(device, get);
    let (backend, device_type) =
        (query_device(device, library.device_backend), query_device(device, library.device_type));
    let relative = query_device(device, library.relative_id);
    let group = query_device(device, library.device_max_work_group_size);
    let device_type = match device_type {
        4 => DeviceType::Cpu,
        16 => DeviceType::Gpu,
        _ => DeviceType::Accelerator,
    };
    let mut info = DeviceInfo::new(BackendKind::Sycl, device_type, &text(library.device_name));
    info.selector_backend = match backend {
        0x1_0000 => BackendKind::Cuda,
        0x2_0000 => BackendKind::LevelZero,
        0x4_0000 => BackendKind::OpenCl,
        0x8_0000 => BackendKind::Hip,
        _ => BackendKind::Sycl,
    };
    // A sub-device has no index of its own in a selector.
    info.index = u32::try_from(relative).unwrap_or(0);
    info.ordinal = ordinal;
    info.vendor = Name::new(&text(library.device_vendor));
    info.driver_version = Name::new(&text(library.device_driver_version));
    if let Some(platform) = NonNull::new(query_device(device, library.device_platform)) {
        // SAFETY: we own the reference.
        let platform = unsafe { Handle::new(library, platform, library.platform_delete) };
        // SAFETY: a live platform reference.
        let name = unsafe { (library.platform_name)(platform.raw()) };
        // SAFETY: we own the string and delete it.
        info.platform = Name::new(&unsafe { library.take_string(name) });
    }
    info.max_alloc_size = bytes(library.device_max_mem_alloc_size);
    info.global_mem_size = bytes(library.device_global_mem_size);
    info.local_mem_size = bytes(library.device_local_mem_size);
    info.max_work_group_size = group as u64;
    info.integrated = device_type == DeviceType::Cpu;
    info.capabilities = capabilities(|aspect| {
        // SAFETY: a live device reference, an aspect of the headers.
        unsafe { (library.device_has_aspect)(device.raw(), aspect) }
    });
    info
}

/// SYCL reports less than its drivers. Concurrent access is claimed only if an aspect promises it
/// (SYCL 2020, 4.6.4.5: the atomic aspects, and system allocations, which are as coherent as the
/// machine). Cross-device access, which has no aspect, is never claimed.
fn capabilities(has: impl Fn(c_int) -> bool) -> Capabilities {
    let system = has(aspect::USM_SYSTEM);
    let level = |present: bool, concurrent: bool| match (present, concurrent || system) {
        (false, _) => AccessFlags::empty(),
        (true, false) => AccessFlags::ACCESS,
        (true, true) => AccessFlags::all(),
    };
    let mut capabilities = Capabilities::NONE;
    capabilities.host = level(has(aspect::USM_HOST), has(aspect::USM_ATOMIC_HOST));
    capabilities.shared = level(has(aspect::USM_SHARED), has(aspect::USM_ATOMIC_SHARED));
    capabilities.system = level(system, true);
    if has(aspect::USM_DEVICE) {
        capabilities.device = AccessFlags::ACCESS | AccessFlags::ATOMIC;
    }
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_is_claimed_only_where_an_aspect_promises_it() {
        let gpu = [aspect::USM_DEVICE, aspect::USM_HOST, aspect::USM_SHARED];
        let of_gpu = capabilities(|aspect| gpu.contains(&aspect));
        assert_eq!(of_gpu.host, AccessFlags::ACCESS);
        assert_eq!(of_gpu.shared, AccessFlags::ACCESS);
        assert_eq!(of_gpu.system, AccessFlags::empty());
        assert!(!of_gpu.concurrent(AllocKind::Shared));
        assert!(capabilities(|_| true).concurrent(AllocKind::Shared));
        assert_eq!(capabilities(|_| false), Capabilities::NONE);
    }
}
