//! The first copy: host memory to device memory and back.
//! `cargo run -p usm-core --example first_copy`

use usm_core::backend::host::HostHeap;
use usm_core::{Device, Host, QueueOrder, UsmVec};

fn main() -> Result<(), usm_core::Error> {
    // For another backend, change only this line: `OpenCl::load()?` of usm-opencl, or
    // `usm::open("gpu")`.
    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::OutOfOrder)?;

    let numbers: Vec<f32> = (0..1000_u16).map(f32::from).collect();
    let input = UsmVec::<f32, Host, _>::from_slice(&queue, &numbers)?;
    let mut device = UsmVec::<f32, Device, _>::zeroed(&queue, numbers.len())?;
    let mut output = UsmVec::<f32, Host, _>::zeroed(&queue, numbers.len())?;

    // The program waits for no event: the second copy is ordered after the first, and the view
    // after both.
    let _ = queue.copy(&mut device, &input)?;
    let _ = queue.copy(&mut output, &device)?;
    assert_eq!(output.read()?[..], numbers[..]);

    let stats = context.stats().sum;
    println!("{} allocations live, {} bytes at most", stats.live, stats.peak);
    Ok(())
}
