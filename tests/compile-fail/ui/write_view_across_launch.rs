//! While the host writes an array, no launch can use it, not even to read it.

use usm_core::backend::host::HostHeap;
use usm_core::{QueueOrder, Shared, UsmVec};
use usm_kernel::sample::saxpy;
use usm_kernel::{Launch, Range};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let mut x = UsmVec::<f32, Shared, HostHeap>::zeroed(&queue, 10)?;
    let mut y = UsmVec::<f32, Shared, HostHeap>::zeroed(&queue, 10)?;
    let mut view = x.write()?;
    let event = Launch::with_range(&queue, Range::new([10])?).run(saxpy, (2.0, &x, &mut y))?;
    view[0] = 1.0;
    event.wait()?;
    Ok(())
}
