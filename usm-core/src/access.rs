//! Access capabilities for each kind of memory: the capability bits of Level Zero and OpenCL USM.

use bitflags::bitflags;

bitflags! {
    /// Capabilities of one side, host or device, for one kind of memory. Bit values as in Level
    /// Zero (`ze_memory_access_cap_flag_t`) and OpenCL (`CL_UNIFIED_SHARED_MEMORY_*_INTEL`): access
    /// 1, atomic 2, concurrent 4, concurrent atomic 8.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct AccessFlags: u32 {
        /// The device can read and write this kind.
        const ACCESS = 1;
        /// Atomic operations work.
        const ATOMIC = 2;
        /// Host and device may access at the same time.
        const CONCURRENT = 4;
        /// Host and device may use atomics at the same time.
        const CONCURRENT_ATOMIC = 8;
    }
}

/// Capabilities of a device: five kinds of memory, four bits each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Capabilities {
    /// USM host memory.
    pub host: AccessFlags,
    /// USM device memory.
    pub device: AccessFlags,
    /// USM shared memory of this device.
    pub shared: AccessFlags,
    /// USM shared memory of another device.
    pub cross_device_shared: AccessFlags,
    /// Any memory of the operating system (`malloc`).
    pub system: AccessFlags,
}

impl Capabilities {
    /// Every bit of every kind: plain host memory, CPU devices.
    pub const FULL: Self = Self::uniform(AccessFlags::all());
    /// No access at all.
    pub const NONE: Self = Self::uniform(AccessFlags::empty());

    /// The same flags for all five kinds.
    #[must_use]
    pub const fn uniform(flags: AccessFlags) -> Self {
        Self { host: flags, device: flags, shared: flags, cross_device_shared: flags, system: flags }
    }

    /// The flags of an allocation kind; those of system memory for `Unknown`.
    #[must_use]
    pub const fn of(&self, kind: crate::AllocKind) -> AccessFlags {
        match kind {
            crate::AllocKind::Host => self.host,
            crate::AllocKind::Device => self.device,
            crate::AllocKind::Shared => self.shared,
            crate::AllocKind::Unknown => self.system,
        }
    }

    /// Whether host and device may touch `kind` at the same time.
    #[must_use]
    pub const fn concurrent(&self, kind: crate::AllocKind) -> bool {
        self.of(kind).contains(AccessFlags::CONCURRENT)
    }

    /// Whether every host-accessible kind that can be allocated is concurrent, so that views and
    /// launches need no gate.
    #[must_use]
    pub(crate) const fn needs_gate(&self) -> bool {
        (self.host.contains(AccessFlags::ACCESS) && !self.host.contains(AccessFlags::CONCURRENT))
            || (self.shared.contains(AccessFlags::ACCESS) && !self.shared.contains(AccessFlags::CONCURRENT))
    }
}

/// How a submission uses an allocation. Determines the work that it waits for, and the work that
/// waits for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only reads: ordered after earlier writes, may run concurrently with other reads.
    Read,
    /// Writes, or reads and writes: ordered after every earlier use.
    Write,
}
