//! A kernel from text, on any device: `cargo run -p usm-kernel-jit --example kernel_text`.

use usm_core::backend::host::HostHeap;
use usm_core::{Host, QueueOrder, UsmVec};
use usm_kernel_jit::{Argument, compile};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let square = compile(
        "#[kernel]
        fn square(x: &[f32], y: &mut [f32]) {
            let i = global_id(0);
            y[i] = x[i] * x[i];
        }",
    )?;
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder)?;
    let x = UsmVec::<f32, Host, _>::from_slice(&queue, &[1.0, 2.0, 3.0])?;
    let mut y = UsmVec::<f32, Host, _>::zeroed(&queue, 3)?;
    let launch = square.launch(&queue, &[3]);
    let arguments = [Argument::read(&x), Argument::write(&mut y)];
    println!("{:?}", launch.proof(&arguments)?);
    launch.run(&arguments)?.wait()?;
    println!("{:?}", &*y.read()?);
    Ok(())
}
