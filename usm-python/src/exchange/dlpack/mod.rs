//! DLPack, import and export: capsules with the rules of renaming and deletion, the C table, memory
//! without a copy.

mod capsule;
mod exchange;
mod export;
mod import;

use pyo3::PyErr;
use usm_core::{AllocKind, BackendKind};
use usm_interface::dlpack::{Device, DeviceType};

use crate::storage::side::Side;
use crate::text::error::Class;

pub(crate) use exchange::capsule as exchange_api;
pub(crate) use export::{ExportOptions, export};
pub(crate) use import::{Request, import, place};

/// An array's DLPack device. USM of SYCL has one device type for all kinds. CUDA has one for each
/// kind. ROCm has one for page-locked memory and one for the rest, managed memory included, as in
/// CuPy. Ids count devices. All other memory is exported to the host, device memory only as a copy
/// that the consumer [requests](needs_copy): DLPack has no type for it.
pub(crate) fn device(side: &Side) -> Device {
    let info = side.stream.context().info();
    let kind = match (info.backend, side.storage.kind()) {
        (BackendKind::Sycl, _) => DeviceType::OneApi,
        (BackendKind::Cuda, AllocKind::Host) => DeviceType::CudaHost,
        (BackendKind::Cuda, AllocKind::Shared) => DeviceType::CudaManaged,
        (BackendKind::Cuda, _) => DeviceType::Cuda,
        (BackendKind::Hip, AllocKind::Host) => DeviceType::RocmHost,
        (BackendKind::Hip, _) => DeviceType::Rocm,
        _ => return Device::CPU,
    };
    Device { kind, id: info.ordinal as i32 }
}

/// Whether an array reaches a DLPack device only by a copy: the host may not access the memory.
fn needs_copy(side: &Side, target: Device) -> bool {
    target.kind == DeviceType::Cpu && !side.storage.is_host_accessible()
}

/// The refusal of an unrequested copy, with the ways to one.
#[cold]
pub(crate) fn copy_error(side: &Side, ways: &str) -> PyErr {
    let (backend, kind) = (side.stream.context().info().backend, side.storage.kind());
    Class::Access.error(format!("{kind} memory of {backend} reaches the host only by a copy: {ways}"))
}

/// The ways of DLPack to a copy.
const WAYS: &str = "usm.to_numpy(array), or __dlpack__ with copy=True or dl_device=(1, 0)";

/// The backend of a device type whose streams order work.
fn streams_of(kind: DeviceType) -> Option<BackendKind> {
    match kind {
        DeviceType::Cuda | DeviceType::CudaHost | DeviceType::CudaManaged => Some(BackendKind::Cuda),
        DeviceType::Rocm | DeviceType::RocmHost => Some(BackendKind::Hip),
        _ => None,
    }
}

/// Whether a producer of such memory is told a stream, before which it orders its work. By the
/// protocol memory of the host has none, and torch refuses one for its page-locked tensors.
fn takes_stream(kind: DeviceType) -> bool {
    matches!(kind, DeviceType::Cuda | DeviceType::CudaManaged | DeviceType::Rocm)
}

/// Whether work continues while memory of this type is exported: no consumer reads it on the host,
/// and all have a stream that can wait.
fn is_streamed(kind: DeviceType) -> bool {
    matches!(kind, DeviceType::Cuda | DeviceType::Rocm)
}
