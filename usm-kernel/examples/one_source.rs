//! One source for the host and all devices: each group adds its own reverse.

use usm_core::backend::host::HostHeap;
use usm_core::{QueueOrder, Shared, UsmVec};
use usm_kernel::prelude::*;

#[kernel(group = 10)]
fn reverse(a: &mut [f32]) {
    #[local]
    let mut lm: [f32; 10];
    let (l, i) = (local_id(0), global_id(0));
    lm[l] = a[i];
    barrier(LOCAL);
    a[i] += lm[9 - l];
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let context = HostHeap::new().context();
    let ready = Executable::<reverse, _, 1>::build(&context)?;
    let queue = context.queue(QueueOrder::InOrder)?;
    let arange: Vec<f32> = (0..10_u8).map(f32::from).collect();
    let mut a = UsmVec::<f32, Shared, _>::from_slice(&queue, &arange)?;
    let _ = Launch::new(&queue, NdRange::new([10], [10])?).run_on(&ready, reverse, (&mut a,))?;
    println!("{:?}", &a.read()?[..]);
    Ok(())
}
