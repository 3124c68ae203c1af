//! In launches that the proof accepts, the interpreter finds no fault.
//!
//! `USM_RANDOM_LAUNCHES` sets the number of launches, `USM_RANDOM_SEED` the first seed.

#[path = "common/launch.rs"]
mod launch;

use launch::Launch;
use usm_kernel_ir::proof::claims;
use usm_kernel_ir::{Fault, Kernel, Literal, Order, Parameter, Scalar, Space};
use usm_random_kernels::random::Random;
use usm_random_kernels::{Given, Program, first_seed, program};

/// Launches of each kernel.
const LAUNCHES: u64 = 64;
const STEPS: u64 = 1 << 16;

#[test]
fn the_proof_accepts_nothing_that_is_wrong() {
    let first = first_seed();
    let (mut accepted, mut wrong, mut launches) = (0_u64, 0_u64, 0_u64);
    let all = skip::cases("USM_RANDOM_LAUNCHES", 20_000);
    for seed in (first..).take_while(|seed| (seed - first) * LAUNCHES < all) {
        let kernel = program(seed).kernel;
        // A kernel that can never be proven is refused at compilation.
        let Ok(claims) = claims(&kernel) else { continue };
        let mut random = Random::new(seed);
        for _ in 0..LAUNCHES {
            launches += 1;
            let launch = near_the_limit(&kernel, &mut random);
            let proven = claims.holds(&launch.shape());
            // Some refused launches run too, so that the test sees both outcomes.
            if !proven && !random.percent(5) {
                continue;
            }
            let found = run(&launch, &kernel);
            accepted += u64::from(proven);
            wrong += u64::from(found.is_err());
            assert!(
                !proven || found.is_ok(),
                "{} {launch}: accepted, and {}",
                kernel.name,
                found.unwrap_err()
            );
        }
    }
    println!("{launches} launches: {accepted} accepted; {wrong} of all that ran were wrong");
    // Both outcomes must occur often.
    assert!(accepted * 20 > launches, "{accepted} of {launches} launches were accepted");
    assert!(wrong > 0, "no launch was wrong");
}

/// Every program runs without a fault. Programs whose indices a launch can prove are accepted.
#[test]
fn right_programs_are_not_refused_as_races() {
    let first = first_seed();
    for seed in first..first + skip::cases("USM_RANDOM_LAUNCHES", 20_000) / 100 {
        let program = program(seed);
        let Ok(claims) = claims(&program.kernel) else { continue };
        let launch = launch_of(&program);
        let shape = launch.shape();
        for race in &claims.races {
            let holds = race.condition.as_ref().is_some_and(|condition| condition.holds(&shape));
            let array = &program.kernel.array(race.array).name;
            assert!(holds, "{}: `{array}`, {:?} and {:?}", program.kernel.name, race.write, race.other);
        }
    }
}

/// The program's own launch.
fn launch_of(program: &Program) -> Launch {
    let kernel = &program.kernel;
    let (mut lengths, mut values) = (vec![0; kernel.arrays.len()], Vec::new());
    for (parameter, given) in kernel.parameters.iter().zip(&program.arguments) {
        match (parameter, given) {
            (Parameter::Array(id), Given::Array(bytes)) => {
                lengths[id.0 as usize] = bytes.len() as u64 / kernel.array(*id).element.bytes();
            }
            (_, Given::Value(value)) => values.push(*value),
            _ => {}
        }
    }
    let (global, local) = (program.global.clone(), program.local.clone());
    Launch { global, local, lengths, values, bytes: Vec::new() }
}

/// A launch with lengths slightly above or below the range's need.
fn near_the_limit(kernel: &Kernel, random: &mut Random) -> Launch {
    let local = Launch::group(kernel, random);
    let global: Vec<u64> = local.iter().map(|size| size * random.below(4)).collect();
    let items: u64 = global.iter().product();
    let mut lengths = Vec::new();
    let mut bytes = Vec::new();
    for array in &kernel.arrays {
        let len = match (&array.space, random.below(4)) {
            (Space::Local(_) | Space::Private(_) | Space::Extent(_), _) => 0,
            (Space::Atomic, _) => random.below(6),
            (_, 0) => random.below(8),
            (_, 1) => items + random.below(6),
            _ => (items + 5).saturating_sub(random.below(8)),
        };
        lengths.push(len);
        bytes.push((0..len * array.element.bytes()).map(|_| random.word() as u8).collect());
    }
    let values = kernel
        .values
        .iter()
        .map(|value| match value.ty {
            Scalar::F32 => Literal::f32(random.below(9) as f32),
            Scalar::F64 => Literal::f64(random.below(9) as f64),
            ty if random.percent(30) => Literal::integer(ty, random.word()),
            ty => Literal::integer(ty, random.below(9)),
        })
        .collect();
    Launch { global, local, lengths, values, bytes }
}

fn run(launch: &Launch, kernel: &Kernel) -> Result<(), Fault> {
    match launch.run(kernel, Order::Forwards, STEPS) {
        // With other lengths, local memory may be read before a write. The proof does not exclude
        // that.
        Err(Fault::Unwritten { .. } | Fault::Steps) => Ok(()),
        other => other,
    }
}
