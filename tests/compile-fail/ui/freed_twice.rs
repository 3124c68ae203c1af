//! After a free the block cannot be used again.

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, MemorySource, Request};

fn main() {
    let context = HostHeap::new().context();
    let allocation = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    drop(allocation);
    drop(allocation);
}
