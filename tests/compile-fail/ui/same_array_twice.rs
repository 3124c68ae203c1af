//! An array that a launch writes cannot be another argument of it.

use usm_core::backend::host::HostHeap;
use usm_core::{Device, QueueOrder, UsmVec};
use usm_kernel::sample::saxpy;
use usm_kernel::{Launch, Range};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let mut array = UsmVec::<f32, Device, HostHeap>::zeroed(&queue, 10)?;
    let _ = Launch::with_range(&queue, Range::new([10])?).run(saxpy, (2.0, &array, &mut array))?;
    Ok(())
}
