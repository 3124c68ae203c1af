//! The OpenCL devices of this machine, and a copy through the memory of each; or why there are
//! none.
//!
//! `cargo run -p usm-opencl --example opencl_devices`

use usm_core::{Backend as _, Context, Device, QueueOrder, Result, UsmVec};
use usm_opencl::OpenCl;

/// Sends numbers to the device and back.
fn copy(context: &Context<OpenCl>) -> Result<bool> {
    let queue = context.queue(QueueOrder::InOrder)?;
    let numbers: Vec<u32> = (0..1024).collect();
    let there = UsmVec::<u32, Device, _>::from_slice(&queue, &numbers)?;
    Ok(there.to_vec(&queue)? == numbers)
}

fn main() -> Result<()> {
    let backend = match OpenCl::load() {
        Ok(backend) => backend,
        // The library or function that is missing, by name.
        Err(reason) => {
            println!("no OpenCL here: {reason}");
            return Ok(());
        }
    };
    let mut devices = Vec::new();
    backend.for_each_device(&mut |device| devices.push(device))?;
    println!("{}: {} devices", backend.path().display(), devices.len());
    for device in &devices {
        let context = Context::new(&backend, device)?;
        let info = context.info();
        match copy(&context) {
            Ok(equal) => {
                assert!(equal, "{}", info.name);
                println!("{}, {} MiB: copied", info.name, info.global_mem_size >> 20);
            }
            Err(error) => println!("{}: {error}", info.name),
        }
    }
    Ok(())
}
