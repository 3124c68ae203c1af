//! Launches of random kernels with many loops and jumps, by the C compiler of the machine, if it
//! has one, and by built-in code, beside the interpreter.
//!
//! `USM_RANDOM_JUMPS` sets the number of kernels, `USM_RANDOM_SEED` the first seed.

use usm_core::backend::host::HostHeap;
use usm_core::{Host, Queue, QueueOrder, UsmVec};
use usm_kernel_ir::Parameter;
use usm_kernel_jit::{Argument, Function};
use usm_random_kernels::{Given, Program};

#[path = "../../tests/random-kernels/tests/common/mod.rs"]
mod common;

use common::{differ, expected, first_jumps};

/// The arrays after a launch.
fn launched(program: &Program, queue: &Queue<HostHeap>) -> Vec<Vec<u8>> {
    let Program { kernel, global, local, arguments } = program;
    let function = Function::new(kernel.clone()).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
    let mut memory: Vec<UsmVec<u8, Host, HostHeap>> = arguments
        .iter()
        .map(|given| {
            let bytes = common::bytes_of(given);
            let mut copy = UsmVec::zeroed(queue, bytes.len()).expect("an array");
            copy.write().expect("a view").copy_from_slice(bytes);
            copy
        })
        .collect();
    let given: Vec<Argument<'_, HostHeap>> = memory
        .iter_mut()
        .zip(arguments)
        .zip(&kernel.parameters)
        .map(|((bytes, given), parameter)| match (given, parameter) {
            (Given::Value(literal), _) => Argument::literal(*literal),
            (_, Parameter::Array(id)) => {
                Argument::write_as(bytes, kernel.array(*id).element).expect("whole elements")
            }
            _ => panic!("{}: an argument of another sort", kernel.name),
        })
        .collect();
    let event = function.launch(queue, global).groups(local).run(&given);
    drop(given);
    let event = event.unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
    event.wait().unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
    memory.iter().map(|bytes| bytes.read().expect("a view").to_vec()).collect()
}

#[test]
fn launches_of_loops_and_jumps_agree() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).expect("a queue");
    for program in first_jumps() {
        let expected = expected(&program);
        let arrays = launched(&program, &queue).into_iter().zip(&program.arguments);
        let found: Vec<Vec<u8>> =
            arrays.filter_map(|(bytes, given)| matches!(given, Given::Array(_)).then_some(bytes)).collect();
        if let Some(text) = differ(&program, &expected, &found) {
            panic!("{text}");
        }
    }
}
