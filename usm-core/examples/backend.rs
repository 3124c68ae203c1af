//! A whole backend by a third party: a board with sixteen pages. It needs no heap, but takes one:
//!
//! `cargo run -p usm-core --example backend`, and with `--no-default-features`

use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use usm_core::backend::*;
use usm_core::{AllocKind, BackendKind, Context, Device, DeviceInfo, DeviceType, ErrorKind};
use usm_core::{ContextState, MemoryType, Result, UsmVec};

const PAGE: usize = 4096;
const PAGES: usize = 16;

#[repr(align(4096))]
struct Memory(UnsafeCell<[u8; PAGE * PAGES]>);
// SAFETY: only a page's owner and the model's operations access its bytes, in the model's order.
unsafe impl Sync for Memory {}

static MEMORY: Memory = Memory(UnsafeCell::new([0; PAGE * PAGES]));
/// A bit for each allocated page.
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// The backend and its one context. Both borrow the context state, so no heap is needed.
#[derive(Clone, Copy, Debug)]
struct Board<'a>(&'a ContextState);

/// The device.
#[derive(Clone, Copy, Debug)]
struct Card;

/// An event, always complete; and the queue, which has no state either.
#[derive(Clone, Copy, Debug)]
struct Done;

// SAFETY: a page has one owner from `allocate` to `free` (points 2 and 7); operations run on the
// calling thread and have finished when they return (3 to 6, 10, 11); all contexts are of one
// library (13); there are no buffers (12) and no deferred frees (9).
unsafe impl<'a> Backend for Board<'a> {
    const SYNCHRONOUS: bool = true;

    type Device = Card;
    type Context = Board<'a>;
    type Queue = Done;
    type Event = Done;
    type Buffers = Unsupported;
    type HostTasks = Unsupported;
    type Advice = Unsupported;
    type Ipc = Unsupported;
    type Peer = Unsupported;
    type QueueMemory = Unsupported;

    fn for_each_device(&self, visit: &mut dyn FnMut(Card)) -> Result<()> {
        visit(Card);
        Ok(())
    }

    fn create_context(&self, _: &Card) -> Result<Board<'a>> {
        Ok(*self)
    }
}

impl DeviceOps for Card {
    fn info(&self) -> DeviceInfo {
        let mut info = DeviceInfo::new(BackendKind::Host, DeviceType::Accelerator, "board");
        (info.global_mem_size, info.max_alloc_size) = ((PAGE * PAGES) as u64, PAGE as u64);
        info
    }
}

impl<'a> ContextOps<Board<'a>> for Board<'a> {
    fn shared(&self) -> &ContextState {
        self.0
    }

    fn create_queue(&self, _: QueueOrder) -> Result<Done> {
        Ok(Done)
    }

    fn allocate(&self, _: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        let requested = layout.size() as u64;
        let full = ErrorKind::OutOfMemory { memory_type: MemoryType::UsmDevice, requested };
        if layout.size() > PAGE || layout.align() > PAGE {
            return Err(full.into());
        }
        let page = (0..PAGES).find(|page| TAKEN.fetch_or(1 << page, Ordering::Acquire) & (1 << page) == 0);
        let place = MEMORY.0.get().cast::<u8>().wrapping_add(page.ok_or(full)? * PAGE);
        Ok(NonNull::new(place).ok_or(full)?)
    }

    unsafe fn free(&self, block: &Block) {
        let page = (block.address() - (&raw const MEMORY).addr()) / PAGE;
        TAKEN.fetch_and(!(1 << page), Ordering::Release);
    }

    fn query(&self, _: usize) -> Result<PointerInfo> {
        Ok(PointerInfo::UNKNOWN)
    }

    fn synchronize(&self, _: Duration) -> Result<()> {
        Ok(())
    }

    fn for_each_pending(&self, _: Duration, _: &mut dyn FnMut(Done)) -> Result<()> {
        Ok(())
    }
}

impl<'a> QueueOps<Board<'a>> for Done {
    unsafe fn copy(&self, dst: *mut u8, src: *const u8, len: usize, _: &[Done]) -> Result<Done> {
        // SAFETY: the caller's promise: live, disjoint, no conflicting access.
        unsafe { ptr::copy_nonoverlapping(src, dst, len) };
        Ok(Done)
    }

    unsafe fn fill(&self, dst: *mut u8, pattern: &[u8], len: usize, _: &[Done]) -> Result<Done> {
        for start in (0..len).step_by(pattern.len()) {
            // SAFETY: the caller's promise, and `len` is a multiple of the pattern's width.
            unsafe { ptr::copy_nonoverlapping(pattern.as_ptr(), dst.wrapping_add(start), pattern.len()) };
        }
        Ok(Done)
    }

    unsafe fn barrier(&self, _: &[Done]) -> Result<Done> {
        Ok(Done)
    }
}

impl EventOps for Done {
    fn status(&self) -> Result<EventStatus> {
        Ok(EventStatus::Complete)
    }

    fn wait(&self, _: Duration) -> Result<()> {
        Ok(())
    }
}

fn main() -> Result<()> {
    let shared = ContextState::new(Card.info());
    let queue = Context::new(&Board(&shared), &Card)?.queue(QueueOrder::InOrder)?;
    let device = UsmVec::<u32, Device, _>::from_slice(&queue, &[1, 2, 3])?;
    let mut back = [0; 3];
    queue.read_to_slice(&mut back, &device)?;
    assert_eq!(back, [1, 2, 3]);
    println!("{}: {back:?}", queue.context().info().name);
    Ok(())
}
