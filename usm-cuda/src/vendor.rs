//! Differences between vendors besides names and signatures: libraries, constants, words.
//!
//! From the headers `cuda.h` and `hip_runtime_api.h` (5.0 to 6.2, and 7 in AMD's bindings).
//! Constants that are the same in both are beside their use: error codes ([`error`](super::error)),
//! attributes of pointers, flags of allocations, streams and events, advice.

use alloc::format;
use alloc::string::String;

use crate::error::{self, SUCCESS};
use crate::table::{Code, Kind, Names};
use usm_core::{BackendKind, Error, ErrorKind, Result};

/// One vendor of a driver with the functions of the table.
pub(super) struct Vendor {
    pub(super) own: Kind,
    pub(super) backend: BackendKind,
    pub(super) names: Names,
    /// The library's name in errors.
    pub(super) library: &'static str,
    /// The environment variable for another file.
    pub(super) variable: &'static str,
    /// File names, tried in this order.
    pub(super) files: &'static [&'static str],
    /// Further codes of an initialisation without a device, besides [`error::NO_DEVICE`].
    pub(super) no_usable_device: Code,
    /// The code for refused access to another device.
    pub(super) no_peer: Code,
    /// Device attributes.
    pub(super) company: &'static str,
    pub(super) platform: &'static str,
    /// The version of the driver as text.
    pub(super) version: fn(i32) -> String,
    pub(super) attributes: Attributes,
    pub(super) constants: fn(i32) -> Constants,
}

/// `CUdevice_attribute`, `hipDeviceAttribute_t`.
pub(super) struct Attributes {
    pub(super) max_threads_per_block: i32,
    pub(super) max_shared_memory_per_block: i32,
    pub(super) is_integrated: i32,
    pub(super) managed_memory: i32,
    pub(super) host_native_atomic_supported: i32,
    pub(super) pageable_memory_access: i32,
    pub(super) concurrent_managed_access: i32,
    pub(super) memory_pools_supported: i32,
}

/// Constants that depend on the version of the driver.
#[derive(Clone, Copy, Debug)]
pub(super) struct Constants {
    /// `CU_MEMORYTYPE_HOST`, `hipMemoryTypeHost`.
    pub(super) host_memory: u32,
    /// `CU_MEMORYTYPE_DEVICE`, `hipMemoryTypeDevice`.
    pub(super) device_memory: u32,
    /// `CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS`, `hipIpcMemLazyEnablePeerAccess`.
    pub(super) lazy_peer_access: u32,
}

pub(super) static NVIDIA: Vendor = Vendor {
    own: Kind::Cuda,
    backend: BackendKind::Cuda,
    names: Names::CUDA,
    #[cfg(target_os = "windows")]
    library: "nvcuda.dll",
    #[cfg(not(target_os = "windows"))]
    library: "libcuda.so.1",
    variable: "USM_CUDA_LIBRARY",
    #[cfg(target_os = "windows")]
    files: &["nvcuda.dll"],
    #[cfg(not(target_os = "windows"))]
    files: &["libcuda.so.1", "libcuda.so"],
    no_usable_device: error::NO_DEVICE,
    no_peer: error::PEER_ACCESS_UNSUPPORTED,
    company: "NVIDIA Corporation",
    platform: "NVIDIA CUDA",
    // 1000 times the major and 10 times the minor version.
    version: |version| format!("CUDA {}.{}", version / 1000, version % 1000 / 10),
    attributes: Attributes {
        max_threads_per_block: 1,
        max_shared_memory_per_block: 8,
        is_integrated: 18,
        managed_memory: 83,
        host_native_atomic_supported: 86,
        pageable_memory_access: 88,
        concurrent_managed_access: 89,
        memory_pools_supported: 115,
    },
    constants: |_| Constants { host_memory: 1, device_memory: 2, lazy_peer_access: 1 },
};

pub(super) static AMD: Vendor = Vendor {
    own: Kind::Hip,
    backend: BackendKind::Hip,
    names: Names::HIP,
    #[cfg(target_os = "windows")]
    library: "amdhip64.dll",
    #[cfg(not(target_os = "windows"))]
    library: "libamdhip64.so",
    variable: "USM_HIP_LIBRARY",
    #[cfg(target_os = "windows")]
    files: &["amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll"],
    #[cfg(not(target_os = "windows"))]
    files: &[
        "libamdhip64.so",
        "libamdhip64.so.7",
        "libamdhip64.so.6",
        "libamdhip64.so.5",
        // Folders that the loader does not search.
        "/opt/rocm/lib/libamdhip64.so",
    ],
    // Releases differ: version 5.2 in Debian 12 returns "invalid device".
    no_usable_device: error::INVALID_DEVICE,
    no_peer: error::INVALID_DEVICE,
    company: "Advanced Micro Devices, Inc.",
    platform: "AMD HIP",
    version: |version| {
        let (major, minor, patch) = hip_version(version);
        format!("HIP {major}.{minor}.{patch}")
    },
    attributes: Attributes {
        max_threads_per_block: 56,
        max_shared_memory_per_block: 74,
        is_integrated: 16,
        managed_memory: 24,
        host_native_atomic_supported: 15,
        pageable_memory_access: 65,
        concurrent_managed_access: 9,
        memory_pools_supported: 88,
    },
    // Since HIP 6 memory types and this flag have CUDA's values.
    constants: |version| match hip_version(version) {
        (..6, _, _) => Constants { host_memory: 0, device_memory: 1, lazy_peer_access: 0 },
        _ => Constants { host_memory: 1, device_memory: 2, lazy_peer_access: 1 },
    },
};

/// The number is 10,000,000 times the major plus 100,000 times the minor version, plus the patch.
fn hip_version(version: i32) -> (i32, i32, i32) {
    (version / 10_000_000, version / 100_000 % 100, version % 100_000)
}

impl Vendor {
    pub(super) fn error(&self, kind: ErrorKind) -> Error {
        Error::from(kind).in_backend(self.backend)
    }

    /// The failure of the call `operation`.
    #[cold]
    pub(super) fn native(&self, operation: &'static str, code: Code) -> Error {
        // Symbols have version suffixes, functions do not.
        let operation = operation.strip_suffix("_v2").unwrap_or(operation);
        self.error(ErrorKind::Native { operation }).with_native(i64::from(code))
    }

    #[inline]
    pub(super) fn check(&self, operation: &'static str, code: Code) -> Result<()> {
        if code == SUCCESS { Ok(()) } else { Err(self.native(operation, code)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_written_as_the_vendors_write_them() {
        assert_eq!((NVIDIA.version)(13_000), "CUDA 13.0");
        assert_eq!((NVIDIA.version)(12_040), "CUDA 12.4");
        assert_eq!((AMD.version)(50_221_153), "HIP 5.2.21153");
        assert_eq!((AMD.version)(60_241_134), "HIP 6.2.41134");
    }

    #[test]
    fn memory_types_changed_with_hip_6() {
        let types = |version| {
            let constants = (AMD.constants)(version);
            (constants.host_memory, constants.device_memory)
        };
        assert_eq!((types(50_731_921), types(60_000_000), types(70_000_000)), ((0, 1), (1, 2), (1, 2)));
    }
}
