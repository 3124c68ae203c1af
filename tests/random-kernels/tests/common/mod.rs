//! The interpreter's results, and the comparison with them.

use usm_kernel_ir::{Argument, Input, Interpreter, Literal, Order, Parameter};
use usm_random_kernels::plants::equal;
use usm_random_kernels::{Given, Program, build_cases, first_seed, jumping_program, program};

/// The maximum number of statements, far above the need of any program.
const STEPS: u64 = 1 << 24;

/// The sample.
#[allow(dead_code, reason = "not every program of tests runs it")]
pub(crate) fn first_kernels() -> impl Iterator<Item = Program> {
    let first = first_seed();
    (first..first + build_cases("USM_RANDOM_KERNELS", 32)).map(program)
}

/// The sample of programs with many loops and jumps.
#[allow(dead_code, reason = "not every program of tests runs it")]
pub(crate) fn first_jumps() -> impl Iterator<Item = Program> {
    let first = first_seed();
    (first..first + build_cases("USM_RANDOM_JUMPS", 16)).map(jumping_program)
}

/// The arrays that are parameters, in the order of the parameters.
pub(crate) struct Expected(pub(crate) Vec<Vec<u8>>);

#[allow(dead_code, reason = "not every program of tests has arguments to make")]
pub(crate) fn bytes_of(given: &Given) -> &[u8] {
    match given {
        Given::Array(bytes) => bytes,
        Given::Value(_) => &[],
    }
}

/// The results on which three orders agree.
pub(crate) fn expected(program: &Program) -> Expected {
    let Program { kernel, global, local, arguments } = program;
    let arguments: Vec<Argument<'_>> = arguments.iter().map(Given::argument).collect();
    let input = Input::new(kernel, global, local, &arguments)
        .unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
    let [first, second, third] = [Order::Forwards, Order::Backwards, Order::Shuffled(7)].map(|order| {
        let run = Interpreter::new(kernel, input.clone(), order, STEPS).run();
        run.unwrap_or_else(|fault| panic!("{}: {fault}", kernel.name))
    });
    for other in [second, third] {
        if let Some(text) = differ(program, &Expected(first.clone()), &other) {
            panic!("another order: {text}");
        }
    }
    Expected(first)
}

/// The places where arrays differ from the expected ones. All NaNs are equal, and so are both
/// zeros.
pub(crate) fn differ(program: &Program, expected: &Expected, found: &[Vec<u8>]) -> Option<String> {
    let kernel = &program.kernel;
    let arrays = kernel.parameters.iter().filter_map(|parameter| match parameter {
        Parameter::Array(id) => Some(kernel.array(*id)),
        Parameter::Value(_) => None,
    });
    assert_eq!(expected.0.len(), found.len(), "{}", kernel.name);
    for (number, ((array, wanted), found)) in arrays.zip(&expected.0).zip(found).enumerate() {
        let width = array.element.bytes() as usize;
        assert_eq!(wanted.len(), found.len(), "{}", kernel.name);
        for (index, (one, two)) in wanted.chunks(width).zip(found.chunks(width)).enumerate() {
            let [one, two] = [one, two].map(|bytes| Literal::from_ne_bytes(array.element, bytes));
            if !equal(one, two) {
                return Some(format!(
                    "{}: element {index} of array {number}, {}: {two:?}, the interpreter has {one:?}",
                    kernel.name, array.element
                ));
            }
        }
    }
    None
}
