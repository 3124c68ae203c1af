//! Blocks of usm-nrt in memory other than the host's heap.

use usm_core::backend::mock::Mock;
use usm_core::{AllocKind, Allocation, Context, MemorySource, Request};
use usm_nrt::{MemRef, SourceAllocator};

/// A source that returns memory of another context than its own.
struct OfAnother {
    said: Context<Mock>,
    given: Context<Mock>,
    kind: AllocKind,
}

impl MemorySource<Mock> for OfAnother {
    fn allocate(&self, request: &Request) -> usm_core::Result<Allocation<Mock>> {
        let mut request = *request;
        request.kind = self.kind;
        self.given.allocate(&request)
    }

    fn context(&self) -> &Context<Mock> {
        &self.said
    }
}

/// Headers are accessed at any time, so memory that excludes concurrent access cannot hold them,
/// whatever its source reports.
#[test]
fn no_header_is_written_to_memory_that_the_host_must_not_touch_while_the_device_works() {
    let (said, given) = (Mock::default().context(), Mock::default().without_concurrent_access().context());
    assert!(SourceAllocator::new(given.clone(), AllocKind::Shared).is_none());
    let source = OfAnother { said, given: given.clone(), kind: AllocKind::Shared };
    let allocator = SourceAllocator::new(source, AllocKind::Shared).expect("a kind for blocks");
    assert!(MemRef::allocate(allocator.request(100)).is_err());
    assert_eq!(given.stats().sum.current, 0);
}

/// A block's kind is its allocator's.
#[test]
fn memory_of_another_kind_than_the_allocators_is_refused() {
    let context = Mock::default().context();
    let source = OfAnother { said: context.clone(), given: context.clone(), kind: AllocKind::Host };
    let allocator = SourceAllocator::new(source, AllocKind::Shared).expect("a kind for blocks");
    assert!(MemRef::allocate(allocator.request(100)).is_err());
    assert_eq!(context.stats().sum.current, 0);
}
