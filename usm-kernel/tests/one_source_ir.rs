//! The nodes of kernels from one source: text that parses back, an interpreter that agrees, proofs
//! that it never contradicts, hostile text.

#![cfg(all(feature = "macros", feature = "alloc"))]

#[path = "common/kernels.rs"]
mod kernels;

use proptest::prelude::*;
use usm_kernel::{DeviceCode, InOrder, NdRange, host::phased, kernel};
use usm_kernel_ir::proof::{Shape, claims};
use usm_kernel_ir::text::{parse, write};
use usm_kernel_ir::{
    Argument, Fault, Input, Interpreter, Kernel, Literal, Order, Parameter, Scalar, Space, emit, verify,
};

use kernels::{histogram, matmul, reduce, reverse, saxpy, scan};

fn samples() -> [(&'static str, usize); 6] {
    [
        (reverse::IR.unwrap(), 1),
        (saxpy::IR.unwrap(), 1),
        (reduce::IR.unwrap(), 1),
        (histogram::IR.unwrap(), 1),
        (matmul::IR.unwrap(), 2),
        (scan::IR.unwrap(), 1),
    ]
}

#[test]
fn the_text_form_parses_back() {
    for (text, _) in samples() {
        let kernel = parse(text).unwrap();
        verify(&kernel).unwrap();
        assert_eq!(write(&kernel), text);
        assert_eq!(parse(&write(&kernel)).unwrap(), kernel);
    }
}

/// Rounds that are known are calls with a constant, which the compiler inlines.
#[test]
fn known_rounds_are_calls() {
    for (text, rounds) in [(scan::IR.unwrap(), 7), (matmul::IR.unwrap(), 0)] {
        let kernel = parse(text).unwrap();
        let code = emit::rust(&kernel, &claims(&kernel).unwrap(), "k", "::usm_kernel", None);
        assert_eq!(code.matches("__round::<PROVEN, O, F>(").count(), rounds, "{}", kernel.name);
    }
}

#[kernel]
fn ordered(counts: &[Atomic<u32>]) {
    counts[0].fetch_add(1);
    counts[1].fetch_add(1, SEQ_CST, DEVICE);
    fence(GLOBAL);
}

/// Fences that threads need, which a launch on one thread leaves out.
#[test]
fn orders_are_fences_of_the_thread() {
    let kernel = parse(ordered::IR.unwrap()).unwrap();
    let code = emit::rust(&kernel, &claims(&kernel).unwrap(), "k", "::usm_kernel", None);
    // One at each side of the ordered operation, and one of its own.
    assert_eq!(code.matches("F::fence();").count(), 3, "{code}");
}

/// The proof's verdict on a launch of these lengths, and the interpreter's.
fn both(
    kernel: &Kernel,
    global: &[u64],
    local: &[u64],
    lengths: &[u64],
    values: &[Literal],
) -> (bool, Result<(), Fault>) {
    let mut all = Vec::new();
    let mut memory = Vec::new();
    let mut given = lengths.iter().copied();
    for array in &kernel.arrays {
        let len = if matches!(array.space, Space::Local(_)) { 0 } else { given.next().unwrap_or(0) };
        all.push(len);
        memory.push(vec![1_u8; (len * array.element.bytes()) as usize]);
    }
    let arguments: Vec<_> = kernel
        .parameters
        .iter()
        .map(|parameter| match parameter {
            Parameter::Array(id) => Argument::Array(&memory[id.0 as usize]),
            Parameter::Value(id) => Argument::Value(values[id.0 as usize]),
        })
        .collect();
    let proven = claims(kernel).unwrap().holds(&Shape { global, local, lengths: &all, values });
    let input = Input::new(kernel, global, local, &arguments).unwrap();
    let found = Interpreter::new(kernel, input, Order::Forwards, 1 << 20).run().map(drop);
    (proven, found)
}

#[test]
fn all_samples_are_proven_and_run_without_fault() {
    let kernels = samples().map(|(text, _)| parse(text).unwrap());
    let number = |value| Literal::integer(Scalar::U64, value);
    for (kernel, global, local, lengths, values) in [
        (&kernels[0], &[40][..], &[10][..], &[40][..], &[][..]),
        (&kernels[1], &[128], &[32], &[100, 100], &[Literal::f32(2.0)]),
        (&kernels[2], &[128], &[64], &[1000, 2], &[]),
        (&kernels[3], &[512], &[256], &[700, 256], &[]),
        (&kernels[4], &[32, 32], &[16, 16], &[400, 400, 400], &[number(20)]),
        (&kernels[5], &[256], &[128], &[256, 256], &[]),
    ] {
        assert_eq!(both(kernel, global, local, lengths, values), (true, Ok(())), "{}", kernel.name);
    }
}

#[test]
fn the_interpreter_is_the_body() {
    let kernel = parse(reverse::IR.unwrap()).unwrap();
    let mut plain: Vec<f32> = (0..40_u8).map(f32::from).collect();
    let start: Vec<u8> = plain.iter().flat_map(|value| value.to_ne_bytes()).collect();
    phased::run(&reverse, &NdRange::new([40], [10]).unwrap(), (&mut plain,), &mut [0; 64], InOrder).unwrap();
    for order in [Order::Forwards, Order::Backwards, Order::Shuffled(5)] {
        let input = Input::new(&kernel, &[40], &[10], &[Argument::Array(&start)]).unwrap();
        let found = Interpreter::new(&kernel, input, order, 1 << 16).run().unwrap();
        let plain: Vec<u8> = plain.iter().flat_map(|value| value.to_ne_bytes()).collect();
        assert_eq!(found[0], plain, "{order:?}");
    }
}

/// Mutants of correct kernels: each is refused at compilation, not proven, or found by the
/// interpreter.
#[test]
fn mutants_are_caught() {
    let caught = |text: &str, from: &str, to: &str, global: &[u64], local: &[u64], lengths: &[u64]| {
        assert!(text.contains(from), "{from} is not in {text}");
        let kernel = parse(&text.replacen(from, to, 1)).unwrap();
        if verify(&kernel).is_err() {
            return;
        }
        let Ok(claims) = claims(&kernel) else { return };
        let shape = Shape { global, local, lengths, values: &[] };
        assert!(!claims.holds(&shape), "{from} -> {to} is taken for right");
    };
    let barrier = "\n    (barrier local @0:11:5)";
    caught(reverse::IR.unwrap(), barrier, "", &[40], &[10], &[40, 0]);
    // One too many, on either side.
    caught(reverse::IR.unwrap(), "(lit u64 0x9", "(lit u64 0xa", &[40], &[10], &[40, 0]);
    caught(reverse::IR.unwrap(), "(lit u64 0x9", "(lit u64 0x8", &[40], &[10], &[40, 0]);
    let text = scan::IR.unwrap();
    for (place, _) in text.match_indices("(barrier local") {
        let end = place + text[place..].find(')').unwrap() + 1;
        let kernel = parse(&format!("{}{}", &text[..place], &text[end..])).unwrap();
        assert!(verify(&kernel).is_err() || claims(&kernel).is_err(), "the barrier at {place} is missing");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        u32::try_from(skip::cases("USM_KERNEL_CASES", 300)).unwrap_or(u32::MAX)
    ))]

    /// The proof accepts no launch in which the interpreter finds a fault.
    #[test]
    fn the_proof_accepts_nothing_that_is_wrong(
        sample in 0..6_usize,
        groups in prop::array::uniform2(0..4_u64),
        lengths in prop::array::uniform4(0..300_u64),
        n in 0..20_u64,
        square in any::<bool>(),
    ) {
        let (text, dimensions) = samples()[sample];
        let kernel = parse(text).unwrap();
        let local: Vec<u64> = kernel.group.clone().unwrap_or_else(|| vec![7; dimensions]);
        let global: Vec<u64> = local.iter().zip(groups).map(|(local, groups)| local * groups).collect();
        let lengths = if square { [n * n; 4] } else { lengths };
        let values: Vec<_> = kernel.values.iter().map(|value| Literal::integer(value.ty, n)).collect();
        let (proven, found) = both(&kernel, &global, &local, &lengths, &values);
        if proven {
            prop_assert_eq!(found, Ok(()), "{} over {:?} with {:?}, {}", kernel.name, global, lengths, n);
        }
    }

    /// Truncated and changed text is refused with a place, or is a kernel that every pass accepts.
    #[test]
    fn hostile_text_is_refused_or_right(
        sample in 0..6_usize,
        edits in prop::collection::vec((any::<prop::sample::Index>(), "[ ()#$%@:0-9a-z]{0,3}", 0..4_usize), 1..4),
    ) {
        let mut text = samples()[sample].0.to_owned();
        for (place, new, len) in edits {
            let start = place.index(text.len());
            let end = (start + len).min(text.len());
            if text.is_char_boundary(start) && text.is_char_boundary(end) {
                text.replace_range(start..end, &new);
            }
        }
        if let Ok(kernel) = parse(&text) {
            if verify(&kernel).is_ok() {
                let _ = emit::opencl_c(&kernel);
                let _ = emit::cuda_c(&kernel);
                if let Ok(claims) = claims(&kernel) {
                    let _ = emit::rust(&kernel, &claims, "k", "::usm_kernel", None);
                }
            }
        }
    }
}
