//! A custom memory source: every array accepts it in place of a context. `cargo run -p usm-core
//! --example own_source`

use core::cell::Cell;

use usm_core::backend::host::HostHeap;
use usm_core::{
    Allocation, Backend, Context, ErrorKind, MemorySource, QueueOrder, Request, Result, Shared, UsmVec,
};

/// Gives out at most `budget` bytes, and refuses the rest before the runtime is asked.
struct Budget<B: Backend> {
    context: Context<B>,
    budget: u64,
    given: Cell<u64>,
}

impl<B: Backend> MemorySource<B> for Budget<B> {
    fn allocate(&self, request: &Request) -> Result<Allocation<B>> {
        let requested = request.layout()?.size() as u64;
        let in_use = self.given.get();
        if requested > self.budget - in_use {
            return Err(ErrorKind::OverMemory { requested, in_use, limit: self.budget }.into());
        }
        let allocation = self.context.allocate(request)?;
        self.given.set(in_use + requested);
        Ok(allocation)
    }

    fn context(&self) -> &Context<B> {
        &self.context
    }
}

fn main() -> Result<()> {
    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::InOrder)?;
    let source = Budget { context, budget: 4096, given: Cell::new(0) };

    let first = UsmVec::<u32, Shared, _>::zeroed_in(&queue, &source, 1000)?;
    println!("{} elements from the budget", first.len());
    let refused = UsmVec::<u32, Shared, _>::zeroed_in(&queue, &source, 1000).unwrap_err();
    println!("then: {refused}");
    assert_eq!(source.given.get(), 4000);
    Ok(())
}
