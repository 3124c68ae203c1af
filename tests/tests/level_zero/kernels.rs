//! Kernels on the executing driver: facts that only its counters show.

use std::time::Duration;

use usm_core::{Context, Device, EventStatus, QueueOrder, UsmVec};
use usm_kernel::{Argument, BuildError, Code, Function, Launch, Module, NdRange, Range};
use usm_level_zero::LevelZero;

use crate::driver;
use crate::suite::first;

/// Kernels of the driver's own tests.
const KERNELS: &[u8] = include_bytes!("../../level-zero-driver/tests/device/kernels.spv");

fn built(context: &Context<LevelZero>, name: &str) -> Function<LevelZero> {
    let module = Module::build(context, Code::SpirV(KERNELS)).expect("a module");
    module.function(name).expect("a function")
}

/// The build log, and the names in the errors.
pub(crate) fn refusals_have_the_drivers_words() -> Result<(), String> {
    let context = first();
    // Bound one above the highest id, a memory model, and instruction 4095.
    let words = [0x0723_0203_u32, 0x0001_0000, 0, 1, 0, 3 << 16 | 14, 2, 2, 1 << 16 | 4095];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let error = Module::build(&context, Code::SpirV(&bytes)).expect_err("refused");
    let BuildError::Compile { log, native, .. } = &error else { panic!("{error}") };
    let expected = "error: instruction 4095 in front of the functions is not known";
    assert_eq!((log.as_str(), *native), (expected, Some(0x7000_0004)));
    let module = Module::build(&context, Code::SpirV(KERNELS)).expect("a module");
    let error = module.function("other").expect_err("refused");
    let known = "iota, reverse, spin".into();
    assert_eq!(error, BuildError::NoFunction { name: "other".into(), names: known });
    Ok(())
}

/// Ranges that no usual group size divides.
pub(crate) fn without_groups_the_driver_chooses_them() -> Result<(), String> {
    let context = first();
    let (queue, iota) = (context.queue(QueueOrder::OutOfOrder).expect("a queue"), built(&context, "iota"));
    for count in [1_u32, 64, 97, 1000] {
        let mut ids = UsmVec::<u32, Device, _>::zeroed(&queue, count as usize).expect("an array");
        let launch = Launch::with_range(&queue, Range::new([u64::from(count)]).expect("a range"));
        // SAFETY: an item has its own element.
        let event = unsafe { launch.call(&iota, &[Argument::write(&mut ids)]) };
        drop(event.expect("a launch"));
        assert_eq!(ids.to_vec(&queue).expect("the result"), (0..count).collect::<Vec<_>>());
    }
    Ok(())
}

/// The driver does not keep them, so kernel and module must live while a launch is in flight.
pub(crate) fn a_kernel_is_destroyed_after_its_launches() -> Result<(), String> {
    let context = first();
    let known = || ["modules", "kernels"].map(driver::count);
    drop(built(&context, "iota"));
    let before = known();
    let queue = context.queue(QueueOrder::InOrder).expect("a queue");
    let mut ids = UsmVec::<u32, Device, _>::zeroed(&queue, 64).expect("an array");
    let iota = built(&context, "iota");
    for _ in 0..20 {
        let launch = Launch::new(&queue, NdRange::new([64], [16]).expect("a range"));
        // SAFETY: an item has its own element.
        drop(unsafe { launch.call(&iota, &[Argument::write(&mut ids)]) }.expect("a launch"));
    }
    assert_eq!(ids.to_vec(&queue).expect("the result"), (0..64).collect::<Vec<_>>());
    drop(iota);
    assert_eq!(known(), before);
    // A kernel that never finishes is never destroyed.
    context.set_wait_limit(Duration::from_millis(10));
    let spin = built(&context, "spin");
    // SAFETY: the kernel accesses no memory.
    let event = unsafe { Launch::new(&queue, NdRange::new([1], [1]).expect("a range")).call(&spin, &[]) };
    drop(spin);
    drop(built(&context, "iota"));
    assert_eq!(known(), before.map(|count| count + 1));
    assert_eq!(event.expect("a launch").status(), Ok(EventStatus::Pending));
    Ok(())
}
