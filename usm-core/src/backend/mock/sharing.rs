//! Memory of other processes, simulated by other contexts of the same driver; and access between
//! devices.

use alloc::sync::Arc;
use core::ptr::NonNull;

use super::Mock;
use super::backend::MockContext;
use super::engine::Engine;
use super::script::Operation;
use crate::AllocKind;
use crate::backend::ability::NATIVE_BYTES;
use crate::backend::{Block, Ipc, Peer};
use crate::error::{ErrorKind, Result};

/// A block opened by an IPC handle; dropping this closes it.
#[derive(Debug)]
pub struct MockIpcMemory {
    engine: Arc<Engine>,
    base: usize,
}

impl Drop for MockIpcMemory {
    fn drop(&mut self) {
        self.engine.close_block(self.base);
    }
}

impl Ipc<Self> for Mock {
    type Opened = MockIpcMemory;

    unsafe fn export(context: &Arc<MockContext>, block: &Block) -> Result<([u8; NATIVE_BYTES], usize)> {
        context.engine.call(Operation::Ipc, block.size, 0)?;
        if !context.engine.is_block(block, context.shared.id()) {
            return Err(ErrorKind::Native { operation: "exporting a block" }.into());
        }
        let mut native = [0; NATIVE_BYTES];
        native[..8].copy_from_slice(&(block.pointer.as_ptr().expose_provenance() as u64).to_le_bytes());
        Ok((native, 0))
    }

    unsafe fn open(
        context: &Arc<MockContext>,
        _: AllocKind,
        native: &[u8; NATIVE_BYTES],
    ) -> Result<(NonNull<u8>, MockIpcMemory)> {
        context.engine.call(Operation::Ipc, 0, 0)?;
        let mut word = [0; 8];
        word.copy_from_slice(&native[..8]);
        let base = u64::from_le_bytes(word) as usize;
        let pointer = NonNull::new(core::ptr::with_exposed_provenance_mut(base));
        match pointer.filter(|_| context.engine.open_block(base)) {
            Some(pointer) => Ok((pointer, MockIpcMemory { engine: Arc::clone(&context.engine), base })),
            None => Err(ErrorKind::Native { operation: "opening an IPC handle" }.into()),
        }
    }
}

impl Peer<Self> for Mock {
    unsafe fn can_access(context: &Arc<MockContext>, peer: &Arc<MockContext>) -> Result<bool> {
        let (device, peer) = (&context.device, &peer.device);
        Ok(device.peer_access || device.info.ordinal == peer.info.ordinal)
    }

    unsafe fn enable(context: &Arc<MockContext>, peer: &Arc<MockContext>) -> Result<()> {
        change(context, peer)
    }

    unsafe fn disable(context: &Arc<MockContext>, peer: &Arc<MockContext>) -> Result<()> {
        change(context, peer)
    }
}

fn change(context: &Arc<MockContext>, peer: &Arc<MockContext>) -> Result<()> {
    context.engine.call(Operation::Peer, 0, 0)?;
    // SAFETY: numbers of one simulated driver.
    if unsafe { Mock::can_access(context, peer) }? {
        return Ok(());
    }
    Err(ErrorKind::Unsupported { operation: "peer access of these devices" }.into())
}
