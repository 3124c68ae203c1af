//! While the host reads an array, no launch can write to it.

use usm_core::backend::host::HostHeap;
use usm_core::{QueueOrder, Shared, UsmVec};
use usm_kernel::sample::reverse;
use usm_kernel::{Launch, NdRange};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let mut array = UsmVec::<f32, Shared, HostHeap>::zeroed(&queue, 10)?;
    let view = array.read()?;
    let event = Launch::new(&queue, NdRange::new([10], [10])?).run(reverse, (&mut array,))?;
    assert_eq!(view[0], 0.0);
    event.wait()?;
    Ok(())
}
