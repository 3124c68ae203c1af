//! Devices: a backend's description of one, and the limits that the crate enforces.

use core::fmt;

use crate::Capabilities;

/// Makes [`BackendKind`] of one row for each runtime, so that no list of them lacks one.
macro_rules! backend_kinds {
    ($($(#[$page:meta])* $kind:ident = $number:literal, $name:literal;)*) => {
        /// The runtime of a handle.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum BackendKind {
            $($(#[$page])* $kind = $number,)*
        }

        impl BackendKind {
            /// Every runtime, in the order in which a device is looked for.
            pub const ALL: &[Self] = &[$(Self::$kind),*];

            /// The word used in selectors and in errors.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }
        }
    };
}

// In the order in which a device is looked for. The number is the runtime's in the handles of other
// processes (`ipc.rs`), so it stays.
backend_kinds! {
    /// SYCL through the C library that dpctl ships.
    Sycl = 5, "sycl";
    /// oneAPI Level Zero.
    LevelZero = 3, "level_zero";
    /// The CUDA driver.
    Cuda = 4, "cuda";
    /// OpenCL with the USM extension.
    OpenCl = 2, "opencl";
    /// AMD's HIP, the twin of the CUDA driver.
    Hip = 6, "hip";
    /// Plain host memory.
    Host = 0, "host";
    /// The fault-injecting backend for tests.
    Mock = 1, "mock";
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The type of a device, in the words of SYCL's filter selectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DeviceType {
    /// A CPU that a runtime drives.
    Cpu,
    /// A GPU.
    Gpu,
    /// Any other accelerator.
    Accelerator,
    /// The machine itself, without a runtime.
    Host,
}

impl DeviceType {
    /// `cpu`, `gpu`, `accelerator` or `host`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Accelerator => "accelerator",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for DeviceType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name of at most 64 bytes, kept without a heap; longer ones are cut at a character boundary.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    bytes: [u8; 64],
    len: u8,
}

impl Name {
    /// Keeps the first 64 bytes of `text`, cut at a character boundary.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut len = text.len().min(64);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        let mut bytes = [0; 64];
        bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
        Self { bytes, len: len as u8 }
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or("")
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Description of a device. Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// The runtime that the pointers belong to. Under SYCL it is still [`BackendKind::Sycl`].
    pub backend: BackendKind,
    /// The backend word of the device's selector: for SYCL the runtime below it (`opencl`,
    /// `level_zero`, `cuda`, `hip`).
    pub selector_backend: BackendKind,
    /// The device's type.
    pub device_type: DeviceType,
    /// Index among the devices of the same selector backend and type.
    pub index: u32,
    /// Index in the backend's enumeration; pointer queries report it.
    pub ordinal: u32,
    /// Name from the driver.
    pub name: Name,
    /// Vendor from the driver.
    pub vendor: Name,
    /// The device's platform, as its runtime names it; two drivers of one runtime differ here.
    /// Empty if there is none.
    pub platform: Name,
    /// Version of the driver in its own format. Empty if there is none.
    pub driver_version: Name,
    /// Largest single allocation.
    pub max_alloc_size: u64,
    /// Memory of the device.
    pub global_mem_size: u64,
    /// Local memory of one work-group.
    pub local_mem_size: u64,
    /// Maximum number of work-items in one work-group.
    pub max_work_group_size: u64,
    /// Whether host and device share the same physical memory.
    pub integrated: bool,
    /// Access capabilities.
    pub capabilities: Capabilities,
    /// Whether the runtime allocates and frees device memory of a [`Queue`](crate::Queue) in that
    /// queue's order. Otherwise the same program gets plain memory, which is freed once the events
    /// of its uses are complete.
    pub queue_memory: bool,
}

impl DeviceInfo {
    /// An unlimited host-like device; backends overwrite the values that they know.
    #[must_use]
    pub fn new(backend: BackendKind, device_type: DeviceType, name: &str) -> Self {
        Self {
            backend,
            selector_backend: backend,
            device_type,
            index: 0,
            ordinal: 0,
            name: Name::new(name),
            vendor: Name::new(""),
            platform: Name::new(""),
            driver_version: Name::new(""),
            max_alloc_size: isize::MAX as u64,
            global_mem_size: u64::MAX,
            local_mem_size: 64 * 1024,
            max_work_group_size: 1024,
            integrated: true,
            capabilities: Capabilities::FULL,
            queue_memory: false,
        }
    }
}
