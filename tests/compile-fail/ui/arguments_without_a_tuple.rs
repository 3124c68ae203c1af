//! The arguments of a kernel are a tuple, even a single argument.

use usm_core::backend::host::HostHeap;
use usm_core::{Device, QueueOrder, UsmVec};
use usm_kernel::sample::reverse;
use usm_kernel::{Launch, NdRange};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let mut a = UsmVec::<f32, Device, _>::zeroed(&queue, 10)?;
    let _ = Launch::new(&queue, NdRange::new([10], [10])?).run(reverse, &mut a)?;
    Ok(())
}
