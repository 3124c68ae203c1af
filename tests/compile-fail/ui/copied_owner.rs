//! A block has one owner.

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, MemorySource, Request};

fn main() {
    let context = HostHeap::new().context();
    let allocation = context.allocate(&Request::new(AllocKind::Shared, 64)).expect("memory");
    let second = allocation.clone();
    drop((allocation, second));
}
