//! No program reads memory without a value in code that does not set it to zero.

use usm_kernel_ir::{Space, verify, zeroed};
use usm_random_kernels::plants::{drop_own_store, own_stores, unwritten};
use usm_random_kernels::{build_cases, first_seed, long_program, program};

/// Each program loses one of its writes to local and private memory at a time.
#[test]
fn every_array_that_is_read_too_early_is_set_to_zero() {
    let (first, count) = (first_seed(), build_cases("USM_RANDOM_KERNELS", 32) * 4);
    let (mut early, mut whole, mut kept) = (0, 0, 0);
    for seed in first..first + count {
        for right in [program(seed), long_program(seed)] {
            let own = right.kernel.arrays.iter();
            let own = own.filter(|array| matches!(array.space, Space::Local(_) | Space::Private(_))).count();
            whole += own;
            kept += own - zeroed(&right.kernel).len();
            for number in 0..own_stores(&right.kernel) {
                let mut wrong = right.clone();
                drop_own_store(&mut wrong.kernel, number);
                verify(&wrong.kernel).unwrap();
                let Some(name) = unwritten(&wrong) else { continue };
                early += 1;
                let zeroed = zeroed(&wrong.kernel);
                let is_zeroed = zeroed.iter().any(|id| wrong.kernel.array(*id).name == name);
                assert!(is_zeroed, "{}: `{name}` without store {number}", wrong.kernel.name);
            }
        }
    }
    println!("{early} reads too early; {kept} of {whole} arrays of right programs need no zeros");
    assert!(early >= count as usize / 4, "{early} of {count} programs");
    assert!(kept * 10 >= whole * 9, "{kept} of {whole} arrays");
}
