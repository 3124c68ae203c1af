//! The kernels of `tests/device` over memory of the test. Rust computes the expected results.

use alloc::ffi::CString;

use super::{Fault, Launch, Module, op, operations, run};
use crate::kernel::Argument;

const KERNELS: &[u8] = include_bytes!("../../tests/device/kernels.spv");
const WRONG: &[u8] = include_bytes!("../../tests/device/wrong.spv");
const ARITHMETIC: &[u8] = include_bytes!("../../tests/device/arithmetic.spv");

fn pointer<T>(array: &mut [T]) -> Argument {
    Argument::Value((array.as_mut_ptr() as usize).to_ne_bytes().to_vec())
}

fn range<T>(array: &[T]) -> (usize, usize) {
    (array.as_ptr() as usize, size_of_val(array))
}

/// Runs items along X, in both orders of items and groups.
fn on(
    module: &[u8],
    name: &str,
    [group, groups]: [u32; 2],
    arguments: &[Argument],
    memory: &[(usize, usize)],
) -> Result<(), Fault> {
    let module = Module::parse(module).expect("a module");
    let name = CString::new(name).expect("a name");
    let entry = module.entries.iter().find(|entry| entry.name == name).expect("a kernel");
    assert_eq!(entry.parameters.len(), arguments.len());
    let (group, groups, memory) = ([group, 1, 1], [groups, 1, 1], memory.to_vec());
    run(&Launch { module: &module, entry, group, groups, arguments, memory, reversed: true })
}

const INTEGERS: [i32; 13] = [0, 1, -1, 2, -2, 7, -7, 31, 127, -128, 0x1234_5678, i32::MAX, i32::MIN];

fn integer(a: i32, b: i32) -> [i64; 20] {
    let (u, v) = (a as u32, b as u32);
    let by = if b == -1 { 1 } else { b };
    let comparisons =
        |less: bool, equal: bool, more: bool| [less, less | equal, more, more | equal, equal, !equal];
    let bits = |all: &[bool]| all.iter().rev().fold(0, |sum, one| 2 * sum + i64::from(*one));
    [
        a.wrapping_add(b).into(),
        a.wrapping_sub(b).into(),
        a.wrapping_mul(b).into(),
        a.checked_div(by).unwrap_or(0).into(),
        a.checked_rem(by).unwrap_or(0).into(),
        u.checked_div(v).unwrap_or(0).into(),
        u.checked_rem(v).unwrap_or(0).into(),
        (u << (v & 31)).into(),
        (u >> (v & 31)).into(),
        (a >> (v & 31)).into(),
        (a & b).into(),
        (a | b).into(),
        (a ^ !b).into(),
        bits(&comparisons(a < b, a == b, a > b)),
        bits(&comparisons(u < v, u == v, u > v)[..4]),
        i64::from(a.min(b)) + i64::from(u.max(v)),
        ((i64::from(a) * i64::from(b)) >> 32) + ((u64::from(u) * u64::from(v)) >> 32) as i64,
        i64::from(a as i8) + i64::from(b as i16),
        i64::from(a as u8) + i64::from(b as u16),
        i64::from(a) * i64::from(b) - i64::from(a.wrapping_neg()),
    ]
}

#[test]
fn integers_compute_as_in_rust() {
    let pairs: Vec<(i32, i32)> = INTEGERS.iter().flat_map(|a| INTEGERS.iter().map(|b| (*a, *b))).collect();
    let (mut x, mut y): (Vec<i32>, Vec<i32>) = pairs.iter().copied().unzip();
    let mut found = vec![[0_i64; 20]; pairs.len()];
    let arguments = [
        pointer(&mut x),
        pointer(&mut y),
        pointer(&mut found),
        Argument::Value(20_u32.to_ne_bytes().to_vec()),
    ];
    let memory = [range(&x), range(&y), range(&found)];
    on(ARITHMETIC, "integers", [13, 13], &arguments, &memory).expect("no fault");
    for ((a, b), found) in pairs.into_iter().zip(found) {
        assert_eq!(found, integer(a, b), "{a}, {b}");
    }
}

fn float(a: f32, b: f32) -> [f64; 13] {
    let bits = [a < b, a <= b, a > b, a >= b, a == b, a != b];
    [
        (a + b).into(),
        (a - b).into(),
        (a * b).into(),
        (a / b).into(),
        f64::from(a) + f64::from(b),
        f64::from(a) / f64::from(b),
        bits.iter().rev().fold(0.0, |sum, one| 2.0 * sum + f64::from(u8::from(*one))),
        (a.min(b) - a.max(b)).into(),
        (a.abs() + b.floor()).into(),
        a.abs().sqrt().into(),
        f64::from((a as i32 as u32).wrapping_add(b.abs() as u32)),
        (b as i64 as f32 + a.abs() as u64 as f32).into(),
        (-a).into(),
    ]
}

#[test]
fn floats_compute_as_in_rust() {
    const FLOATS: [f32; 8] = [0.0, 1.0, -1.5, 0.1, 1.0e7, -3.25e4, 16_777_217.0, 1.0e-3];
    let pairs: Vec<(f32, f32)> = FLOATS.iter().flat_map(|a| FLOATS.iter().map(|b| (*a, *b))).collect();
    let (mut x, mut y): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let mut found = vec![[0_f64; 13]; pairs.len()];
    let arguments = [
        pointer(&mut x),
        pointer(&mut y),
        pointer(&mut found),
        Argument::Value(13_u32.to_ne_bytes().to_vec()),
    ];
    let memory = [range(&x), range(&y), range(&found)];
    on(ARITHMETIC, "floats", [8, 8], &arguments, &memory).expect("no fault");
    for ((a, b), found) in pairs.into_iter().zip(found) {
        assert_eq!(found.map(f64::to_bits), float(a, b).map(f64::to_bits), "{a}, {b}: {found:?}");
    }
}

#[test]
fn vectors_have_their_lanes() {
    #[repr(align(16))]
    struct Aligned([[f32; 4]; 3]);
    let (mut x, mut found) = (Aligned([[1.0, 2.0, 3.0, 4.0]; 3]), Aligned([[0.0; 4]; 3]));
    let by: Vec<u8> = [2.0_f32, 3.0, 4.0, 5.0].iter().flat_map(|lane| lane.to_ne_bytes()).collect();
    let arguments = [pointer(&mut x.0), pointer(&mut found.0), Argument::Value(by)];
    let memory = [range(&x.0), range(&found.0)];
    on(ARITHMETIC, "vectors", [1, 3], &arguments, &memory).expect("no fault");
    assert_eq!(found.0, [[3.0, 3.0, 15.0, 24.0]; 3]);
}

#[test]
fn atomic_operations_leave_what_was_before() {
    let (mut a, mut b) = ([0_u32; 13], [0_i32; 3]);
    (a[0], b[0]) = (1, -7);
    let arguments = [pointer(&mut a), pointer(&mut b)];
    on(ARITHMETIC, "atomics", [1, 1], &arguments, &[range(&a), range(&b)]).expect("no fault");
    let steps = [1, 6, 4, 100, 7, 7, 8, 7, 0x77, 0x34, 0xcb, 1000];
    assert_eq!((a[0], a[1..].to_vec()), (10, steps.to_vec()));
    assert_eq!(b, [-30, -7, -3]);
}

#[test]
fn faults_say_kernel_item_and_place() {
    let mut a = [0_u32; 16];
    let all = |a: &mut [u32]| (pointer(a), [range(a)]);
    let number = |value: u64| Argument::Value(value.to_ne_bytes().to_vec());
    let said = |outcome: Result<(), Fault>, parts: &[&str]| {
        let fault = outcome.expect_err("a fault");
        assert!(parts.iter().all(|part| fault.contains(part)), "{fault}");
    };
    for place in [16, u64::MAX / 4, 1 << 40] {
        let (first, memory) = all(&mut a);
        said(
            on(WRONG, "outside", [1, 1], &[first, number(place)], &memory),
            &["kernel outside", "a write of 4 bytes"],
        );
    }
    let (first, memory) = all(&mut a);
    on(WRONG, "outside", [1, 1], &[first, number(15)], &memory).expect("the last element");
    // The bytes after a local array belong to nothing.
    for (place, inside) in [(3, true), (4, false)] {
        let (first, memory) = all(&mut a);
        let outcome =
            on(WRONG, "outside_local", [1, 1], &[first, Argument::Local(16), number(place)], &memory);
        assert_eq!(outcome.is_ok(), inside, "{outcome:?}");
    }
    let (first, memory) = all(&mut a);
    said(on(WRONG, "misaligned", [1, 1], &[first, number(2)], &memory), &["not aligned to 4"]);
    let (first, memory) = all(&mut a);
    said(on(WRONG, "quotient", [1, 1], &[first], &memory), &["division by zero"]);
    a[0] = 3;
    let (first, memory) = all(&mut a);
    said(
        on(WRONG, "diverging", [8, 1], &[first, Argument::Local(32)], &memory),
        &["item [", "Barrier", "End"],
    );
    for reaching in [0, 8] {
        a[0] = reaching;
        let (first, memory) = all(&mut a);
        on(WRONG, "diverging", [8, 1], &[first, Argument::Local(32)], &memory).expect("all or none");
    }
}

#[test]
fn a_circle_without_an_end_is_known() {
    let module = Module::parse(KERNELS).expect("a module");
    let endless: Vec<_> = module
        .entries
        .iter()
        .filter(|entry| entry.is_endless(&module))
        .map(|entry| entry.name.clone())
        .collect();
    assert_eq!(endless, [c"spin".to_owned()]);
}

/// Any bytes are refused or parsed without a panic.
#[test]
fn modules_cut_or_changed_are_refused_or_understood() {
    for module in [KERNELS, WRONG, ARITHMETIC] {
        for len in 0..module.len() {
            // A module cut after an instruction may be valid, without its last functions.
            let _ = Module::parse(&module[..len]);
        }
        for place in (0..module.len()).step_by(4) {
            for change in [[0; 4], [0xff; 4], [1, 0, 0, 0], [0, 0, 1, 0]] {
                let mut changed = module.to_vec();
                changed[place..place + 4].copy_from_slice(&change);
                let _ = Module::parse(&changed);
            }
        }
    }
}

/// A known operation without a slot for its result would be refused with a misleading error.
#[test]
fn every_operation_of_two_values_can_take_the_place_of_another() {
    let sums = 5 << 16 | op::I_ADD;
    for opcode in (0..0x400).filter(|opcode| operations::two(*opcode).is_some()) {
        let words =
            ARITHMETIC.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        let other = words.map(|word| if word == sums { 5 << 16 | opcode } else { word });
        let module: Vec<u8> = other.flat_map(u32::to_le_bytes).collect();
        assert_eq!(module == ARITHMETIC, opcode == op::I_ADD);
        Module::parse(&module).unwrap_or_else(|error| panic!("{opcode}: {error}"));
    }
}
