//! Device memory in the order of a stream, from the [pool](super::pool) of the device.
//!
//! - The calls take their context from the stream, so this file makes none current.
//! - A free waits for the events of other streams on its stream, not on the host.
//! - `cuMemFree` also frees such memory, without the wait that it makes for its own. It is the
//!   fallback for a refused free.
//! - The driver does not share it with other processes, and `cuCtxEnablePeerAccess` gives no peer
//!   access to it.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use crate::event::SubmitOutcome;
use crate::memory::CudaContext;
use crate::pool::Pool;
use crate::table::Raw;
use crate::{Cuda, CudaEvent, CudaQueue, error};
use usm_core::backend::{Block, QueueMemory};
use usm_core::{ErrorKind, MemoryType, Result};

impl QueueMemory<Self> for Cuda {
    fn allocate(queue: &CudaQueue, layout: Layout) -> Result<(NonNull<u8>, CudaEvent)> {
        let (context, driver) = (queue.context(), queue.context().driver());
        let pool = context.pool()?;
        let (mut address, mut refusal) = (0, None);
        let submission = queue.submit_by_stream(|stream| {
            let placement = context.placed().allocate(
                layout,
                |bytes| allocate_bytes(context, pool, stream, bytes),
                // SAFETY: just allocated on this stream and not used yet. A failure has no remedy.
                |base| _ = context.native().call_by_stream(|| unsafe { pool.free(base, stream) }),
            );
            match placement {
                Ok(pointer) => {
                    address = pointer;
                    SubmitOutcome::All
                }
                Err(error) => {
                    refusal = Some(error);
                    // The error replaces this event.
                    SubmitOutcome::Nothing(driver.names().allocate_in_order, error::OUT_OF_MEMORY)
                }
            }
        });
        let event = submission.map_err(|error| refusal.unwrap_or(error))?;
        let pointer = NonNull::new(ptr::with_exposed_provenance_mut(address));
        // `allocate_bytes` never returns 0.
        pointer.map(|pointer| (pointer, event)).ok_or_else(|| driver.error(ErrorKind::SizeOverflow))
    }

    unsafe fn free(queue: &CudaQueue, block: &Block, after: &[CudaEvent]) -> Result<()> {
        let (context, driver) = (queue.context(), queue.context().driver());
        let pool = context.pool()?;
        let base = context.placed().take(block);
        let submission = queue.call_on_stream(after, |stream| {
            // SAFETY: the caller's promise; the stream waits for the events, and an in-order queue
            // has only this stream.
            let code = context.native().call_by_stream(|| unsafe { pool.free(base, stream.raw()) });
            driver.check(driver.names().free_in_order, code)
        });
        if submission.is_err() {
            context.placed().put_back(block, base);
        }
        submission
    }
}

fn allocate_bytes(context: &CudaContext, pool: &Pool, stream: Raw, size: usize) -> Result<usize> {
    let mut address = 0;
    let code = context.allocate_with_retries(|| {
        context.native().call_by_stream(|| {
            // SAFETY: a live stream.
            let (code, block_address) = unsafe { pool.allocate(size, stream) };
            address = block_address;
            code
        })
    });
    let driver = context.driver();
    match code {
        error::SUCCESS if address != 0 => Ok(address),
        error::OUT_OF_MEMORY => {
            let (memory_type, requested) = (MemoryType::UsmDevice, size as u64);
            let kind = ErrorKind::OutOfMemory { memory_type, requested };
            Err(driver.error(kind).with_native(i64::from(error::OUT_OF_MEMORY)))
        }
        error::NOT_SUPPORTED => Err(driver.unsupported("memory in the order of a queue")),
        code => Err(driver.native(driver.names().allocate_in_order, code)),
    }
}
