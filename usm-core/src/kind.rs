//! Allocation kinds: the run-time value [`AllocKind`], the compile-time markers, and the rule of
//! host access.

use core::fmt;

/// The kind of a USM pointer, as every runtime of the field distinguishes it.
///
/// The four values are exhaustive by standard (SYCL 2020 `usm::alloc`, Level Zero
/// `ze_memory_type_t`, OpenCL `CL_MEM_TYPE_*_INTEL`), so this enum is not `#[non_exhaustive]`. Enum
/// values that a driver adds later (Level Zero's `HOST_IMPORTED`) map to [`AllocKind::Unknown`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocKind {
    /// In host memory, accessible by host and device; does not migrate.
    Host,
    /// In device memory, accessible by the device that owns it; does not migrate.
    Device,
    /// Accessible by host and device; migrates on demand.
    Shared,
    /// Not a USM pointer of the queried context. A value, not an error.
    Unknown,
}

impl AllocKind {
    /// The three allocatable kinds.
    pub const ALL: [Self; 3] = [Self::Host, Self::Device, Self::Shared];

    /// Whether the host may dereference a pointer of this kind.
    #[must_use]
    pub const fn is_host_accessible(self) -> bool {
        matches!(self, Self::Host | Self::Shared)
    }

    /// The lower-case word that SYCL and dpctl use: `host`, `device`, `shared`, `unknown`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Device => "device",
            Self::Shared => "shared",
            Self::Unknown => "unknown",
        }
    }

    /// The kind with this [`name`](Self::name); `None` for any other word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Host, Self::Device, Self::Shared, Self::Unknown].into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for AllocKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The four memory types of one allocation call: the opaque buffer and the three USM kinds.
///
/// Prints the names of the OpenVINO GPU plugin, in whose format [`history`](crate::history) writes
/// log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemoryType {
    /// An opaque memory object without an address (`cl_mem`).
    Buffer,
    /// USM host memory.
    UsmHost,
    /// USM shared memory.
    UsmShared,
    /// USM device memory.
    UsmDevice,
}

impl MemoryType {
    /// All four, in the order in which statistics list them.
    pub const ALL: [Self; 4] = [Self::Buffer, Self::UsmHost, Self::UsmShared, Self::UsmDevice];

    /// `cl_mem`, `usm_host`, `usm_shared` or `usm_device`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Buffer => "cl_mem",
            Self::UsmHost => "usm_host",
            Self::UsmShared => "usm_shared",
            Self::UsmDevice => "usm_device",
        }
    }

    /// The USM kind, `None` for a buffer.
    #[must_use]
    pub const fn kind(self) -> Option<AllocKind> {
        match self {
            Self::Buffer => None,
            Self::UsmHost => Some(AllocKind::Host),
            Self::UsmShared => Some(AllocKind::Shared),
            Self::UsmDevice => Some(AllocKind::Device),
        }
    }

    /// Whether memory of this type is counted against the device's memory rather than the host's.
    #[must_use]
    pub const fn on_device(self) -> bool {
        !matches!(self, Self::UsmHost)
    }

    /// The type of an existing block. No block has an unknown kind; it would count as a buffer.
    #[inline]
    #[must_use]
    pub const fn of(kind: AllocKind) -> Self {
        // By index, because a match of four values would compile to a jump.
        const OF_KIND: [MemoryType; 4] =
            [MemoryType::UsmHost, MemoryType::UsmDevice, MemoryType::UsmShared, MemoryType::Buffer];
        OF_KIND[kind as usize]
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Buffer => 0,
            Self::UsmHost => 1,
            Self::UsmShared => 2,
            Self::UsmDevice => 3,
        }
    }
}

impl fmt::Display for MemoryType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A marker type that carries the kind in the type of an array; sealed.
pub trait Kind: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// The kind that the marker stands for, `None` for [`AnyKind`].
    const KIND: Option<AllocKind>;
}

/// Markers of a kind that is known at compile time: all but [`AnyKind`].
pub trait KnownKind: Kind {
    /// The kind that the marker stands for.
    const ALLOC: AllocKind;
}

/// Kinds whose memory the host may dereference. [`Device`] and [`AnyKind`] do not implement it, so
/// a host view of device memory does not compile.
#[diagnostic::on_unimplemented(
    message = "the host cannot read or write memory of kind `{Self}` in place",
    label = "no host view of this kind",
    note = "copy device memory by `to_vec`, `Queue::read_to_slice` or `Queue::copy`; give `AnyKind` its kind by `UsmVec::try_kind`, or allocate \
            `Shared` or `Host`"
)]
pub trait HostAccessible: Kind {}

/// Marker of [`AllocKind::Host`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host;
/// Marker of [`AllocKind::Device`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device;
/// Marker of [`AllocKind::Shared`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shared;
/// The run-time marker: only a value knows the kind, and host access goes through a checked view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnyKind;

impl sealed::Sealed for Host {}
impl sealed::Sealed for Device {}
impl sealed::Sealed for Shared {}
impl sealed::Sealed for AnyKind {}

impl Kind for AnyKind {
    const KIND: Option<AllocKind> = None;
}

macro_rules! known_kinds {
    ($($kind:ident),*) => {$(
        impl Kind for $kind {
            const KIND: Option<AllocKind> = Some(AllocKind::$kind);
        }

        impl KnownKind for $kind {
            const ALLOC: AllocKind = AllocKind::$kind;
        }
    )*};
}

known_kinds!(Host, Device, Shared);

impl HostAccessible for Host {}
impl HostAccessible for Shared {}
