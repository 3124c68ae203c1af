//! DLPack, both ways: capsules by the rules of renaming and deleting, the table for C, memory
//! without a copy.

mod capsule;
mod exchange;
mod export;
mod import;

use usm_core::{AllocKind, BackendKind};
use usm_interface::dlpack::{Device, DeviceType};

use crate::transfer::Side;

pub(crate) use exchange::{Dims, capsule as exchange_api};
pub(crate) use export::{ExportOptions, export};
pub(crate) use import::{Request, import, is_rocm};

/// Where DLPack says that an array is. USM of SYCL has one device type whatever the kind, CUDA has
/// one for each kind, ROCm one for what is page-locked and one for all else, as CuPy has it for
/// managed memory there; ids count devices. All other memory is exported to the host, device memory
/// as a copy: DLPack has no type for it.
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

/// The backend behind a device type whose work is ordered by streams.
fn streams_of(kind: DeviceType) -> Option<BackendKind> {
    match kind {
        DeviceType::Cuda | DeviceType::CudaHost | DeviceType::CudaManaged => Some(BackendKind::Cuda),
        DeviceType::Rocm | DeviceType::RocmHost => Some(BackendKind::Hip),
        _ => None,
    }
}

/// Whether work goes on while memory of the type is handed out, because no consumer reads it on the
/// host and all have a stream that can wait.
fn is_streamed(kind: DeviceType) -> bool {
    matches!(kind, DeviceType::Cuda | DeviceType::Rocm)
}
