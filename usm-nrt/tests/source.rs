//! Blocks in memory of a backend.

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, Allocation, Context, MemorySource, Request as UsmRequest};
use usm_nrt::api::NUMBA_API;
use usm_nrt::{MemRef, Request, SourceAllocator};

#[test]
fn an_allocation_lives_as_long_as_its_block() {
    let context = HostHeap::new().context();
    for kind in AllocKind::ALL {
        let live = || context.stats().sum.current;
        let before = live();
        let allocation = MemorySource::allocate(&context, &UsmRequest::new(kind, 4096)).unwrap();
        let address = allocation.as_ptr();
        let block = MemRef::from_allocation(allocation).unwrap();
        assert_eq!((block.data().cast(), block.size(), block.kind()), (address, 4096, kind));
        assert_eq!(block.owner::<Allocation<HostHeap>>().unwrap().kind(), kind);
        let other = block.clone();
        drop(block);
        assert_eq!(live(), before + 4096);
        drop(other);
        assert_eq!(live(), before);
    }
}

#[test]
fn blocks_of_a_source_go_back_to_it() {
    let context = HostHeap::new().context();
    let live = || context.stats().sum.current;
    for kind in [AllocKind::Host, AllocKind::Shared] {
        let allocator = SourceAllocator::new(context.clone(), kind).unwrap();
        let blocks: Vec<MemRef> = (0..10)
            .map(|index| MemRef::allocate(allocator.request(index * 100).align(32).filled()).unwrap())
            .collect();
        assert!(live() >= 4500);
        for block in &blocks {
            assert_eq!(block.kind(), kind);
            assert_eq!(block.data().addr() % 32, 0);
        }
        drop(allocator);
        drop(blocks);
        assert_eq!(live(), 0, "the source outlived its handle and took everything back");
    }
    assert!(SourceAllocator::new(context.clone(), AllocKind::Device).is_none());
    assert!(SourceAllocator::new(context.clone(), AllocKind::Unknown).is_none());
}

/// A source that returns device memory for every request.
struct AlwaysDevice(Context<HostHeap>);

impl MemorySource<HostHeap> for AlwaysDevice {
    fn allocate(&self, request: &UsmRequest) -> usm_core::Result<Allocation<HostHeap>> {
        let mut request = *request;
        request.kind = AllocKind::Device;
        self.0.allocate(&request)
    }

    fn context(&self) -> &Context<HostHeap> {
        &self.0
    }
}

#[test]
fn no_header_is_written_to_memory_that_the_host_must_not_touch() {
    let context = HostHeap::new().context();
    let allocator = SourceAllocator::new(AlwaysDevice(context.clone()), AllocKind::Host).unwrap();
    assert!(MemRef::allocate(allocator.request(100)).is_err());
    assert_eq!(context.stats().sum.current, 0);
}

#[test]
fn c_consumers_allocate_from_a_source() {
    let context = HostHeap::new().context();
    let allocator = SourceAllocator::new(context.clone(), AllocKind::Shared).unwrap();
    // SAFETY: the table lives while its blocks do.
    let block = unsafe { (NUMBA_API.allocate_external)(500, allocator.as_table().as_ptr()) };
    // SAFETY: the call returned a reference, which this test owns.
    let block = unsafe { MemRef::from_raw(core::ptr::NonNull::new(block).unwrap()) };
    assert_eq!((block.kind(), block.size()), (AllocKind::Shared, 500));
    assert!(context.stats().sum.current > 500);
    let size = usize::MAX - 100;
    // SAFETY: the source refuses sizes that it cannot allocate.
    let refused = unsafe { (NUMBA_API.allocate_external)(size, allocator.as_table().as_ptr()) };
    assert!(refused.is_null());
    drop(block);
    assert_eq!(context.stats().sum.current, 0);
}

#[test]
fn plain_blocks_are_of_no_kind() {
    let block = MemRef::allocate(Request::new(10)).unwrap();
    assert_eq!(block.kind(), AllocKind::Unknown);
    assert_eq!(MemRef::new_varsize(10).unwrap().kind(), AllocKind::Unknown);
}
