//! Mutants of the proofs of launches: without one of its conditions, a proof accepts a launch in
//! which the interpreter finds an index outside or a race. So no condition is dropped unnoticed.

use usm_kernel_ir::proof::{Claims, Condition, Shape, claims};
use usm_kernel_ir::{Argument, Fault, Input, Interpreter, Kernel, Literal, Order, Parameter};

use crate::Checker;

/// Kernels, and the numbers of their launches that are tried for each scalar.
const KERNELS: [(&str, &[&[u64]]); 5] = [
    // The bound of `y` rests on the start of `x`, which must not wrap.
    (
        "unsafe fn start_of_another(n: u32, p: u8, a: &[u32], o: &mut [u32]) {
            let mut y = 100_u8; let mut x = p; let mut s = 0_u32;
            while (x as u32) < n && (y as u32) < 400 - (x as u32) {
                s += a[(y as u64) - 100];
                if y == 100 { x += 30; }
                y += 1;
            }
            if global_id(0) < o.len() { o[global_id(0)] = s; }
        }",
        &[&[200, 220, 226, 227, 255, 256], &[100, 144, 145, 200, 255]],
    ),
    // Each bound rests on the start of the other counter.
    (
        "unsafe fn circle(n: u32, m: u32, q: u8, a: &[u32], o: &mut [u32]) {
            let mut y = 10_u8; let mut x = 30_u8; let mut s = 0_u32;
            while (x as i64) < (n as i64) - (y as i64).min(120) && (y as i64) < (m as i64) - (x as i64).min(120) {
                s += a[(y as u64) - 10];
                if y < q { x += 50; }
                y += 1;
            }
            if global_id(0) < o.len() { o[global_id(0)] = s; }
        }",
        &[&[100, 216, 217, 400], &[100, 150, 200, 285, 286, 300], &[0, 15]],
    ),
    // The guard's difference must not wrap.
    (
        "unsafe fn guard(m: u64, o: &mut [u32]) {
            let g = global_id(0);
            for i in 0..9_u64 { if i < m - 10 { o[g * 4 + i] = 1; } }
        }",
        &[&[0, 5, 9, 10, 11, 14, 15, 19]],
    ),
    (
        "unsafe fn narrow_guard(p: u8, q: u8, o: &mut [u32]) {
            let g = global_id(0);
            let mut i = q;
            while i < p - 10 { o[g * 4 + (i as u64)] = 1; i += 2; }
        }",
        &[&[0, 5, 9, 10, 11, 14, 15, 19, 255], &[0, 1, 3, 250]],
    ),
    // The index must not wrap.
    (
        "unsafe fn far(m: u64, o: &mut [u32]) {
            let g = global_id(0);
            if g % 4 == 0 { o[g * m] = 1; }
        }",
        &[&[0, 1, 2, 1 << 61, 1 << 62]],
    ),
];
const STEPS: u64 = 1 << 12;

/// `proof::claims`.
pub(crate) fn launches() -> Checker {
    let mut checker = Checker::new("proof::claims");
    for (text, numbers) in KERNELS {
        let text = format!("#[kernel]\n{text}");
        let mut kernel = usm_kernel_rust::read(&text, "kernel.rs").expect("a kernel").remove(0);
        kernel.trusted = false;
        let claims = claims(&kernel).expect("a launch may be proven");
        let launches = launches_of(&kernel, numbers);
        assert!(launches.iter().any(|launch| launch.proven(&claims) == [true; 2]), "no launch is accepted");
        checker.right(&kernel.name, || judge(&claims, &launches));
        for (what, weaker) in weakened(&claims) {
            // Some conditions hold in all launches, or follow from others.
            if launches.iter().any(|launch| launch.proven(&weaker) != launch.proven(&claims)) {
                checker.wrong(&format!("{}: {what}", kernel.name), || judge(&weaker, &launches));
            }
        }
    }
    checker
}

/// The fault of the first launch that the claims accept although it is wrong. Those about indices
/// and those about races must hold by themselves.
fn judge(claims: &Claims, launches: &[Launch]) -> Result<(), Fault> {
    for launch in launches {
        let [inside, apart] = launch.proven(claims);
        match &launch.fault {
            Some(fault @ Fault::Outside { .. }) if inside => return Err(fault.clone()),
            Some(fault @ Fault::Race { .. }) if apart => return Err(fault.clone()),
            _ => {}
        }
    }
    Ok(())
}

/// The claims without one condition each.
fn weakened(claims: &Claims) -> Vec<(String, Claims)> {
    let mut all = Vec::new();
    for (at, bound) in claims.bounds.iter().enumerate() {
        for without in 0..bound.conditions.as_ref().map_or(0, Vec::len) {
            let mut weaker = claims.clone();
            let conditions = weaker.bounds[at].conditions.as_mut().expect("the same claims");
            let condition = conditions.remove(without);
            all.push((format!("index {at} without {condition:?}"), weaker));
        }
    }
    for (at, race) in claims.races.iter().enumerate() {
        let Some(Condition::Any(ways)) = &race.condition else { continue };
        for (way, conditions) in ways.iter().enumerate() {
            for without in 0..conditions.len() {
                let mut weaker = claims.clone();
                let Some(Condition::Any(ways)) = &mut weaker.races[at].condition else { continue };
                let condition = ways[way].remove(without);
                all.push((format!("race {at}, way {way} without {condition:?}"), weaker));
            }
        }
    }
    all
}

struct Launch {
    global: u64,
    lengths: Vec<u64>,
    values: Vec<Literal>,
    fault: Option<Fault>,
}

/// Launches with each combination of numbers, lengths and ranges.
fn launches_of(kernel: &Kernel, numbers: &[&[u64]]) -> Vec<Launch> {
    let mut scalars = vec![Vec::new()];
    for (value, numbers) in kernel.values.iter().zip(numbers) {
        let longer = scalars.iter().flat_map(|known: &Vec<Literal>| {
            numbers.iter().map(|number| [&known[..], &[Literal::integer(value.ty, *number)]].concat())
        });
        scalars = longer.collect();
    }
    let mut launches = Vec::new();
    for values in scalars {
        for len in [1, 5, 20, 60, 156, 256, 300] {
            for global in [1, 2, 5] {
                let lengths = kernel.arrays.iter().map(|_| len).collect();
                let fault = fault(kernel, global, len, &values);
                launches.push(Launch { global, lengths, values: values.clone(), fault });
            }
        }
    }
    launches
}

fn fault(kernel: &Kernel, global: u64, len: u64, values: &[Literal]) -> Option<Fault> {
    let bytes = vec![0; len as usize * 4];
    let argument = |parameter: &Parameter| match parameter {
        Parameter::Array(_) => Argument::Array(&bytes),
        Parameter::Value(id) => Argument::Value(values[id.0 as usize]),
    };
    let arguments: Vec<Argument<'_>> = kernel.parameters.iter().map(argument).collect();
    let input = Input::new(kernel, &[global], &[1], &arguments).expect("arguments that fit");
    Interpreter::new(kernel, input, Order::Forwards, STEPS).run().err()
}

impl Launch {
    /// Whether the claims about indices hold, and those about races.
    fn proven(&self, claims: &Claims) -> [bool; 2] {
        let Self { global, lengths, values, .. } = self;
        let shape = Shape { global: &[*global], local: &[1], lengths, values };
        [claims.unproven(&shape).is_none(), claims.race(&shape).is_none()]
    }
}
