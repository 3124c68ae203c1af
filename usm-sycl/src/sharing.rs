//! Peer access between devices. The library has no IPC handles.

use core::ffi::{CStr, c_int};

use crate::loader::Raw;
use crate::{Dpctl, DpctlContext, DpctlDevice, device, error};
use usm_core::Result;
use usm_core::backend::Peer;

/// `access_supported` of `DPCTLPeerAccessType`.
const ACCESS: c_int = 0;

type CanAccess = unsafe extern "C" fn(Raw, Raw, c_int) -> bool;
type Change = unsafe extern "C" fn(Raw, Raw);

impl Peer<Self> for Dpctl {
    unsafe fn can_access(context: &DpctlContext, peer: &DpctlContext) -> Result<bool> {
        let (device, peer) = (context.device(), peer.device());
        if device::is_same_device(device.handle(), peer.handle()) {
            return Ok(true); // The library answers no for the same device.
        }
        // SAFETY: the signature of the C headers.
        let can_access: CanAccess = unsafe { optional(device, c"DPCTLDevice_CanAccessPeer") }?;
        // SAFETY: live devices of the library, which catches what the runtime throws.
        Ok(unsafe { can_access(device.handle().raw(), peer.handle().raw(), ACCESS) })
    }

    unsafe fn enable(context: &DpctlContext, peer: &DpctlContext) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { change(context, peer, c"DPCTLDevice_EnablePeerAccess") }
    }

    unsafe fn disable(context: &DpctlContext, peer: &DpctlContext) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { change(context, peer, c"DPCTLDevice_DisablePeerAccess") }
    }
}

/// The library does not report success, so this first asks whether access is possible.
///
/// # Safety
/// Both contexts are of one library.
unsafe fn change(context: &DpctlContext, other: &DpctlContext, name: &CStr) -> Result<()> {
    let (device, peer) = (context.device(), other.device());
    if device::is_same_device(device.handle(), peer.handle()) {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    if !unsafe { Dpctl::can_access(context, other) }? {
        return Err(error::of(usm_core::ErrorKind::Unsupported {
            operation: "peer access of these devices",
        }));
    }
    // SAFETY: the signature of the C headers.
    let call: Change = unsafe { optional(device, name) }?;
    // SAFETY: live devices of the library, which catches what the runtime throws.
    unsafe { call(device.handle().raw(), peer.handle().raw()) };
    Ok(())
}

/// A function that older libraries do not have.
///
/// # Safety
/// `F` is the type of the function of that name.
unsafe fn optional<F: Copy>(device: &DpctlDevice, name: &CStr) -> Result<F> {
    // SAFETY: the caller's promise.
    let function = unsafe { device.handle().library().typed_function(name) };
    function.ok_or_else(|| {
        error::of(usm_core::ErrorKind::Unsupported { operation: "peer access in this library" })
    })
}
