//! A launch does not take host views.

use usm_core::backend::host::HostHeap;
use usm_core::{QueueOrder, Shared, UsmVec};
use usm_kernel::sample::saxpy;
use usm_kernel::{Launch, Range};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let x = UsmVec::<f32, Shared, HostHeap>::zeroed(&queue, 10)?;
    let mut y = UsmVec::<f32, Shared, HostHeap>::zeroed(&queue, 10)?;
    let view = x.read()?;
    let _ = Launch::with_range(&queue, Range::new([10])?).run(saxpy, (2.0, &view, &mut y))?;
    let mut view = y.write()?;
    let _ = Launch::with_range(&queue, Range::new([10])?).run(saxpy, (2.0, &x, &mut view))?;
    Ok(())
}
