//! Device memory in the order of a stream: `cuMemAllocAsync` and `cuMemFreeAsync` on the pool that is the device's current one.
//!
//! - The pool is that of every library in the process that allocates so (CuPy, torch): who sets it up, its release threshold for one, sets it
//!   up for us. By default the driver gives unused memory back to the system whenever somebody waits for a stream or an event.
//! - A free on a stream waits for the events of other streams there, not here.
//! - `cuMemFree` takes such memory too and, other than of its own, waits for nothing: what a refused free is left with.
//! - The driver shares none of it with other processes, and no peer reaches it by `cuCtxEnablePeerAccess`.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use super::error;
use super::event::Submitted;
use super::loader::{Driver, Raw};
use super::{Cuda, CudaEvent, CudaQueue};
use crate::MemoryType;
use crate::backend::{Block, QueueMemory};
use crate::error::{Error, ErrorKind, Result};

impl QueueMemory<Self> for Cuda {
    fn allocate(queue: &CudaQueue, layout: Layout) -> Result<(NonNull<u8>, CudaEvent)> {
        let (context, driver) = (queue.context(), queue.context().driver());
        let (mut address, mut refused) = (0, None);
        let submitted = queue.submit_calls(&[], |stream| {
            let given = context.placed().allocate(
                layout,
                |bytes| allocate_bytes(driver, stream, bytes),
                |base| {
                    driver.gone.add(base..base + layout.size());
                    // SAFETY: just allocated on this stream, used by nobody. A failure could not be acted on.
                    let _ = unsafe { free_at(driver, stream, base) };
                },
            );
            match given {
                Ok(given) => {
                    address = given;
                    Submitted::All
                }
                Err(error) => {
                    refused = Some(error);
                    // Replaced by the error itself.
                    Submitted::Nothing(driver.names().allocate_in_order, error::OUT_OF_MEMORY)
                }
            }
        });
        let event = submitted.map_err(|error| refused.unwrap_or(error))?;
        driver.gone.remove(address..address + layout.size());
        let pointer = NonNull::new(ptr::with_exposed_provenance_mut(address));
        // `allocate_bytes` never gives 0.
        pointer.map(|pointer| (pointer, event)).ok_or_else(|| driver.error(ErrorKind::SizeOverflow))
    }

    unsafe fn free(queue: &CudaQueue, block: &Block, after: &[CudaEvent]) -> Result<()> {
        let (context, driver) = (queue.context(), queue.context().driver());
        let base = context.placed().take(block);
        // A block that was placed inside a larger one has its alignment more around it.
        let around = if base == block.address() { 0 } else { block.alignment };
        let whole = base..base + block.size + around;
        driver.gone.add(whole.clone());
        // SAFETY: the caller's promise; the stream waits for the events, and is the one of all else when it is in order.
        let freed = queue.on_stream(after, |stream, _| unsafe { free_at(driver, stream.raw(), base) });
        if freed.is_err() {
            driver.gone.remove(whole);
            context.placed().put_back(block, base);
        }
        freed
    }
}

fn unsupported(driver: &Driver) -> Error {
    driver.unsupported("memory in the order of a queue")
}

/// Expects that the context is current.
fn allocate_bytes(driver: &Driver, stream: Raw, size: usize) -> Result<usize> {
    let call = driver.allocate_in_order.ok_or_else(|| unsupported(driver))?;
    let mut address = 0;
    // SAFETY: a live stream, room for the answer.
    match unsafe { call(&raw mut address, size, stream) } {
        error::SUCCESS if address != 0 => Ok(address),
        error::OUT_OF_MEMORY => {
            let (memory_type, requested) = (MemoryType::UsmDevice, size as u64);
            let kind = ErrorKind::OutOfMemory { memory_type, requested };
            Err(driver.error(kind).with_native(i64::from(error::OUT_OF_MEMORY)))
        }
        error::NOT_SUPPORTED => Err(unsupported(driver)),
        code => Err(driver.native(driver.names().allocate_in_order, code)),
    }
}

/// Expects that the context is current.
///
/// # Safety
/// The driver gave `base` in order, it was not freed yet, and its uses come before this place of the stream.
unsafe fn free_at(driver: &Driver, stream: Raw, base: usize) -> Result<()> {
    let call = driver.free_in_order.ok_or_else(|| unsupported(driver))?;
    // SAFETY: the caller's promise.
    let code = unsafe { call(base, stream) };
    driver.check(driver.names().free_in_order, code)
}
