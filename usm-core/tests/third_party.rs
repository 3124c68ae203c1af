//! A backend by a third party: one source for every set of features.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::time::Duration;

use usm_core::backend::{
    Backend, Block, ContextOps, DeviceOps, EventOps, EventStatus, PointerInfo, QueueOps, QueueOrder,
    Unsupported,
};
use usm_core::{
    AllocKind, BackendKind, Context, ContextState, DeviceInfo, DeviceType, ErrorKind, Host, Result, UsmVec,
};

/// Memory that is allocated from the front and never freed.
#[repr(align(64))]
struct Region(#[expect(dead_code, reason = "reached by its address")] [u8; 4096]);

struct Bump<'m> {
    base: NonNull<u8>,
    used: core::cell::Cell<usize>,
    state: ContextState,
    region: core::marker::PhantomData<&'m mut Region>,
}

#[derive(Clone, Copy)]
struct Handle<'b>(&'b Bump<'b>);

impl core::fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Handle")
    }
}

// SAFETY: this test has one thread.
unsafe impl Send for Handle<'_> {}
// SAFETY: as above.
unsafe impl Sync for Handle<'_> {}

#[derive(Clone, Debug)]
struct Machine;

#[derive(Clone, Debug)]
struct SerialQueue;

#[derive(Clone, Debug)]
struct Done;

impl<'m> Bump<'m> {
    fn new(region: &'m mut Region) -> Self {
        let mut info = DeviceInfo::new(BackendKind::Host, DeviceType::Host, "a region");
        info.global_mem_size = 4096;
        Self {
            base: NonNull::from(region).cast(),
            used: core::cell::Cell::new(0),
            state: ContextState::new(info),
            region: core::marker::PhantomData,
        }
    }
}

// SAFETY: blocks are disjoint parts of a region that is borrowed exclusively, aligned by address
// (2), and never given out again (7); operations run on the calling thread (3 to 6 and 10).
unsafe impl<'b> Backend for Handle<'b> {
    const SYNCHRONOUS: bool = true;

    type Device = Machine;
    type Context = Self;
    type Queue = SerialQueue;
    type Event = Done;
    type Buffers = Unsupported;
    type HostTasks = Unsupported;
    type Advice = Unsupported;
    type Ipc = Unsupported;
    type Peer = Unsupported;
    type QueueMemory = Unsupported;

    fn for_each_device(&self, visit: &mut dyn FnMut(Machine)) -> Result<()> {
        visit(Machine);
        Ok(())
    }

    fn create_context(&self, _: &Machine) -> Result<Self> {
        Ok(*self)
    }
}

impl DeviceOps for Machine {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::new(BackendKind::Host, DeviceType::Host, "a region")
    }
}

impl<'b> ContextOps<Handle<'b>> for Handle<'b> {
    fn shared(&self) -> &ContextState {
        &self.0.state
    }

    fn create_queue(&self, _: QueueOrder) -> Result<SerialQueue> {
        Ok(SerialQueue)
    }

    fn allocate(&self, _: AllocKind, layout: Layout) -> Result<NonNull<u8>> {
        let start = self.0.used.get().next_multiple_of(layout.align());
        if layout.align() > align_of::<Region>() || start + layout.size() > size_of::<Region>() {
            return Err(ErrorKind::TooManyBlocks { limit: 0 }.into());
        }
        self.0.used.set(start + layout.size());
        // SAFETY: inside the region.
        Ok(unsafe { self.0.base.add(start) })
    }

    unsafe fn free(&self, _: &Block) {}

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

impl<'b> QueueOps<Handle<'b>> for SerialQueue {
    unsafe fn copy(&self, dst: *mut u8, src: *const u8, len: usize, _: &[Done]) -> Result<Done> {
        // SAFETY: the caller's promise.
        unsafe { dst.copy_from_nonoverlapping(src, len) };
        Ok(Done)
    }

    unsafe fn fill(&self, dst: *mut u8, pattern: &[u8], len: usize, _: &[Done]) -> Result<Done> {
        for index in 0..len {
            let place = dst.wrapping_add(index);
            // SAFETY: the caller's promise.
            unsafe { place.write(pattern[index % pattern.len()]) };
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

#[test]
fn a_backend_needs_the_same_items_with_and_without_a_heap() {
    let mut region = Region([0; 4096]);
    let bump = Bump::new(&mut region);
    let context = Context::<Handle<'_>>::new(&Handle(&bump), &Machine).expect("a context");
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let array = UsmVec::<u32, Host, _>::from_slice(&queue, &[1, 2, 3]).expect("an array");
    let mut copy = UsmVec::<u32, Host, _>::zeroed(&queue, 3).expect("an array");
    let _ = queue.copy(&mut copy, &array).expect("a copy");
    assert_eq!(copy.read().expect("a view")[..], [1, 2, 3]);
    assert_eq!(context.stats().sum.live, 2);
}
