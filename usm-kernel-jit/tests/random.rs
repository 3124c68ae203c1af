//! Random kernels give the same results in machine code and in the interpreter; integers agree bit
//! for bit.

use core::ffi::c_void;

use usm_kernel_ir::emit::checked;
use usm_kernel_ir::proof::bounds;
use usm_kernel_ir::{Literal, Parameter, Scalar, Space, verify};
use usm_kernel_jit::{host::Pause, machine::Code};
use usm_random_kernels::plants::{FAULTS, Shows, forgetful, planted, with_zeros};
use usm_random_kernels::{Given, Program, build_cases, first_seed, long_program};

#[path = "../../tests/random-kernels/tests/common/mod.rs"]
mod common;

use common::{Expected, differ, expected, first_jumps, first_kernels};

#[test]
fn random_kernels_agree() {
    let first = first_seed();
    // Groups shorter than a row of sixteen items, and longer ones.
    let long = (first..first + build_cases("USM_RANDOM_KERNELS", 32)).map(long_program);
    for program in first_kernels().chain(long).chain(first_jumps()) {
        let name = &program.kernel.name;
        verify(&program.kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
        let code = Code::new(&program.kernel).unwrap_or_else(|error| panic!("{name}: {error}"));
        let checked = Code::checked(&program.kernel, &bounds(&program.kernel));
        let checked = checked.unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = expected(&program);
        // All groups at once, and one group at a time.
        for (code, step) in [(&code, u64::MAX), (&code, 1), (&checked, u64::MAX)] {
            if let Some(text) = differ(&program, &expected, &run(code, &program, step)) {
                panic!("{text}");
            }
        }
    }
}

#[test]
fn memory_that_nobody_wrote_is_zero_in_machine_code() {
    let programs = forgetful(first_seed(), 100);
    assert!(programs.len() >= 50, "{} programs", programs.len());
    for program in &programs {
        let expected = Expected(with_zeros(program));
        let code = Code::new(&program.kernel).unwrap();
        let checked = Code::checked(&program.kernel, &bounds(&program.kernel)).unwrap();
        for (code, step) in [(&code, u64::MAX), (&code, 1), (&checked, u64::MAX)] {
            if let Some(text) = differ(program, &expected, &run(code, program, step)) {
                panic!("{text}");
            }
        }
    }
}

/// Jumps by labels, constants of types and kinds of numbers, from usm-kernel's own tests.
#[test]
fn kernels_of_the_language_agree() {
    let source = include_str!("../../usm-kernel/tests/common/language.rs");
    let kernels = usm_kernel_rust::read(source, "language.rs").unwrap();
    let words = |values: &[u32]| Given::Array(values.iter().flat_map(|value| value.to_ne_bytes()).collect());
    let zeros = |bytes| Given::Array(vec![0; bytes]);
    let values: Vec<u32> = (0..48).map(|i| i * 7 % 37).collect();
    let numbers = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN, 0.5].map(f32::to_bits);
    let n = Given::Value(Literal::integer(Scalar::U32, 7));
    for (name, global, local, arguments) in [
        ("labels", 48, 16, vec![n, words(&values), zeros(48 * 4)]),
        ("limits", 6, 6, vec![words(&numbers), zeros(24), zeros(24), zeros(48)]),
    ] {
        let kernel = kernels.iter().find(|kernel| kernel.name == name).unwrap().clone();
        let program = Program { kernel, global: vec![global], local: vec![local], arguments };
        let code = Code::new(&program.kernel).unwrap();
        if let Some(text) = differ(&program, &expected(&program), &run(&code, &program, u64::MAX)) {
            panic!("{text}");
        }
    }
}

/// Programs with each planted fault, at most.
const PLANTED: usize = 8;

/// Machine code runs up to sixteen items at once, in an order of its own, so a plain sum for an
/// atomic one may give the same result. The proof refuses it before any machine code runs.
#[test]
fn every_planted_fault_is_seen_in_machine_code() {
    for fault @ (name, _, shows) in FAULTS {
        let programs = planted(fault, first_seed(), PLANTED, &[]);
        assert!(!programs.is_empty(), "{name}: no program has a place for it");
        let (mut seen, mut refused) = (0, 0);
        for planted in &programs {
            let code = Code::new(&planted.wrong.kernel).unwrap();
            let mut found = run(&code, &planted.wrong, u64::MAX);
            planted.cut(&mut found);
            seen += usize::from(differ(&planted.right, &expected(&planted.right), &found).is_some());
            refused += usize::from(planted.is_refused());
        }
        let all = programs.len();
        println!("{name}: seen in {seen} of {all} programs, {refused} refused");
        let known = if shows == Shows::AtOnce { refused } else { seen };
        assert!(shows.suffices(known, all), "{name}: seen in {known} of {all} programs");
    }
}

/// Answers after few rounds, of another number each time, that the code may go on.
#[repr(C)]
struct Few {
    pause: Pause,
    calls: u64,
}

impl Few {
    unsafe extern "C" fn ask(pause: *mut Pause) -> u64 {
        // SAFETY: the address of a `Few`, which nothing else uses meanwhile.
        let few = unsafe { &mut *pause.cast::<Self>() };
        few.calls += 1;
        1 + few.calls % 7
    }
}

/// Runs a program, in each dimension `step` groups at a time. Loops ask after few rounds.
fn run(code: &Code, program: &Program, step: u64) -> Vec<Vec<u8>> {
    let Program { kernel, global, local, arguments } = program;
    let mut memory: Vec<Vec<u8>> = Vec::new();
    let mut values = vec![0; kernel.values.len()];
    let mut lengths = vec![0; kernel.arrays.len()];
    for (given, parameter) in arguments.iter().zip(&kernel.parameters) {
        match (given, parameter) {
            (Given::Array(bytes), Parameter::Array(id)) => {
                lengths[id.0 as usize] = bytes.len() as u64 / kernel.array(*id).element.bytes();
                memory.push(bytes.clone());
            }
            (Given::Value(value), Parameter::Value(id)) => values[id.0 as usize] = value.bits,
            _ => panic!("{}: an argument of another sort", kernel.name),
        }
    }
    assert!(kernel.arrays.iter().all(|array| !matches!(array.space, Space::Constant(0))));
    let mut record = [0_u32; checked::WORDS];
    let arrays = memory.iter_mut().map(|bytes| bytes.as_mut_ptr().cast());
    let arrays: Vec<*mut c_void> = arrays.chain([record.as_mut_ptr().cast()]).collect();
    let three = |sizes: &[u64]| {
        let mut sizes = sizes.iter().rev().copied();
        [(); 3].map(|()| sizes.next().unwrap_or(1))
    };
    // A kernel that needs no groups runs over the whole range, in parts of any size.
    let local = if kernel.needs_groups() { local } else { global };
    let (global, local) = (three(global), three(local));
    let groups: [u64; 3] = core::array::from_fn(|axis| global[axis] / local[axis]);
    let mut scratch: Option<Vec<u64>> = None;
    let mut few = Few { pause: Pause { ask: Few::ask, rounds: 1 }, calls: 0 };
    let ways: [Vec<u64>; 3] =
        groups.map(|count| (0..count).step_by(usize::try_from(step).unwrap_or(usize::MAX)).collect());
    for z in &ways[2] {
        for y in &ways[1] {
            for x in &ways[0] {
                let first = [*x, *y, *z];
                let end: [u64; 3] =
                    core::array::from_fn(|axis| first[axis].saturating_add(step).min(groups[axis]));
                let sizes: Vec<u64> = [global, local, first, end].concat();
                let pause: *mut Pause = (&raw mut few).cast();
                let call = |scratch: *mut u8| {
                    let (arrays, values) = (arrays.as_ptr(), values.as_ptr());
                    let (lengths, sizes) = (lengths.as_ptr(), sizes.as_ptr());
                    // SAFETY: the interpreter ran the same kernel with the same arguments and found
                    // every index inside. The pause is the first field of `few`.
                    unsafe { code.run_while(arrays, values, lengths, sizes, scratch, pause) }
                };
                if scratch.is_none() {
                    let bytes = call(core::ptr::null_mut());
                    // Old bytes, as of a launch before it.
                    scratch = Some(vec![0xA5A5_A5A5_A5A5_A5A5; bytes as usize / 8 + 1]);
                }
                let scratch =
                    scratch.as_mut().map_or(core::ptr::null_mut(), |words| words.as_mut_ptr().cast());
                let _ = call(scratch);
            }
        }
    }
    assert_eq!(record, [0; checked::WORDS], "{}: an index outside", kernel.name);
    memory
}
