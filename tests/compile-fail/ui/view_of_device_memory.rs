//! The host cannot view device memory.

use usm_core::backend::host::HostHeap;
use usm_core::{Device, QueueOrder, UsmVec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let mut array = UsmVec::<f32, Device, HostHeap>::zeroed(&queue, 10)?;
    let first = array.read()?[0];
    array.write()?[0] = first;
    Ok(())
}
