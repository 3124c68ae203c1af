//! A backend of one's own among the runtimes: `mine:host:0`.
//! `cargo run -p usm --example own_backend`
//!
//! Here it is a host with little memory; any type that implements `usm::Backend` will do.

use usm::backend::Dyn;
use usm::backend::host::HostHeap;
use usm::{AllocKind, MemorySource as _, OpenRuntime, Request, Runtimes};

fn main() -> Result<(), Box<dyn core::error::Error>> {
    let small = || Ok(OpenRuntime::new(Dyn::new(HostHeap::with_memory(1 << 16)), None));
    let runtimes = Runtimes::new().with("mine", small)?;

    let selector = std::env::args().nth(1).unwrap_or_else(|| "mine".to_owned());
    let context = runtimes.open(&selector)?;
    println!("{selector} is {}, {} KiB", context.info().name, context.info().global_mem_size >> 10);
    if let Err(error) = context.allocate(&Request::new(AllocKind::Shared, 1 << 20)) {
        println!("a mebibyte: {error}");
    }

    // The error for a device that does not exist.
    if let Err(error) = runtimes.open("mine:gpu") {
        println!("{error}");
    }
    Ok(())
}
