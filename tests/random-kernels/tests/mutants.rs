//! Plants the faults of a code generator in random kernels. The interpreter, or the comparison with
//! it, must detect each.

mod common;

use usm_kernel_ir::{Argument, Input, Interpreter, Kernel, Order};
use usm_random_kernels::plants::FAULTS;
use usm_random_kernels::{Given, Program};

use common::{differ, expected, first_kernels};

#[test]
fn every_planted_fault_is_seen() {
    let programs: Vec<Program> = first_kernels().collect();
    for (name, plant, _) in FAULTS {
        let (mut planted, mut seen) = (0, 0);
        for program in &programs {
            let mut kernel = program.kernel.clone();
            if plant(&mut kernel) == 0 {
                continue;
            }
            planted += 1;
            seen += usize::from(is_seen(program, &kernel));
        }
        println!("{name}: seen in {seen} of the {planted} programs that have it");
        assert!(seen > 0, "{name} is seen in none of {planted} programs");
    }
}

/// Whether a run of the changed kernel has a fault or another result.
fn is_seen(program: &Program, kernel: &Kernel) -> bool {
    let arguments: Vec<Argument<'_>> = program.arguments.iter().map(Given::argument).collect();
    let input = Input::new(kernel, &program.global, &program.local, &arguments).unwrap();
    match Interpreter::new(kernel, input, Order::Backwards, 1 << 24).run() {
        Ok(found) => differ(program, &expected(program), &found).is_some(),
        Err(_) => true,
    }
}
