//! The place of foreign memory: its kind, and the proof that an array does not leave it.

use usm_core::backend::Dyn;
use usm_core::{AllocKind, Context};
use usm_interface::{Allocation, Extent};

use pyo3::prelude::*;

use crate::text::error::{Class, OrRaise};

/// The kind of the memory that holds all bytes of an array at `address`, and the device's ordinal
/// if the runtime reports it.
///
/// usm's own memory is compared with its allocation. So is foreign memory if the runtime reports
/// base and size, as CUDA does. SYCL reports neither, so the first and the last byte must both be
/// USM of the same kind in this context.
pub(crate) fn of(context: &Context<Dyn>, extent: Extent, address: u64) -> PyResult<(AllocKind, Option<u32>)> {
    // The codec proved that address plus extent stays inside the address space.
    let low = address.wrapping_add_signed(extent.low);
    let last = address.wrapping_add_signed(extent.high) - 1;
    let mut first = context.query(low as *const u8).or_raise()?;
    if first.base == 0 && address != low {
        // If the pointer lies in memory with known bounds, the error can report both numbers.
        let data = context.query(address as *const u8).or_raise()?;
        first = if data.base == 0 { first } else { data };
    }
    if first.kind == AllocKind::Unknown {
        return Err(refusal_error(context, "first", low, first.kind));
    }
    if first.base != 0 {
        let allocation = Allocation { base: first.base as u64, len: first.size as u64 };
        extent.check_inside(address, allocation).or_raise()?;
    } else if last != low {
        let end = context.query(last as *const u8).or_raise()?;
        if end.kind != first.kind || end.base != 0 {
            return Err(refusal_error(context, "last", last, end.kind));
        }
    }
    Ok((first.kind, first.device))
}

#[cold]
fn refusal_error(context: &Context<Dyn>, what: &str, at: u64, kind: AllocKind) -> PyErr {
    let backend = context.info().backend;
    Class::Interface.error(format!(
        "data: the {what} byte {at:#x} is {kind} memory in the {backend} context, not USM of one kind"
    ))
}
