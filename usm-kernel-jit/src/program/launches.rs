//! The last launches that are proven, since a proof evaluates all conditions of a kernel.

use usm_kernel_ir::proof::Shape;
use usm_kernel_ir::{Literal, Scalar};

/// Number of launches. A loop of a program has a few in turns.
const MOST: usize = 8;

/// Launches whose indices are all inside, by the numbers that a proof may ask for.
#[derive(Debug, Default)]
pub(super) struct ProvenLaunches {
    /// Sizes, lengths and scalars, each preceded by their number.
    launches: Vec<Vec<u64>>,
    /// The launch that the next one replaces.
    oldest: usize,
}

impl ProvenLaunches {
    pub(super) fn has(&self, shape: &Shape<'_>) -> bool {
        self.launches.iter().any(|launch| launch.iter().copied().eq(words(shape)))
    }

    pub(super) fn keep(&mut self, shape: &Shape<'_>) {
        let launch = words(shape).collect();
        if self.launches.len() < MOST {
            self.launches.push(launch);
        } else if let Some(oldest) = self.launches.get_mut(self.oldest) {
            *oldest = launch;
            self.oldest = (self.oldest + 1) % MOST;
        }
    }
}

/// What conditions and inspections depend on: numbers of floating point have no part in them.
fn words(shape: &Shape<'_>) -> impl Iterator<Item = u64> {
    let Shape { global, local, lengths, values } = *shape;
    let number = |numbers: &'_ [u64]| numbers.len() as u64;
    let sizes = [number(global), number(local), number(lengths)].into_iter();
    let numbers = global.iter().chain(local).chain(lengths).copied();
    sizes.chain(numbers).chain(values.iter().map(word))
}

fn word(value: &Literal) -> u64 {
    match value.ty {
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64 => 0,
        _ => value.bits,
    }
}
