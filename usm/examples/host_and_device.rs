//! One kernel on the host and on every device that takes its code: the same lines, the same result.
//!
//! `cargo run --release -p usm --example host_and_device`

use usm::backend::Dyn;
use usm::kernel::sample::saxpy;
use usm::kernel::{Executable, Launch, NdRange};
use usm::{Context, Device, QueueOrder, Selector, UsmVec};

fn result_on(context: &Context<Dyn>) -> Result<Vec<f32>, Box<dyn core::error::Error>> {
    // On the host the body in Rust; elsewhere code that the runtime compiles or loads.
    let ready = Executable::<saxpy, _, 1>::build(context)?;
    let queue = context.queue(QueueOrder::OutOfOrder)?;
    let x = UsmVec::<f32, Device, _>::from_slice(&queue, &[1.0; 1024])?;
    let mut y = UsmVec::<f32, Device, _>::from_slice(&queue, &[2.0; 1024])?;
    let _ = Launch::new(&queue, NdRange::new([1024], [64])?).run_on(&ready, saxpy, (3.0, &x, &mut y))?;
    Ok(y.to_vec(&queue)?)
}

fn main() -> Result<(), Box<dyn core::error::Error>> {
    for device in usm::devices() {
        let name = Selector::of(&device.info());
        match result_on(&device.context()?) {
            Ok(result) => {
                assert_eq!(result, [5.0; 1024], "{name}");
                println!("{name}: right");
            }
            Err(error) => println!("{name}: {error}"),
        }
    }
    Ok(())
}
