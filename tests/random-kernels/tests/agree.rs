//! Random kernels give the same results on every target: the interpreter in three orders, the
//! host's Rust, and OpenCL C and SPIR-V on the processor's OpenCL device.
//!
//! `USM_RANDOM_KERNELS` sets the number of kernels, `USM_RANDOM_SEED` the first seed. The defaults
//! are a sample.

mod common;
#[path = "common/host.rs"]
mod host;

use usm_core::backend::host::HostHeap;
use usm_core::{Queue, QueueOrder};
use usm_kernel::{Launch, NdRange, ShuffledOrder};
use usm_kernel_ir::verify;
use usm_random_kernels::plants::{FAULTS, Shows, forgetful, planted, with_zeros};
use usm_random_kernels::{Given, Program, first_seed, jumping_program, program};

use common::{Expected, differ, expected, first_jumps, first_kernels};

type Run = fn(&Queue<HostHeap>, &[u64], &[u64], &[Given]) -> Vec<Vec<u8>>;

#[allow(warnings, clippy::all, clippy::pedantic)]
mod compiled {
    use super::host::{array, bytes, value};
    use super::*;

    include!(concat!(env!("OUT_DIR"), "/kernels.rs"));
}

#[test]
fn random_kernels_are_right_in_every_order() {
    for program in first_kernels().chain(first_jumps()) {
        verify(&program.kernel).unwrap_or_else(|error| panic!("{}: {error}", program.kernel.name));
        let Expected { .. } = expected(&program);
    }
}

#[test]
fn random_kernels_agree_on_the_host() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    for (seed, is_jumping, run) in compiled::KERNELS {
        let program = if *is_jumping { jumping_program(*seed) } else { program(*seed) };
        let expected = expected(&program);
        let found = run(&queue, &program.global, &program.local, &program.arguments);
        if let Some(text) = differ(&program, &expected, &found) {
            panic!("host: {text}");
        }
    }
}

/// Before each group local memory has noise.
#[test]
fn memory_that_nobody_wrote_is_zero_on_the_host() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    let programs = forgetful(first_seed(), compiled::FORGETFUL);
    assert!(!programs.is_empty() && programs.len() == compiled::FORGOT.len());
    for (program, run) in programs.iter().zip(compiled::FORGOT) {
        let found = run(&queue, &program.global, &program.local, &program.arguments);
        if let Some(text) = differ(program, &Expected(with_zeros(program)), &found) {
            panic!("host: {text}");
        }
    }
}

/// The host runs items one after the other, so a plain sum for an atomic one gives the same result
/// there. The proof refuses it: the kernel does not compile, or its launch fails.
#[test]
fn every_planted_fault_is_seen_on_the_host() {
    let queue = HostHeap::new().context().queue(QueueOrder::InOrder).unwrap();
    for (number, fault @ (name, _, shows)) in FAULTS.into_iter().enumerate() {
        let programs = planted(fault, first_seed(), compiled::PLANTED, &[]);
        assert!(!programs.is_empty(), "{name}: no program has a place for it");
        let mut seen = 0;
        for (_, place, run) in compiled::WRONG.iter().filter(|(fault, ..)| *fault == number) {
            let (planted, Program { global, local, arguments, .. }) =
                (&programs[*place], &programs[*place].wrong);
            let mut found = run(&queue, global, local, arguments);
            planted.cut(&mut found);
            let differs = differ(&planted.right, &expected(&planted.right), &found).is_some();
            seen += usize::from(if shows == Shows::AtOnce { planted.is_refused() } else { differs });
        }
        let all = programs.len();
        println!("{name}: seen in {seen} of {all} programs");
        assert!(shows.suffices(seen, all), "{name}: seen in {seen} of {all} programs");
    }
}
