//! Limits that are checked before the call of a driver, so that all runtimes refuse alike.

use crate::error::{Error, ErrorKind, Result};
use crate::{DeviceInfo, MemoryType};

/// Policy for insufficient device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// Refuse, with the numbers in the error.
    #[default]
    Refuse,
    /// Take host memory instead. The allocation's kind shows it.
    Host,
}

/// The memory type to allocate: the requested one, or host memory if the device's memory is full
/// and `fallback` allows it. `in_use` has the bytes of device memory, shared memory and buffers
/// that the context already uses.
///
/// # Errors
/// [`ErrorKind::OverMaxAlloc`] if one allocation exceeds the device's limit (without a fallback,
/// because host memory of a context has the same limit), [`ErrorKind::OverMemory`] if the sum would
/// exceed the device's memory.
#[inline]
pub fn place(
    info: &DeviceInfo,
    in_use: u64,
    memory_type: MemoryType,
    bytes: usize,
    fallback: Fallback,
) -> Result<MemoryType> {
    let requested = bytes as u64;
    if requested > info.max_alloc_size {
        return Err(limit_error(ErrorKind::OverMaxAlloc { requested, limit: info.max_alloc_size }, info));
    }
    if !memory_type.on_device() {
        return Ok(memory_type);
    }
    if in_use.checked_add(requested).is_some_and(|sum| sum <= info.global_mem_size) {
        return Ok(memory_type);
    }
    match fallback {
        Fallback::Host => Ok(MemoryType::UsmHost),
        Fallback::Refuse => {
            Err(limit_error(ErrorKind::OverMemory { requested, in_use, limit: info.global_mem_size }, info))
        }
    }
}

/// Checks the sum of the distinct allocations of one launch against the memory of the device.
///
/// # Errors
/// [`ErrorKind::OverLaunchMemory`] with the sum and the limit.
#[inline]
pub fn check_launch(info: &DeviceInfo, distinct_bytes: impl Iterator<Item = usize>) -> Result<()> {
    let total = distinct_bytes.fold(0_u64, |sum, bytes| sum.saturating_add(bytes as u64));
    if total > info.global_mem_size {
        return Err(limit_error(ErrorKind::OverLaunchMemory { total, limit: info.global_mem_size }, info));
    }
    Ok(())
}

#[cold]
fn limit_error(kind: ErrorKind, info: &DeviceInfo) -> Error {
    Error::from(kind).in_backend(info.backend)
}
