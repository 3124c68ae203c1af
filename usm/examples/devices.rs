//! Every device of this machine, and why the other runtimes have none.
//! `cargo run -p usm --example devices`

use usm::Selector;

fn main() {
    for runtime in usm::runtimes().iter() {
        match runtime.devices() {
            Ok(devices) => {
                for info in devices.iter().map(|device| device.info()) {
                    println!(
                        "{:<24} {}, {} MiB",
                        Selector::of(&info).to_string(),
                        info.name,
                        info.global_mem_size >> 20
                    );
                }
            }
            Err(absence) => println!("{:<24} {}", runtime.name(), absence.in_short()),
        }
    }
}
