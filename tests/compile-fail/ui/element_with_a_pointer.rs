//! Elements are plain old data.

use usm_core::backend::host::HostHeap;
use usm_core::{Device, QueueOrder, UsmVec};

#[derive(Clone, Copy)]
struct Named(&'static str);

fn main() -> Result<(), usm_core::Error> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let _ = UsmVec::<Named, Device, HostHeap>::from_slice(&queue, &[Named("a")])?;
    Ok(())
}
