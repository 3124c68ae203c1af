//! Arrays take a context, a queue or an arena.

use usm_core::backend::host::HostHeap;
use usm_core::{Device, UsmVec};

fn main() -> Result<(), usm_core::Error> {
    let _ = UsmVec::<f32, Device, HostHeap>::uninit(&HostHeap::new(), 10)?;
    Ok(())
}
