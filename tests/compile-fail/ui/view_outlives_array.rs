//! A view cannot be kept longer than its array.

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, ReadView, UsmVec};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let view: ReadView<'_, f32>;
    {
        let array = UsmVec::<f32, Host, HostHeap>::zeroed(&queue, 10)?;
        view = array.read()?;
    }
    assert_eq!(view[0], 0.0);

    let array = UsmVec::<f32, Host, HostHeap>::zeroed(&queue, 10)?;
    let view = array.read()?;
    drop(array);
    assert_eq!(view[0], 0.0);
    Ok(())
}
