//! DLPack, both ways: capsules by the rules of renaming and deleting, the table for C, memory without a copy.

mod capsule;
mod exchange;
mod export;
mod import;

use usm_core::{AllocKind, BackendKind};
use usm_interface::dlpack::{Device, DeviceType};

use crate::transfer::Side;

pub(crate) use exchange::{Dims, capsule as exchange_api};
pub(crate) use export::{Wishes, export};
pub(crate) use import::{Request, import};

/// Where DLPack says that an array is. USM of SYCL has one device type whatever the kind, CUDA has one for each kind; ids
/// count devices. All other memory is exported to the host, device memory as a copy: DLPack has no type for it.
pub(crate) fn device(side: &Side) -> Device {
    let info = side.stream.context().info();
    let kind = match (info.backend, side.storage.kind()) {
        (BackendKind::Sycl, _) => DeviceType::OneApi,
        (BackendKind::Cuda, AllocKind::Host) => DeviceType::CudaHost,
        (BackendKind::Cuda, AllocKind::Shared) => DeviceType::CudaManaged,
        (BackendKind::Cuda, _) => DeviceType::Cuda,
        _ => return Device::CPU,
    };
    Device { kind, id: info.ordinal as i32 }
}

/// Whether a device type is one of CUDA's, whose work is ordered by streams.
fn is_cuda(kind: DeviceType) -> bool {
    matches!(kind, DeviceType::Cuda | DeviceType::CudaHost | DeviceType::CudaManaged)
}
