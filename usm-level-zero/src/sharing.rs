//! Memory of other processes, and peer access between devices.

use alloc::sync::Arc;
use core::ffi::c_void;
use core::ptr::{self, NonNull};

use level_zero_sys::*;

use crate::native::Native;
use crate::{LevelZero, LevelZeroContext, error};
use usm_core::backend::{Block, Ipc, Peer};
use usm_core::driver::process;
use usm_core::ipc::NATIVE_BYTES;
use usm_core::{AllocKind, Result};

/// Memory of another process. Dropping this unmaps it.
#[derive(Debug)]
pub struct LevelZeroIpcMemory {
    pointer: *mut c_void,
    native: Arc<Native>,
}

// SAFETY: an address that any thread may close; code that dereferences it proves that this is
// allowed.
unsafe impl Send for LevelZeroIpcMemory {}
// SAFETY: as above.
unsafe impl Sync for LevelZeroIpcMemory {}

impl Drop for LevelZeroIpcMemory {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        let native = &self.native;
        // SAFETY: opened once, closed once, and not used any more. A failure has no remedy.
        let _ = unsafe { native.functions().zeMemCloseIpcHandle(native.context(), self.pointer) };
    }
}

/// Exports the driver's handle. Older drivers put a file descriptor into it, which is valid only in
/// the exporting process and in one that received the descriptor under the same number.
impl Ipc<Self> for LevelZero {
    type Opened = LevelZeroIpcMemory;

    unsafe fn export(context: &LevelZeroContext, block: &Block) -> Result<([u8; NATIVE_BYTES], usize)> {
        has_ipc(context)?;
        if block.kind != AllocKind::Device {
            return Err(error::unsupported("IPC of memory that is no device memory"));
        }
        let (base, address) = (context.driver_base(block), block.address());
        let mut handle = ze_ipc_mem_handle_t { data: [0; NATIVE_BYTES] };
        let (native, pointer) = (context.native(), ptr::with_exposed_provenance(base));
        // SAFETY: the start of a live allocation (the caller's promise), space for the handle.
        unsafe { native.functions().zeMemGetIpcHandle(native.context(), pointer, &raw mut handle) }
            .map_err(|error| error::optional("IPC", error))?;
        Ok((handle.data.map(|byte| byte as u8), address - base))
    }

    unsafe fn open(
        context: &LevelZeroContext,
        _: AllocKind,
        native: &[u8; NATIVE_BYTES],
    ) -> Result<(NonNull<u8>, LevelZeroIpcMemory)> {
        has_ipc(context)?;
        let handle = ze_ipc_mem_handle_t { data: native.map(|byte| byte as _) };
        let native = context.native();
        let (device, flags) = (native.device(), ze_ipc_memory_flags_t(0));
        let mut pointer = ptr::null_mut();
        // SAFETY: a live context and a device of it, space for the value; the driver refuses
        // handles that name no memory.
        unsafe {
            let call = native.functions();
            call.zeMemOpenIpcHandle(native.context(), device, handle, flags, &raw mut pointer)
        }
        .map_err(|error| error::optional("IPC", error))?;
        let memory = LevelZeroIpcMemory { pointer, native: Arc::clone(native) };
        match NonNull::new(pointer.cast()) {
            Some(pointer) => Ok((pointer, memory)),
            None => Err(error::native("zeMemOpenIpcHandle", ZE_RESULT_SUCCESS)),
        }
    }
}

fn has_ipc(context: &LevelZeroContext) -> Result<()> {
    let mut properties = ze_driver_ipc_properties_t::default();
    let (functions, driver) = (context.native().functions(), context.device().driver());
    // SAFETY: a driver of the loader, space for the value.
    unsafe { functions.zeDriverGetIpcProperties(driver, &raw mut properties) }.map_err(error::call)?;
    if properties.flags.contains(ZE_IPC_PROPERTY_FLAG_MEMORY) {
        Ok(())
    } else {
        Err(error::unsupported("IPC of memory by this driver"))
    }
}

impl Peer<Self> for LevelZero {
    unsafe fn can_access(context: &LevelZeroContext, peer: &LevelZeroContext) -> Result<bool> {
        let (device, peer) = (context.device(), peer.device());
        if device.handle() == peer.handle() {
            return Ok(true);
        }
        let mut can: ze_bool_t = 0;
        // SAFETY: two devices of one driver, space for the value.
        unsafe { device.functions().zeDeviceCanAccessPeer(device.handle(), peer.handle(), &raw mut can) }
            .map_err(error::call)?;
        Ok(can != 0)
    }

    /// The driver needs no call to enable access, but memory belongs to its native context: two of
    /// our contexts can access each other's memory if they share a native context.
    unsafe fn enable(context: &LevelZeroContext, peer: &LevelZeroContext) -> Result<()> {
        let (native, other) = (context.native(), peer.native());
        if native.context() != other.context() {
            return Err(error::unsupported("access to memory of another native context"));
        }
        // SAFETY: the caller's promise.
        if unsafe { Self::can_access(context, peer) }? {
            Ok(())
        } else {
            Err(error::unsupported("peer access of these devices"))
        }
    }

    unsafe fn disable(context: &LevelZeroContext, peer: &LevelZeroContext) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { Self::enable(context, peer) }
    }
}
