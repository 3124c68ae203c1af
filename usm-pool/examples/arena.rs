//! A plan in use: one allocation, and arrays in parts of it. `cargo run -p usm-pool --example
//! arena`

use usm_core::backend::host::HostHeap;
use usm_core::{AllocKind, QueueOrder, Shared, UsmVec};
use usm_pool::arena::Arena;
use usm_pool::{Buffer, Options, Problem, plan};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    // Half-open lives in operators, sizes in bytes. Buffers 0 and 2 are never live together.
    let buffers = [Buffer::new(0, 0, 2, 4096), Buffer::new(1, 1, 3, 2048), Buffer::new(2, 2, 4, 4096)];
    let problem = Problem::from_buffers(buffers.map(|buffer| buffer.aligned(64)).to_vec())?;
    let plan = plan(&problem, &Options::default())?;
    plan.verify(&problem)?;
    println!("{} bytes instead of {}", plan.peak, plan.naive);

    let context = HostHeap::new().context();
    let queue = context.queue(QueueOrder::InOrder)?;
    let arena = Arena::new(&plan, &context, AllocKind::Shared)?;
    let first = UsmVec::<f32, Shared, _>::zeroed_in(&queue, &arena.tensor(0)?, 1024)?;
    let middle = UsmVec::<f32, Shared, _>::from_slice_in(&queue, &arena.tensor(1)?, &[7.0; 512])?;
    let place = first.as_ptr();
    drop(first);
    let last = UsmVec::<f32, Shared, _>::zeroed_in(&queue, &arena.tensor(2)?, 1024)?;
    assert_eq!(last.as_ptr(), place, "the last buffer has the first one's bytes");
    assert_eq!(middle.read()?[..], [7.0; 512], "live tensors keep their content");
    Ok(())
}
