//! In launches that the proof accepts, the interpreter finds no fault.
//!
//! `USM_RANDOM_LAUNCHES` sets the number of launches, `USM_RANDOM_SEED` the first seed.

use usm_kernel_ir::proof::{Shape, claims};
use usm_kernel_ir::{Argument, Fault, Input, Interpreter, Kernel, Literal, Order, Parameter, Scalar, Space};
use usm_random_kernels::random::Random;
use usm_random_kernels::{first_seed, number, program};

/// Launches of each kernel.
const LAUNCHES: u64 = 64;
const STEPS: u64 = 1 << 16;

#[test]
fn the_proof_accepts_nothing_that_is_wrong() {
    let first = first_seed();
    let (mut accepted, mut wrong, mut launches) = (0_u64, 0_u64, 0_u64);
    let all = number("USM_RANDOM_LAUNCHES", 20_000);
    for seed in (first..).take_while(|seed| (seed - first) * LAUNCHES < all) {
        let kernel = program(seed).kernel;
        // A kernel that can never be proven is refused at compilation.
        let Ok(claims) = claims(&kernel) else { continue };
        let mut random = Random::new(seed);
        for _ in 0..LAUNCHES {
            launches += 1;
            let launch = Launch::random(&kernel, &mut random);
            let Launch { global, local, lengths, values, .. } = &launch;
            let proven = claims.holds(&Shape { global, local, lengths, values });
            // Some refused launches run too, so that the test sees both outcomes.
            if !proven && !random.percent(5) {
                continue;
            }
            let found = launch.run(&kernel);
            accepted += u64::from(proven);
            wrong += u64::from(found.is_err());
            assert!(
                !proven || found.is_ok(),
                "{} over {global:?} in groups of {local:?}, {lengths:?} elements, scalars {values:?}: accepted, and {}",
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
    for seed in first..first + number("USM_RANDOM_LAUNCHES", 20_000) / 100 {
        let program = program(seed);
        let Ok(claims) = claims(&program.kernel) else { continue };
        let launch = Launch::of(&program);
        let Launch { global, local, lengths, values, .. } = &launch;
        let shape = Shape { global, local, lengths, values };
        for race in &claims.races {
            let holds = race.condition.as_ref().is_some_and(|condition| condition.holds(&shape));
            let array = &program.kernel.array(race.array).name;
            assert!(holds, "{}: `{array}`, {:?} and {:?}", program.kernel.name, race.write, race.other);
        }
    }
}

struct Launch {
    global: Vec<u64>,
    local: Vec<u64>,
    /// Elements of each array of the kernel.
    lengths: Vec<u64>,
    values: Vec<Literal>,
    bytes: Vec<Vec<u8>>,
}

impl Launch {
    fn of(program: &usm_random_kernels::Program) -> Self {
        let kernel = &program.kernel;
        let (mut lengths, mut values) = (vec![0; kernel.arrays.len()], Vec::new());
        for (parameter, given) in kernel.parameters.iter().zip(&program.arguments) {
            match (parameter, given) {
                (Parameter::Array(id), usm_random_kernels::Given::Array(bytes)) => {
                    lengths[id.0 as usize] = bytes.len() as u64 / kernel.array(*id).element.bytes();
                }
                (_, usm_random_kernels::Given::Value(value)) => values.push(*value),
                _ => {}
            }
        }
        let (global, local) = (program.global.clone(), program.local.clone());
        Self { global, local, lengths, values, bytes: Vec::new() }
    }

    /// A launch near the limit: lengths slightly above or below the range's need.
    fn random(kernel: &Kernel, random: &mut Random) -> Self {
        let local: Vec<u64> = match &kernel.group {
            Some(group) => group.clone(),
            None => (0..kernel.dimensions).map(|_| random.from(1, 4)).collect(),
        };
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
        Self { global, local, lengths, values, bytes }
    }

    fn run(&self, kernel: &Kernel) -> Result<(), Fault> {
        let arguments: Vec<Argument<'_>> = kernel
            .parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Array(id) => Argument::Array(&self.bytes[id.0 as usize]),
                Parameter::Value(id) => Argument::Value(self.values[id.0 as usize]),
            })
            .collect();
        let input = Input::new(kernel, &self.global, &self.local, &arguments).unwrap();
        match Interpreter::new(kernel, input, Order::Forwards, STEPS).run() {
            // With other lengths, local memory may be read before a write. The proof does not
            // exclude that.
            Ok(_) | Err(Fault::Unwritten { .. } | Fault::Steps) => Ok(()),
            Err(fault) => Err(fault),
        }
    }
}
