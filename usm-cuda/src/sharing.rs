//! Memory of other processes, and peer access between devices.

use alloc::sync::Arc;
use core::ptr::{self, NonNull};

use crate::native::Native;
use crate::table::{Address, IpcMemory};
use crate::{Cuda, CudaContext, CudaEvent, CudaQueue, error};
use usm_core::backend::{Block, Ipc, Peer, QueueOps};
use usm_core::driver::process;
use usm_core::ipc::NATIVE_BYTES;
use usm_core::{AllocKind, Result};

/// Memory of another process. Dropping this unmaps it.
#[derive(Debug)]
pub struct CudaIpcMemory {
    address: Address,
    native: Arc<Native>,
}

impl Drop for CudaIpcMemory {
    fn drop(&mut self) {
        let Ok(_inside) = process::ask() else { return };
        // A failure has no remedy, because the owner is dropped.
        let Ok(_current) = self.native.make_current() else { return };
        // SAFETY: opened once, closed once, and not used any more.
        let _ = unsafe { (self.native.driver().ipc_close)(self.address) };
    }
}

impl Ipc<Self> for Cuda {
    type Opened = CudaIpcMemory;

    unsafe fn export(context: &CudaContext, block: &Block) -> Result<([u8; NATIVE_BYTES], usize)> {
        if block.kind != AllocKind::Device {
            return Err(context.driver().unsupported("IPC of memory that is no device memory"));
        }
        let (base, address) = (context.driver_base(block), block.address());
        let mut handle = IpcMemory([0; NATIVE_BYTES]);
        let _current = context.make_current()?;
        let driver = context.driver();
        // SAFETY: the start of a live allocation (the caller's promise), space for the handle.
        let code = unsafe { (driver.ipc_export)(&raw mut handle, base) };
        if code == error::INVALID_VALUE {
            // A part of queue-allocated memory: the driver does not share memory of a pool.
            return Err(driver.unsupported("IPC of memory of a pool"));
        }
        driver.check(driver.names().ipc_export, code)?;
        Ok((handle.0, address - base))
    }

    unsafe fn open(
        context: &CudaContext,
        _: AllocKind,
        native: &[u8; NATIVE_BYTES],
    ) -> Result<(NonNull<u8>, CudaIpcMemory)> {
        let mut address: Address = 0;
        let (driver, current) = (context.driver(), context.make_current()?);
        let flags = driver.constants.lazy_peer_access;
        // SAFETY: space for the value; the driver refuses handles that name no memory.
        let code = unsafe { (driver.ipc_open)(&raw mut address, IpcMemory(*native), flags) };
        driver.check(driver.names().ipc_open, code)?;
        drop(current);
        let memory = CudaIpcMemory { address, native: Arc::clone(context.native()) };
        match NonNull::new(ptr::with_exposed_provenance_mut(address)) {
            Some(pointer) => Ok((pointer, memory)),
            None => Err(driver.native(driver.names().ipc_open, code)),
        }
    }
}

impl Peer<Self> for Cuda {
    unsafe fn can_access(context: &CudaContext, peer: &CudaContext) -> Result<bool> {
        let (device, peer) = (context.device(), peer.device());
        if device.as_raw() == peer.as_raw() {
            return Ok(true); // The driver answers no for the same device.
        }
        let mut can = 0;
        let driver = device.driver();
        // SAFETY: devices of the driver, space for the value.
        let code = unsafe { (driver.can_access_peer)(&raw mut can, device.as_raw(), peer.as_raw()) };
        driver.check(driver.names().can_access_peer, code)?;
        Ok(can != 0)
    }

    unsafe fn enable(context: &CudaContext, peer: &CudaContext) -> Result<()> {
        change_access(context, peer, |context, peer| {
            let driver = context.driver();
            // SAFETY: live contexts; one is current.
            match unsafe { driver.enable_peer(peer.as_raw()) } {
                error::PEER_ACCESS_ALREADY_ENABLED => Ok(()),
                code if code == driver.vendor.no_peer => {
                    Err(driver.unsupported("peer access of these devices"))
                }
                code => driver.check(driver.names().enable_peer, code),
            }
        })
    }

    unsafe fn disable(context: &CudaContext, peer: &CudaContext) -> Result<()> {
        change_access(context, peer, |context, peer| {
            let driver = context.driver();
            // SAFETY: live contexts; one is current.
            match unsafe { driver.disable_peer(peer.as_raw()) } {
                error::PEER_ACCESS_NOT_ENABLED => Ok(()),
                code => driver.check(driver.names().disable_peer, code),
            }
        })
    }

    unsafe fn copy(
        queue: &CudaQueue,
        _: &CudaContext,
        (dst, src): (*mut u8, *const u8),
        len: usize,
        after: &[CudaEvent],
    ) -> Result<CudaEvent> {
        // SAFETY: the caller's promise. With unified addressing the driver knows the device of each
        // address, and streams wait for events of every device.
        unsafe { queue.copy(dst, src, len, after) }
    }
}

/// Runs `call` with `context` current. Does nothing for a context and itself, which need no access.
fn change_access(
    context: &CudaContext,
    peer: &CudaContext,
    call: impl FnOnce(&CudaContext, &CudaContext) -> Result<()>,
) -> Result<()> {
    if context.as_raw() == peer.as_raw() {
        return Ok(());
    }
    let _current = context.make_current()?;
    call(context, peer)
}
